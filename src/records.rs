//! Records for the application's log, through the `log` crate: what is recorded, where, and how
//! often.
//!
//! | target | level | what |
//! |---|---|---|
//! | `trunkline::server` | error | connections cannot be accepted for now |
//! | `trunkline::server` | warn | a connection was refused; a handshake failed |
//! | `trunkline::server` | info | a server listens; it is shut down |
//! | `trunkline::session` | warn | a session ended otherwise than by goodbyes |
//! | `trunkline::session` | warn | a push to a peer that reads too slowly was dropped |
//! | `trunkline::session` | debug | a session began; it ended cleanly |
//! | `trunkline::client` | warn | a client that reconnects has stopped, with the reason |
//! | `trunkline::client` | info | it has lost its session and waits to dial again; it is connected |
//! | `trunkline::handler` | warn | a handler panicked |
//!
//! Nothing is recorded per message, and never a body. Of each kind a server or client writes at
//! most ten records a second, panics and dropped pushes of one session one a second; what is left
//! out is counted in the next one.

use std::fmt;
use std::time::{Duration, Instant};

use log::Level;
use parking_lot::Mutex;

use crate::error::caught;

const SERVER: &str = "trunkline::server";
const SESSION: &str = "trunkline::session";
const CLIENT: &str = "trunkline::client";
const HANDLER: &str = "trunkline::handler";

/// The time for which records are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// What happened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Topic {
    AcceptFailed,
    Refused,
    HandshakeFailed,
    Listening,
    ShutDown,
    Broken,
    Dropped,
    Begun,
    Ended,
    Lost,
    Connected,
    Stopped,
    Panicked,
}

impl Topic {
    /// How many topics there are.
    const COUNT: usize = Topic::Panicked as usize + 1;

    fn place(self) -> (&'static str, Level) {
        match self {
            Topic::AcceptFailed => (SERVER, Level::Error),
            Topic::Refused | Topic::HandshakeFailed => (SERVER, Level::Warn),
            Topic::Listening | Topic::ShutDown => (SERVER, Level::Info),
            Topic::Broken | Topic::Dropped => (SESSION, Level::Warn),
            Topic::Begun | Topic::Ended => (SESSION, Level::Debug),
            Topic::Lost | Topic::Connected => (CLIENT, Level::Info),
            Topic::Stopped => (CLIENT, Level::Warn),
            Topic::Panicked => (HANDLER, Level::Warn),
        }
    }
}

/// The records of one client or server.
pub(crate) struct Records {
    limits: [Limit; Topic::COUNT],
}

impl Default for Records {
    fn default() -> Self {
        Records {
            limits: std::array::from_fn(|_| Limit::new(10)),
        }
    }
}

impl Records {
    /// Writes a record, unless there were too many of the kind.
    pub(crate) fn write(&self, topic: Topic, now: Instant, what: fmt::Arguments<'_>) {
        self.write_limited(topic, None, now, what);
    }

    /// Writes a record that has a limit of its own as well.
    pub(crate) fn write_limited(
        &self,
        topic: Topic,
        own: Option<&Limit>,
        now: Instant,
        what: fmt::Arguments<'_>,
    ) {
        let (target, level) = topic.place();
        if !log::log_enabled!(target: target, level) {
            return;
        }
        let mut limits = own.into_iter().chain(self.limits.get(topic as usize));
        let admitted = limits.try_fold(0, |left_out, limit| limit.admit(now, left_out));
        let Some(left_out) = admitted else {
            return;
        };
        // A logger's panic is its own; the panic hook has shown it.
        let _ = caught(|| match left_out {
            0 => log::log!(target: target, level, "{what}"),
            _ => log::log!(target: target, level, "{what} ({left_out} like it were left out)"),
        });
    }
}

/// So many records in a second.
pub(crate) struct Limit {
    most: u32,
    window: Mutex<Window>,
}

#[derive(Default)]
struct Window {
    begun: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl Limit {
    pub(crate) fn new(most: u32) -> Self {
        Limit {
            most,
            window: Mutex::default(),
        }
    }

    /// One more record, before which another limit has left some out: how many were left out
    /// before it, or `None` if it is left out too.
    fn admit(&self, now: Instant, left_out: u64) -> Option<u64> {
        let mut window = self.window.lock();
        let has_passed = window
            .begun
            .is_none_or(|begun| now.saturating_duration_since(begun) >= WINDOW);
        if has_passed {
            window.begun = Some(now);
            window.written = 0;
        }
        if window.written >= self.most {
            window.left_out += 1 + left_out;
            return None;
        }
        window.written += 1;
        Some(left_out + std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_in_the_next_record() {
        let limit = Limit::new(2);
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(limit.admit(at(0), 0), Some(0));
        assert_eq!(limit.admit(at(1), 3), Some(3));
        assert_eq!(limit.admit(at(2), 0), None);
        assert_eq!(limit.admit(at(999), 4), None);
        assert_eq!(limit.admit(at(1000), 1), Some(7));
        assert_eq!(limit.admit(at(1001), 0), Some(0));
        assert_eq!(limit.admit(at(1002), 0), None);
    }
}
