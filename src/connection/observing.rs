//! How a connection is at one moment, for whoever looks at all of them.

use std::time::{Duration, Instant};

use super::Connection;

/// What can be seen without holding anything up.
pub(crate) struct Observed {
    pub(crate) age: Duration,
    /// How long nothing has come from the peer.
    pub(crate) last_heard: Duration,
    pub(crate) queued_bytes: usize,
    /// 1 is full.
    pub(crate) queue_fill: f64,
    /// Calls of this side that are not answered.
    pub(crate) pending_calls: usize,
    /// Calls of the peer that are not answered.
    pub(crate) incoming_calls: usize,
}

impl Connection {
    pub(crate) fn observe(&self, now: Instant) -> Observed {
        Observed {
            age: now.saturating_duration_since(self.begun),
            last_heard: self.watch.lock().silence(now),
            queued_bytes: self.queue.used_bytes(),
            queue_fill: self.queue.fill(),
            pending_calls: self.calls.lock().open_calls(),
            incoming_calls: self.incoming(),
        }
    }
}
