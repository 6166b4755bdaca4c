//! The bound of the queue: bytes and messages that may wait.

use std::sync::Arc;

use super::advance::Advance;
use super::lease::Lease;
use super::sync::{AtomicUsize, Condvar, Mutex, Ordering, Word, fence, lock};
use super::waiting::Line;
use crate::memory::{Account, Cap};

/// Bits of the word that hold the bytes; the messages are above them.
const BYTES_BITS: u32 = 36;
const BYTES: u64 = (1 << BYTES_BITS) - 1;
const MESSAGES: u64 = (1 << 26) - 1;
/// No push or call finds room any more.
pub(super) const NO_REQUESTS: u64 = 1 << 62;
/// Nothing finds room any more.
pub(super) const CLOSED: u64 = 1 << 63;
/// How much may wait.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// Bytes of pushes and calls.
    pub(crate) bytes: usize,
    /// Pushes and calls.
    pub(crate) messages: usize,
    /// Bytes beyond `bytes` for replies alone.
    pub(crate) reply_reserve: usize,
    /// Replies and control frames: an honest peer never has more of them coming.
    pub(crate) replies: usize,
    /// Bytes that are not counted against the memory caps: a small message always has room.
    pub(crate) uncounted: usize,
}

/// What asks for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A push or call: within the bound.
    Request,
    /// A reply: within the bound and the reserve.
    Reply,
    /// A small frame that must get through.
    Control,
}

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full(Shortage),
    Closed,
}

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// Room within the bound.
    Queue,
    /// Memory, under one of the caps.
    Memory(Cap),
}

/// Counts what waits. One word holds the bytes, the messages and the two closing flags, so
/// that a reservation is one step, and none can slip past a close.
pub(super) struct Room {
    bound: Bound,
    pub(super) used: Word,
    /// What of it no frame has yet.
    ahead: Advance,
    lease: Lease,
    /// The most bytes that were in use at once.
    peak: AtomicUsize,
    /// Who waits for room, or for everything to be released.
    pub(super) waiters: AtomicUsize,
    /// Those of them that wait for room.
    pub(super) senders: AtomicUsize,
    pub(super) line: Mutex<Line>,
    pub(super) changed: Condvar,
}

impl Room {
    pub(super) fn new(bound: Bound, account: Arc<Account>) -> Self {
        Room {
            lease: Lease::new(account, bound.uncounted),
            ahead: Advance::new(&bound),
            bound,
            used: Word::new(0),
            peak: AtomicUsize::new(0),
            waiters: AtomicUsize::new(0),
            senders: AtomicUsize::new(0),
            line: Mutex::new(Line::default()),
            changed: Condvar::new(),
        }
    }

    pub(super) fn bound(&self) -> &Bound {
        &self.bound
    }

    /// Whether everything that ever found room has been released.
    pub(super) fn is_settled(&self) -> bool {
        fence(Ordering::SeqCst);
        self.used.load() & BYTES == 0
    }

    /// The bytes of frames.
    pub(super) fn used(&self) -> usize {
        let used = (self.used.load() & BYTES) as usize;
        used.saturating_sub(self.ahead.bytes())
    }

    pub(super) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    pub(super) fn fill(&self) -> f64 {
        let messages = ((self.used.load() >> BYTES_BITS) & MESSAGES) as usize;
        let messages = messages.saturating_sub(self.ahead.frames()) as f64;
        let bytes = self.used() as f64 / self.bound.bytes as f64;
        bytes.max(messages / self.bound.messages as f64)
    }

    /// Reserves room for a frame that is in the gate already. A run of pushes and calls has it
    /// taken ahead; `is_run` says that this is not the first one.
    pub(super) fn reserve_inside(
        &self,
        bytes: usize,
        class: Class,
        is_run: bool,
    ) -> Result<(), Refusal> {
        let may_run = class == Class::Request && is_run && self.admits_requests();
        if may_run && (self.ahead.spend(bytes) || self.advance(bytes)) {
            self.note_peak();
            return Ok(());
        }
        self.give_back();
        self.reserve(bytes, class)
    }

    /// Nobody waits, and nothing is closed.
    fn admits_requests(&self) -> bool {
        self.senders.load(Ordering::Relaxed) == 0 && self.used.load() & NO_REQUESTS == 0
    }

    /// Reserves room for a frame and, in place of what is left of the last step, for more to
    /// come; `false` if there is not so much without asking for memory.
    fn advance(&self, bytes: usize) -> bool {
        let (step_bytes, step_frames) = self.ahead.step;
        if step_frames == 0 || bytes > step_bytes {
            return false;
        }
        let (left_bytes, left_frames) = (self.ahead.bytes(), self.ahead.frames());
        let mut seen = self.used.load();
        loop {
            let in_use = (seen & BYTES) as usize - left_bytes + bytes + step_bytes;
            let in_use_frames = (seen >> BYTES_BITS) & MESSAGES;
            let in_use_frames = in_use_frames as usize - left_frames + 1 + step_frames;
            let is_over = in_use > self.bound.bytes || in_use_frames > self.bound.messages;
            let is_open = seen & NO_REQUESTS == 0;
            if !is_open || is_over || !self.lease.covers(in_use) {
                return false;
            }
            // Not closed, so these two are the whole word.
            let new = ((in_use_frames as u64) << BYTES_BITS) + in_use as u64;
            match self.used.compare_exchange(seen, new) {
                Ok(_) => {
                    self.ahead.begin_step();
                    self.lease_after(in_use);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Gives back what was taken ahead; inside the gate.
    pub(super) fn give_back(&self) {
        let (bytes, frames) = self.ahead.take();
        if (bytes, frames) != (0, 0) {
            self.release(bytes, frames);
        }
    }

    pub(super) fn reserve(&self, bytes: usize, class: Class) -> Result<(), Refusal> {
        // Who comes now does not overtake who waits.
        if class == Class::Request && self.senders.load(Ordering::Relaxed) > 0 {
            return Err(match self.used.load() & NO_REQUESTS {
                0 => Refusal::Full(lock(&self.line).shortage()),
                _ => Refusal::Closed,
            });
        }
        self.admit(bytes, class)
    }

    pub(super) fn admit(&self, bytes: usize, class: Class) -> Result<(), Refusal> {
        self.try_admit(bytes, class).inspect_err(|_| {
            // What was leased for nothing.
            self.end_unused_lease();
        })
    }

    fn try_admit(&self, bytes: usize, class: Class) -> Result<(), Refusal> {
        let Bound {
            bytes: request_bytes,
            messages: requests,
            ..
        } = self.bound;
        let (most_bytes, most, refusing) = match class {
            Class::Request => (request_bytes, requests, NO_REQUESTS | CLOSED),
            Class::Reply => (
                request_bytes.saturating_add(self.bound.reply_reserve),
                requests.saturating_add(self.bound.replies),
                CLOSED,
            ),
            Class::Control => (
                usize::MAX,
                requests.saturating_add(self.bound.replies),
                CLOSED,
            ),
        };
        let mut seen = self.used.load();
        loop {
            if seen & refusing != 0 {
                return Err(Refusal::Closed);
            }
            let waiting = (seen & BYTES) as usize;
            let messages = (seen >> BYTES_BITS) & MESSAGES;
            // One frame over the bound is admitted alone.
            let is_full = waiting != 0 && waiting.saturating_add(bytes) > most_bytes;
            if is_full || messages >= MESSAGES.min(most as u64) {
                return Err(Refusal::Full(Shortage::Queue));
            }
            let in_use = waiting + bytes;
            let is_counted = class != Class::Control;
            if is_counted && !self.lease.covers(in_use) {
                let leased = self.lease.extend(in_use);
                leased.map_err(|cap| Refusal::Full(Shortage::Memory(cap)))?;
            }
            let new = seen + (1 << BYTES_BITS) + bytes as u64;
            match self.used.compare_exchange(seen, new) {
                Ok(_) => {
                    if is_counted {
                        self.lease_after(in_use);
                    }
                    self.note_peak();
                    return Ok(());
                }
                Err(now) => seen = now,
            }
        }
    }

    /// So much is in use now, and the lease that covered it may have ended just before.
    fn lease_after(&self, in_use: usize) {
        if !self.lease.covers(in_use) {
            self.lease.follow(in_use);
        }
    }

    /// Gives the lease back if nothing is in use. The exchange changes nothing, but it is a step
    /// in the order of the reservations.
    fn end_unused_lease(&self) {
        while self.lease.is_held() && self.used.load() & BYTES == 0 {
            self.lease.end(|| {
                let seen = self.used.load();
                seen & BYTES == 0 && self.used.compare_exchange(seen, seen).is_ok()
            });
            // Whoever emptied the queue meanwhile may not have seen that there is a lease.
            fence(Ordering::SeqCst);
        }
    }

    fn note_peak(&self) {
        let used = self.used();
        if used > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(used, Ordering::Relaxed);
        }
    }

    pub(super) fn release(&self, bytes: usize, messages: usize) {
        let freed = ((messages as u64) << BYTES_BITS) + bytes as u64;
        let left = self.used.fetch_sub(freed) - freed;
        fence(Ordering::SeqCst);
        if left & BYTES == 0 {
            self.end_unused_lease();
        }
        if self.waiters.load(Ordering::Relaxed) == 0 {
            return;
        }
        // Waking at half the bound lets a waiter queue a run of messages instead of one.
        let (bytes, messages) = (left & BYTES, (left >> BYTES_BITS) & MESSAGES);
        if bytes <= self.bound.bytes as u64 / 2 && messages <= self.bound.messages as u64 / 2 {
            self.wake();
        }
    }

    pub(super) fn close_to_requests(&self) {
        self.used.fetch_or(NO_REQUESTS);
        self.wake();
    }

    pub(super) fn close(&self) {
        self.used.fetch_or(NO_REQUESTS | CLOSED);
        self.wake();
    }
}
