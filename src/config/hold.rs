//! What a client keeps while it is not connected.

use std::time::Duration;

use super::Mistake;
#[cfg(feature = "config")]
use super::notation::{Notation, Size, Time};

/// How much is kept of what is pushed while the session is lost:
/// [`ClientBuilder::hold`](crate::ClientBuilder::hold).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
#[non_exhaustive]
pub struct Hold {
    /// Bytes of the pushes as they go over the wire. Default 1 MiB.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub bytes: u32,
    /// How many pushes; at least 1. Default 4,096.
    pub messages: u32,
    /// How old a push may get; an older one is dropped and reported. Default 30 s.
    #[cfg_attr(feature = "config", serde(with = "Time"))]
    pub age: Duration,
}

impl Default for Hold {
    fn default() -> Self {
        Hold {
            bytes: 1 << 20,
            messages: 4096,
            age: Duration::from_secs(30),
        }
    }
}

impl Hold {
    pub(super) fn check(&self) -> Result<(), Mistake> {
        let least = [("hold.bytes", self.bytes), ("hold.messages", self.messages)];
        for (key, value) in least {
            if value < 1 {
                let what = "= 0 is below 1".to_owned();
                return Err(Mistake { key, what });
            }
        }
        Ok(())
    }
}
