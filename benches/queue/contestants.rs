//! The queue of the crate, and what it is held against.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam::queue::SegQueue;
use parking_lot::Mutex;

use crate::memory::{Account, Cap};
use crate::queue::{Bound, Chunk, Class, SendQueue};

/// So much may wait in each.
const BOUND: usize = 1 << 20;

pub(crate) trait Contestant: Sync {
    /// Whether there was room.
    fn append(&self, frame: &[u8]) -> bool;

    /// Takes what is there; how many frames that were.
    fn take(&self) -> usize;
}

pub(crate) struct Ours {
    queue: SendQueue,
    done: Mutex<Chunk>,
}

impl Default for Ours {
    fn default() -> Self {
        let bound = Bound {
            bytes: BOUND,
            messages: BOUND,
            reply_reserve: 0,
            replies: 0,
            uncounted: BOUND,
        };
        let account = Account::new(Cap::new("none", u64::MAX), None);
        Ours {
            queue: SendQueue::new(bound, account),
            done: Mutex::default(),
        }
    }
}

impl Contestant for Ours {
    fn append(&self, frame: &[u8]) -> bool {
        self.queue.append_parts(Class::Request, &[], frame).is_ok()
    }

    fn take(&self) -> usize {
        let mut done = self.done.lock();
        done.clear();
        let Some(chunk) = self.queue.take(std::mem::take(&mut done)) else {
            return 0;
        };
        let (bytes, frames) = chunk.room();
        self.queue.release(bytes, frames);
        *done = chunk;
        frames
    }
}

/// A parking_lot mutex around the buffer that is filled, swapped with the one that is emptied.
#[derive(Default)]
pub(crate) struct MutexBuffers {
    filling: Mutex<(Vec<u8>, usize)>,
    emptying: Mutex<Vec<u8>>,
}

impl Contestant for MutexBuffers {
    fn append(&self, frame: &[u8]) -> bool {
        let mut filling = self.filling.lock();
        let has_room = filling.0.len() + frame.len() <= BOUND;
        if has_room {
            filling.0.extend_from_slice(frame);
            filling.1 += 1;
        }
        has_room
    }

    fn take(&self) -> usize {
        let mut emptying = self.emptying.lock();
        // As the queue does: memory that only the other core has read is filled slowly.
        emptying.fill(0);
        emptying.clear();
        let mut filling = self.filling.lock();
        std::mem::swap(&mut filling.0, &mut emptying);
        std::mem::take(&mut filling.1)
    }
}

/// A lock-free list with one frame in each element.
#[derive(Default)]
pub(crate) struct Segments {
    frames: SegQueue<Box<[u8]>>,
    waiting: AtomicUsize,
}

impl Contestant for Segments {
    fn append(&self, frame: &[u8]) -> bool {
        if self.waiting.fetch_add(frame.len(), Ordering::Relaxed) + frame.len() > BOUND {
            self.waiting.fetch_sub(frame.len(), Ordering::Relaxed);
            return false;
        }
        self.frames.push(frame.into());
        true
    }

    fn take(&self) -> usize {
        let mut frames = 0;
        while let Some(frame) = self.frames.pop() {
            self.waiting.fetch_sub(frame.len(), Ordering::Relaxed);
            frames += 1;
            if frames == 1024 {
                break;
            }
        }
        frames
    }
}
