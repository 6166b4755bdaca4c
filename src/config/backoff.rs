//! How a client that reconnects spreads its attempts.

use std::time::Duration;

use super::Mistake;
#[cfg(feature = "config")]
use super::notation::{Notation, Time};

/// When a client whose session is lost dials again:
/// [`ClientBuilder::reconnect`](crate::ClientBuilder::reconnect).
///
/// Before the attempt with the number `n`, the first being 0, it waits a random time between
/// zero and `first * factor^n`, or `most` if that is less; so clients of one server that lose it
/// at the same moment do not come back at the same moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
#[non_exhaustive]
pub struct Backoff {
    /// The longest wait before the first attempt; at least 1 ms. Default 100 ms.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub first: Duration,
    /// By how much it grows with each attempt; at least 1. Default 2.
    pub factor: u32,
    /// The longest wait before any attempt; at least `first`. Default 30 s.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub most: Duration,
    /// So many attempts, in each of which all addresses are tried; then the client stops. At
    /// least 1; 4,294,967,295, the default, is no limit.
    pub attempts: u32,
    /// How long it tries, from the loss on; then the client stops. Default no limit.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub total: Duration,
    /// A session that lives so long ends the count: after it waits, attempts and total begin
    /// anew. Default 10 s.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub stable: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            first: Duration::from_millis(100),
            factor: 2,
            most: Duration::from_secs(30),
            attempts: u32::MAX,
            total: Duration::MAX,
            stable: Duration::from_secs(10),
        }
    }
}

impl Backoff {
    pub(super) fn check(&self) -> Result<(), Mistake> {
        let mistake = |key, what: &str| {
            let what = what.to_owned();
            Err(Mistake { key, what })
        };
        if self.first < Duration::from_millis(1) {
            return mistake("backoff.first", "is below 1 ms");
        }
        if self.factor < 1 {
            return mistake("backoff.factor", "= 0 is below 1");
        }
        if self.most < self.first {
            return mistake("backoff.most", "is below backoff.first");
        }
        if self.attempts < 1 {
            return mistake("backoff.attempts", "= 0 is below 1");
        }
        Ok(())
    }
}
