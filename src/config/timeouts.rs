//! How long everything may take.

use std::time::Duration;

#[cfg(feature = "config")]
use super::notation::{Notation, Size, Time};

/// How long everything may take. [`Duration::MAX`] means no limit; zero fails as soon as there
/// is anything to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
#[non_exhaustive]
pub struct Timeouts {
    /// Looking up the name and dialling all its addresses. Default 10 s.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub connect: Duration,
    /// From the connection to the welcome. Default 10 s.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub handshake: Duration,
    /// A frame, from its first byte to its last: this, plus its size over
    /// [`lowest_rate`](Timeouts::lowest_rate). Default 10 s.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub frame: Duration,
    /// Bytes per second that the slowest acceptable peer sends. Default 16 KiB/s.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub lowest_rate: u32,
    /// The peer takes not one byte of what is written to it. Default 10 s; then the session is
    /// closed.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub write: Duration,
    /// A push waits for room in the send queue. Default 30 s.
    #[doc(alias = "SNDTIMEO")]
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub push: Duration,
    /// A call waits for its reply. Default 30 s. The peer is told when the session begins, so that
    /// handlers know it; made in a handler, a call waits no longer than the handler's own caller.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub call: Duration,
    /// Nothing at all comes from the peer. Default no limit. With [heartbeats](super::Heartbeat)
    /// a live peer says something at least every third of `heartbeat.limit`; in a protocol
    /// without them this also ends honest sessions on which nothing happens.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub idle: Duration,
    /// A close that this side did not wait for, or that the peer began. Default 5 s; then the
    /// connection is cut.
    #[doc(alias = "linger")]
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub close: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
            frame: Duration::from_secs(10),
            lowest_rate: 16 << 10,
            write: Duration::from_secs(10),
            push: Duration::from_secs(30),
            call: Duration::from_secs(30),
            idle: Duration::MAX,
            close: Duration::from_secs(5),
        }
    }
}
