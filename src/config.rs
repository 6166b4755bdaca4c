//! Limits, time limits, heartbeats and socket options, each with its default, unit and reason;
//! and the policy for slow peers.
//!
//! All are plain structs: start from a preset and change the fields you care about.
//!
//! ```
//! use trunkline::Limits;
//! let mut limits = Limits::server();
//! limits.frame_bytes = 1 << 20;
//! ```

mod backoff;
mod heartbeat;
mod hold;
mod limits;
#[cfg(feature = "config")]
mod notation;
mod pool;
#[cfg(feature = "config")]
mod settings;
mod slow_peer;
mod socket_options;
mod threads;
mod timeouts;

use std::fmt;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};

pub use backoff::Backoff;
pub use heartbeat::Heartbeat;
pub use hold::Hold;
pub use limits::Limits;
pub use pool::{Dispatch, Pool};
#[cfg(feature = "config")]
pub use settings::Settings;
pub use slow_peer::SlowPeer;
pub use socket_options::SocketOptions;
pub(crate) use threads::ThreadOptions;
pub use threads::{StartedThread, ThreadRole};
pub use timeouts::Timeouts;

/// Everything one connection needs to know; what the builders fill.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) socket: SocketOptions,
    pub(crate) threads: ThreadOptions,
    pub(crate) slow_peer: SlowPeer,
    /// If the builder or a file says so.
    pub(crate) backoff: Option<Backoff>,
    /// Likewise.
    pub(crate) hold: Option<Hold>,
}

/// A setting with which nothing could ever work.
pub(crate) struct Mistake {
    /// With its table: `limits.frame_bytes`.
    key: &'static str,
    what: String,
}

/// Names the key.
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.what)
    }
}

impl From<Mistake> for Error {
    fn from(mistake: Mistake) -> Error {
        Error::new(ErrorKind::InvalidInput, mistake.to_string())
    }
}

impl Config {
    /// Finds the settings with which nothing could ever work.
    pub(crate) fn check(&self) -> Result<(), Mistake> {
        let limits = &self.limits;
        let least = [
            // A goodbye must fit.
            ("limits.frame_bytes", limits.frame_bytes, 64),
            ("limits.body_bytes", limits.body_bytes, 16),
            ("limits.pending_calls", limits.pending_calls, 1),
            ("limits.incoming_calls", limits.incoming_calls, 1),
            ("limits.queued_bytes", limits.queued_bytes, 1),
            ("limits.queued_messages", limits.queued_messages, 1),
            ("limits.sessions", limits.sessions, 1),
            (
                "limits.sessions_per_address",
                limits.sessions_per_address,
                1,
            ),
            // A peer says goodbye and confirms what came, and replies cross its cancels.
            (
                "limits.control_frames_per_second",
                limits.control_frames_per_second,
                16,
            ),
        ];
        for (key, value, least) in least {
            if value < least {
                let what = format!("= {value} is below {least}");
                return Err(Mistake { key, what });
            }
        }
        if isize::try_from(limits.frame_bytes).is_err() {
            let key = "limits.frame_bytes";
            let (bytes, most) = (limits.frame_bytes, isize::MAX);
            let what = format!("= {bytes} is above {most}, the most of this machine");
            return Err(Mistake { key, what });
        }
        let beat = &self.heartbeat;
        for (key, value, why) in [
            ("heartbeat.interval", beat.interval, ""),
            (
                "heartbeat.limit",
                beat.limit,
                ": the peer sends three times within it",
            ),
        ] {
            if value < heartbeat::LEAST {
                let what = format!("= {value:?} is below {:?}{why}", heartbeat::LEAST);
                return Err(Mistake { key, what });
            }
        }
        let frames = 2 * u64::from(limits.frame_bytes);
        let (session, total) = (limits.session_bytes, limits.total_bytes);
        if session < frames {
            let key = "limits.session_bytes";
            let what = format!("= {session} is below {frames}, twice limits.frame_bytes");
            return Err(Mistake { key, what });
        }
        if total < session {
            let key = "limits.total_bytes";
            let what = format!("= {total} is below {session}, limits.session_bytes");
            return Err(Mistake { key, what });
        }
        self.backoff.as_ref().map_or(Ok(()), Backoff::check)?;
        self.hold.as_ref().map_or(Ok(()), Hold::check)?;
        self.socket.check()
    }
}

/// The moment at which a time limit that starts now passes; `None` for no limit.
pub(crate) fn deadline(now: Instant, limit: Duration) -> Option<Instant> {
    now.checked_add(limit)
}
