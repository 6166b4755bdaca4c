//! How often each side says that it is there, and when its peer is taken for lost.

use std::time::Duration;

#[cfg(feature = "config")]
use super::notation::{Notation, Time};

/// The least of both: a line needs some time to carry a sign of life, and under load a thread
/// to send it.
pub(super) const LEAST: Duration = Duration::from_millis(300);

/// How often this side says that it is there, and when its peer is taken for lost.
/// [`Duration::MAX`] means never; both are at least 300 ms.
///
/// Each side tells the other its limit, and sends a ping every
/// [`interval`](Heartbeat::interval) or third of the peer's limit, whichever is shorter: however
/// busy its handlers and the line are, and whatever else it sends. So the two sides need not be
/// set alike. Without both, nothing is sent.
///
/// Only in protocols that [carry pings](crate::protocol).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
#[non_exhaustive]
pub struct Heartbeat {
    /// From one ping to the next; a peer that asks for more gets more. Default 10 s.
    #[doc(alias = "ZMQ_HEARTBEAT_IVL")]
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub interval: Duration,
    /// Nothing at all comes from the peer, not a byte, while this side waits for it. Default
    /// 30 s; then the session is closed with [`Timeout`](crate::ErrorKind::Timeout).
    #[doc(alias = "ZMQ_HEARTBEAT_TIMEOUT")]
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub limit: Duration,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Heartbeat {
            interval: Duration::from_secs(10),
            limit: Duration::from_secs(30),
        }
    }
}
