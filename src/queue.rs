//! The send queue: senders append frames in wire format, the writer role takes them.
//!
//! The contract is small, so that the inside can be replaced: [`append`](SendQueue::append)
//! a frame within the bound, [`take`](SendQueue::take) what gathered, in large pieces that can
//! be written as they are, [`release`](SendQueue::release) what was written,
//! [`close`](SendQueue::close).
//!
//! No sender ever waits for another. It tries the lock of the open batch and encodes into it;
//! if somebody else has the lock, the frame goes into a lock-free list (crossbeam's), whose
//! content is moved into the batch by whoever has the lock next, before anything of its own. So
//! the messages of one thread keep their order whichever way each of them went: what is in the
//! list is younger than the batch, and older than what is appended to the batch later. A sender
//! that is preempted with the lock delays those behind it, nothing else; no user code runs
//! there.

mod bell;
mod chunk;
mod lease;
mod list;
mod room;
pub(crate) mod scratch;
mod sync;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::error::Error;
use crate::memory::Account;

pub(crate) use bell::Bell;
pub(crate) use chunk::{Batch, Chunk};
pub(crate) use room::{Bound, Class, Refusal, Shortage};

use self::list::List;
use self::room::Room;
use self::sync::{AtomicUsize, Mutex, Ordering, fence, lock, try_lock};

/// A batch that has grown to this size is followed by another.
const FULL: usize = 256 << 10;
/// Batches kept for reuse while the queue is busy.
const SPARE: usize = 4;

/// Why a frame was not appended.
#[derive(Debug)]
pub(crate) enum NotAppended {
    /// There is no room for a frame of so many bytes.
    Full { bytes: usize, shortage: Shortage },
    /// The queue is closed to it.
    Closed,
    /// It cannot be encoded.
    Encoding(Error),
}

/// Whether room is still to be found for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Within(Class),
    /// [`reserve_by`](SendQueue::reserve_by) has found it.
    Reserved,
}

/// A queue of frames, bounded in bytes and messages, and by the memory that its account has.
pub(crate) struct SendQueue {
    open: Mutex<Open>,
    /// Frames whose senders found the open batch locked.
    aside: List<Chunk>,
    /// Not 0 while `open` holds anything; written under its lock only.
    filled: AtomicUsize,
    room: Room,
}

/// What waits, oldest first: the chunks, then the batch.
#[derive(Default)]
struct Open {
    chunks: VecDeque<Chunk>,
    batch: Batch,
    spare: Vec<Batch>,
    takes: usize,
}

impl SendQueue {
    /// What is beyond the bound's uncounted bytes is taken from the account.
    pub(crate) fn new(bound: Bound, account: Arc<Account>) -> Self {
        SendQueue {
            open: Mutex::new(Open::default()),
            aside: List::new(),
            filled: AtomicUsize::new(0),
            room: Room::new(bound, account),
        }
    }

    /// Appends the frame that `encode` adds to the bytes it is given; on error it has added
    /// nothing. The answer is how many bytes wait in the open batch.
    pub(crate) fn append(
        &self,
        admission: Admission,
        is_message: bool,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<usize, NotAppended> {
        match try_lock(&self.open) {
            Some(mut open) => {
                self.take_in(&mut open);
                let batch = &mut open.batch;
                let start = batch.bytes.len();
                if !encode_within(&self.room, admission, &mut batch.bytes, encode)? {
                    return Ok(start);
                }
                batch.end_frame(start, is_message);
                let waiting = batch.bytes.len();
                if waiting >= FULL {
                    open.end_batch();
                }
                self.note_filled();
                Ok(waiting)
            }
            None => {
                let mut batch = Batch::default();
                if encode_within(&self.room, admission, &mut batch.bytes, encode)? {
                    batch.end_frame(0, is_message);
                    self.aside.push(Chunk::Batch(batch));
                }
                Ok(0)
            }
        }
    }

    /// Appends a large message that is not copied any more; its room must be
    /// [reserved](SendQueue::reserve).
    pub(crate) fn append_alone(&self, bytes: Vec<u8>) {
        self.append_chunk(Chunk::Alone(bytes));
    }

    /// Appends a message that several queues share; its room must be
    /// [reserved](SendQueue::reserve).
    pub(crate) fn append_shared(&self, bytes: Arc<[u8]>) {
        self.append_chunk(Chunk::Shared(bytes));
    }

    fn append_chunk(&self, chunk: Chunk) {
        match try_lock(&self.open) {
            Some(mut open) => {
                self.take_in(&mut open);
                open.push(chunk);
                self.note_filled();
            }
            None => self.aside.push(chunk),
        }
    }

    /// Moves what was put aside to its place.
    fn take_in(&self, open: &mut Open) {
        // Asking an empty list for its first costs a full barrier.
        while !self.aside.is_empty() {
            // Noted first: whoever finds the list empty finds it here.
            self.note_filled();
            if let Some(chunk) = self.aside.pop() {
                open.push(chunk);
            }
        }
    }

    fn note_filled(&self) {
        if self.filled.load(Ordering::Relaxed) == 0 {
            self.filled.store(1, Ordering::Relaxed);
        }
    }

    /// Takes the oldest chunk; `done` is the last one, whose buffer is used again.
    pub(crate) fn take(&self, done: Chunk) -> Option<Chunk> {
        let mut open = lock(&self.open);
        self.take_in(&mut open);
        open.recycle(done);
        if open.chunks.is_empty() {
            open.end_batch();
        }
        let chunk = open.chunks.pop_front()?;
        open.takes = open.takes.wrapping_add(1);
        if open.is_empty() {
            self.filled.store(0, Ordering::Relaxed);
        }
        Some(chunk)
    }

    /// How often something was taken; it wraps.
    pub(crate) fn takes(&self) -> usize {
        lock(&self.open).takes
    }

    /// Whether there is nothing to take. What was appended before a fence is seen after it.
    pub(crate) fn is_empty(&self) -> bool {
        fence(Ordering::SeqCst);
        // The list first: a frame on its way from there to the batch is noted before it leaves.
        self.aside.is_empty() && self.filled.load(Ordering::Relaxed) == 0
    }

    /// Lets go of all memory of an empty queue.
    pub(crate) fn shrink(&self) {
        let mut open = lock(&self.open);
        open.spare = Vec::new();
        open.chunks.shrink_to_fit();
        if open.batch.is_empty() {
            open.batch = Batch::default();
        }
    }

    /// Reserves room for one frame, without waiting.
    pub(crate) fn reserve(&self, bytes: usize, class: Class) -> Result<(), Refusal> {
        self.room.reserve(bytes, class)
    }

    /// Reserves room for one frame of a push or call, waiting for it until the deadline.
    pub(crate) fn reserve_by(
        &self,
        bytes: usize,
        deadline: Option<Instant>,
    ) -> Result<(), Refusal> {
        self.room.reserve_by(bytes, deadline)
    }

    /// Gives back the room of frames that were written.
    pub(crate) fn release(&self, bytes: usize, frames: usize) {
        self.room.release(bytes, frames);
    }

    /// Nothing will be released for a while.
    pub(crate) fn pause(&self) {
        self.room.pause();
    }

    /// From now on only replies and control frames find room.
    pub(crate) fn close_to_requests(&self) {
        self.room.close_to_requests();
    }

    /// From now on nothing finds room; all who wait return.
    pub(crate) fn close(&self) {
        self.room.close();
    }

    /// Whether everything that ever found room has been released.
    pub(crate) fn is_settled(&self) -> bool {
        self.room.used() == 0
    }

    /// Waits until [`is_settled`](SendQueue::is_settled), at most until the deadline.
    pub(crate) fn wait_settled(&self, deadline: Option<Instant>) -> bool {
        self.room.wait_settled(deadline)
    }

    /// Bytes that wait or are being written.
    pub(crate) fn used_bytes(&self) -> usize {
        self.room.used()
    }

    /// The most bytes that were in use at once.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.room.peak()
    }

    /// What part of the bound is in use, in bytes or messages, whichever is more; above 1 where
    /// replies, control frames or one large frame go beyond it.
    pub(crate) fn fill(&self) -> f64 {
        self.room.fill()
    }

    pub(crate) fn bound(&self) -> &Bound {
        self.room.bound()
    }
}

/// Encodes first, since only then the size is known, and takes it back if there is no room.
/// The answer is whether there is a frame: a protocol without headers makes nothing of an empty
/// body.
fn encode_within(
    room: &Room,
    admission: Admission,
    bytes: &mut Vec<u8>,
    encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<bool, NotAppended> {
    let start = bytes.len();
    encode(bytes).map_err(NotAppended::Encoding)?;
    let size = bytes.len() - start;
    let Admission::Within(class) = admission else {
        return Ok(size > 0);
    };
    if size == 0 {
        return Ok(false);
    }
    match room.reserve(size, class) {
        Ok(()) => Ok(true),
        Err(refusal) => {
            bytes.truncate(start);
            Err(match refusal {
                Refusal::Full(shortage) => NotAppended::Full {
                    bytes: size,
                    shortage,
                },
                Refusal::Closed => NotAppended::Closed,
            })
        }
    }
}

impl Open {
    fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.batch.is_empty()
    }

    /// The batch, if there is anything in it, becomes a chunk.
    fn end_batch(&mut self) {
        if !self.batch.is_empty() {
            let next = self.spare.pop().unwrap_or_default();
            let batch = std::mem::replace(&mut self.batch, next);
            self.chunks.push_back(Chunk::Batch(batch));
        }
    }

    fn push(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Batch(small) => self.batch.append(&small),
            large => {
                self.end_batch();
                self.chunks.push_back(large);
            }
        }
    }

    fn recycle(&mut self, done: Chunk) {
        if let Chunk::Batch(mut batch) = done {
            if batch.has_buffer() && self.spare.len() < SPARE {
                batch.clear();
                self.spare.push(batch);
            }
        }
    }
}

#[cfg(test)]
#[cfg(loom)]
mod model;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
