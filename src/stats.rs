//! Counters, and snapshots of them that print as text.

mod figures;
mod handler_time;
mod prometheus;
mod rates;

use std::fmt;

use crossbeam::atomic::AtomicCell;

pub use figures::Stats;
pub(crate) use figures::{Counters, OtherCounters};
pub use handler_time::HandlerTime;
pub use rates::Rates;

/// Messages (pushes, calls and replies) and their bytes on the wire, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many messages.
    pub messages: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Count {
    /// Adds another count.
    pub fn add(&mut self, other: Count) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }

    /// What remains when the other count is taken away; never below zero.
    pub fn less(self, other: Count) -> Count {
        Count {
            messages: self.messages.saturating_sub(other.messages),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} messages ({} bytes)", self.messages, self.bytes)
    }
}

/// Adds to a counter that only the caller's role writes; cheaper than an atomic addition.
pub(crate) fn bump(counter: &AtomicCell<u64>, by: u64) {
    counter.store(counter.load().wrapping_add(by));
}
