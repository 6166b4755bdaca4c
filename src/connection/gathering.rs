//! What a handler sends on its own connection is gathered and goes out in one piece: when no
//! complete frame is left to read, before the thread waits, at 64 KiB, and at the latest after
//! a millisecond. The room in the queue is reserved at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Connection;
use super::writing::GATHERED;
use crate::error::{Error, ErrorKind};
use crate::message::MessageRef;
use crate::queue::{Class, Frame};

/// Gathered output is sent on when it reaches this size.
const FULL: usize = 64 << 10;
/// An idle connection keeps no larger buffer.
const IDLE: usize = 4 << 10;
/// Twice in a millisecond the timer looks for output that was left gathered.
const CHECK: Duration = Duration::from_micros(500);

/// Output of handlers that has not been appended to the queue.
#[derive(Default)]
pub(super) struct Gather {
    output: Mutex<Output>,
    /// Whether the timer looks.
    watched: AtomicBool,
}

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Counts the times that gathered output was appended.
    epoch: u32,
    /// The epoch at the timer's last look.
    seen: u32,
}

/// What became of a message that was to be gathered.
pub(super) enum Gathered {
    Yes,
    /// It must go through the queue itself: it is large, or has to wait for room.
    No,
    Refused(Error),
}

impl Connection {
    /// Adds a message to the gathered output of this thread's connection.
    pub(super) fn gather(&self, message: &MessageRef<'_>, class: Class) -> Gathered {
        let mut output = self.gather.output.lock();
        let output_ref = &mut *output;
        let start = output_ref.bytes.len();
        if message.body.len() > FULL {
            return Gathered::No;
        }
        if let Err(error) = self.encode(message, &mut output_ref.bytes) {
            return Gathered::Refused(error);
        }
        let end = output_ref.bytes.len();
        if let Err(error) = self.queue.reserve(end - start, class) {
            output_ref.bytes.truncate(start);
            return match (error.kind(), class) {
                (ErrorKind::QueueFull, Class::Request) => Gathered::No,
                (_, Class::Request) => Gathered::Refused(self.closed_error()),
                _ => Gathered::Refused(error),
            };
        }
        output_ref.ends.push(end as u32);
        drop(output);
        if end >= FULL {
            self.flush_gathered();
            self.drain_inline();
        }
        Gathered::Yes
    }

    /// Appends what was gathered to the queue; `true` if there was anything.
    pub(super) fn flush_gathered(&self) -> bool {
        let mut output = self.gather.output.lock();
        if output.bytes.is_empty() {
            return false;
        }
        output.epoch = output.epoch.wrapping_add(1);
        let bytes = std::mem::take(&mut output.bytes);
        let ends = std::mem::take(&mut output.ends);
        // Appended under the lock, or two flushes could change places.
        self.queue.append(Frame::Gathered { bytes, ends });
        true
    }

    /// Takes a buffer back into use.
    pub(super) fn recycle(&self, mut bytes: Vec<u8>, mut ends: Vec<u32>) {
        bytes.clear();
        ends.clear();
        let mut output = self.gather.output.lock();
        if output.bytes.capacity() == 0 {
            output.bytes = bytes;
            output.ends = ends;
        }
    }

    /// Lets go of an idle connection's buffers.
    pub(super) fn shrink_gathered(&self) {
        let mut output = self.gather.output.lock();
        if output.bytes.is_empty() && output.bytes.capacity() > IDLE {
            output.bytes = Vec::new();
            output.ends = Vec::new();
        }
    }

    /// Before a handler runs, or goes on: if output is still gathered, the timer sees to it
    /// that it does not wait for the end of a slow handler.
    pub(crate) fn watch_gathered(&self) {
        if self.gather.watched.load(Ordering::Relaxed) {
            return;
        }
        let mut output = self.gather.output.lock();
        if output.bytes.is_empty() || self.gather.watched.swap(true, Ordering::Relaxed) {
            return;
        }
        output.seen = output.epoch;
        drop(output);
        self.schedule(Instant::now() + CHECK);
    }

    pub(super) fn check_gathered(&self, now: Instant) -> Option<Instant> {
        if !self.gather.watched.load(Ordering::Relaxed) {
            return None;
        }
        let mut output = self.gather.output.lock();
        if output.epoch != output.seen {
            output.seen = output.epoch;
            return Some(now + CHECK);
        }
        // Under the lock: the reader looks at the flag before it gathers the next message.
        self.gather.watched.store(false, Ordering::Relaxed);
        let is_left = !output.bytes.is_empty();
        drop(output);
        if is_left {
            self.due.fetch_or(GATHERED, Ordering::SeqCst);
            self.wake_writer();
        }
        None
    }
}
