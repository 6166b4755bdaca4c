//! The bound of the queue: bytes and messages that may wait, and those who wait for room.

use std::time::Instant;

use super::sync::{
    AtomicUsize, Condvar, Mutex, Ordering, Word, fence, lock, lock_by, unlock_in_turn, wait,
};

/// Bits of the word that hold the bytes; the messages are above them.
const BYTES_BITS: u32 = 36;
const BYTES: u64 = (1 << BYTES_BITS) - 1;
const MESSAGES: u64 = (1 << 26) - 1;
/// No push or call finds room any more.
const NO_REQUESTS: u64 = 1 << 62;
/// Nothing finds room any more.
const CLOSED: u64 = 1 << 63;

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
    Full,
    Closed,
}

/// Counts what waits. One word holds the bytes, the messages and the two closing flags, so
/// that a reservation is one step, and none can slip past a close.
pub(super) struct Room {
    bound: Bound,
    used: Word,
    /// Who waits for room, or for everything to be released.
    waiters: AtomicUsize,
    /// Those of them that wait for room.
    senders: AtomicUsize,
    /// Held by the one sender that waits for `freed`; the others wait for it in turn.
    turn: Mutex<()>,
    mutex: Mutex<()>,
    freed: Condvar,
}

impl Room {
    pub(super) fn new(bound: Bound) -> Self {
        Room {
            bound,
            used: Word::new(0),
            waiters: AtomicUsize::new(0),
            senders: AtomicUsize::new(0),
            turn: Mutex::new(()),
            mutex: Mutex::new(()),
            freed: Condvar::new(),
        }
    }

    pub(super) fn bound(&self) -> &Bound {
        &self.bound
    }

    pub(super) fn used(&self) -> usize {
        fence(Ordering::SeqCst);
        (self.used.load() & BYTES) as usize
    }

    pub(super) fn reserve(&self, bytes: usize, class: Class) -> Result<(), Refusal> {
        // Who comes now does not overtake who waits.
        if class == Class::Request && self.senders.load(Ordering::Relaxed) > 0 {
            return Err(match self.used.load() & NO_REQUESTS {
                0 => Refusal::Full,
                _ => Refusal::Closed,
            });
        }
        self.admit(bytes, class)
    }

    fn admit(&self, bytes: usize, class: Class) -> Result<(), Refusal> {
        let Bound {
            bytes: request_bytes,
            messages: requests,
            ..
        } = self.bound;
        let (most_bytes, most, refusing) = match class {
            Class::Request => (request_bytes, requests, NO_REQUESTS | CLOSED),
            Class::Reply => (
                request_bytes + self.bound.reply_reserve,
                requests + self.bound.replies,
                CLOSED,
            ),
            Class::Control => (BYTES as usize, requests + self.bound.replies, CLOSED),
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
                return Err(Refusal::Full);
            }
            let new = seen + (1 << BYTES_BITS) + bytes as u64;
            match self.used.compare_exchange(seen, new) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    /// Waits for room in the order of coming.
    pub(super) fn reserve_by(
        &self,
        bytes: usize,
        deadline: Option<Instant>,
    ) -> Result<(), Refusal> {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        self.senders.fetch_add(1, Ordering::SeqCst);
        let reserved = match lock_by(&self.turn, deadline) {
            None => Err(Refusal::Full),
            Some(turn) => {
                let reserved = self.wait_for(deadline, || self.admit(bytes, Class::Request));
                unlock_in_turn(turn);
                reserved
            }
        };
        self.senders.fetch_sub(1, Ordering::SeqCst);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        reserved
    }

    pub(super) fn wait_settled(&self, deadline: Option<Instant>) -> bool {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let settled = self.wait_for(deadline, || match self.used() {
            0 => Ok(()),
            _ if self.used.load() & CLOSED != 0 => Err(Refusal::Closed),
            _ => Err(Refusal::Full),
        });
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        settled.is_ok()
    }

    /// Tries until it succeeds, the queue closes, or the deadline passes. The caller is counted
    /// as a waiter before its first try, so whoever frees room after that try wakes it.
    fn wait_for(
        &self,
        deadline: Option<Instant>,
        attempt: impl Fn() -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut guard = lock(&self.mutex);
        loop {
            fence(Ordering::SeqCst);
            match attempt() {
                Err(Refusal::Full) => {
                    let notified;
                    (guard, notified) = wait(&self.freed, guard, deadline);
                    if !notified {
                        return attempt();
                    }
                }
                settled => return settled,
            }
        }
    }

    pub(super) fn release(&self, bytes: usize, messages: usize) {
        let freed = ((messages as u64) << BYTES_BITS) + bytes as u64;
        let left = self.used.fetch_sub(freed) - freed;
        fence(Ordering::SeqCst);
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

    fn wake(&self) {
        let _guard = lock(&self.mutex);
        self.freed.notify_all();
    }
}
