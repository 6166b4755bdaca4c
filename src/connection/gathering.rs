//! What a handler sends on its own connection is gathered: it lies in the queue and goes out in
//! one piece, when no complete frame is left to read, before the thread waits, at 64 KiB, and
//! at the latest after a millisecond, for which the timer sees to it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Connection;

/// Gathered output is sent on when it reaches this size.
pub(super) const FULL: usize = 64 << 10;
/// Twice in a millisecond the timer looks for output that was left gathered.
const CHECK: Duration = Duration::from_micros(500);

/// Whether the timer watches the queue, and what it saw last.
#[derive(Default)]
pub(super) struct Gather {
    watched: AtomicBool,
    /// How often something had been taken from the queue at the last look.
    takes: AtomicUsize,
    /// Whether something waited in the queue at the last look.
    waited: AtomicBool,
}

impl Connection {
    /// Writes what was gathered, unless the writer thread does.
    pub(super) fn drain_gathered(&self) {
        if !self.queue.is_empty() {
            self.drain_inline();
        }
    }

    /// Output has been gathered and the handler goes on, or another one runs: the timer sees
    /// to it that it does not wait for the end of a slow one.
    pub(super) fn watch_gathered(&self) {
        let gather = &self.gather;
        if gather.watched.load(Ordering::Relaxed)
            || self.queue.is_empty()
            || gather.watched.swap(true, Ordering::Relaxed)
        {
            return;
        }
        gather.takes.store(self.queue.takes(), Ordering::Relaxed);
        gather.waited.store(true, Ordering::Relaxed);
        self.schedule(Instant::now() + CHECK);
    }

    /// Output that waits at two looks, and nothing was taken in between, is stuck behind a slow
    /// handler.
    pub(super) fn check_gathered(&self, now: Instant) -> Option<Instant> {
        let gather = &self.gather;
        if !gather.watched.load(Ordering::Relaxed) {
            return None;
        }
        let takes = self.queue.takes();
        let waits = !self.queue.is_empty();
        let moved = gather.takes.swap(takes, Ordering::Relaxed) != takes;
        let waited = gather.waited.swap(waits, Ordering::Relaxed);
        if moved || (waits && !waited) {
            return Some(now + CHECK);
        }
        // The flag first: whoever gathers after it is watched anew.
        gather.watched.store(false, Ordering::SeqCst);
        if !self.queue.is_empty() {
            self.wake_writer();
        }
        None
    }
}
