//! The bound of the queue: bytes and messages that may wait, and those who wait for room.

use std::time::Instant;

use super::sync::{
    AtomicUsize, Condvar, Mutex, Ordering, fence, lock, lock_by, unlock_in_turn, wait,
};
use crate::error::{Error, ErrorKind};

/// No push or call finds room any more.
const NO_REQUESTS: usize = 1 << (usize::BITS - 2);
/// Nothing finds room any more.
const CLOSED: usize = 1 << (usize::BITS - 1);
const FLAGS: usize = NO_REQUESTS | CLOSED;

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

/// Counts what waits. `used` holds the bytes, and the two closing flags in its top bits, so
/// that no reservation can slip past a close.
pub(super) struct Room {
    bound: Bound,
    used: AtomicUsize,
    messages: AtomicUsize,
    waiters: AtomicUsize,
    /// Held by the one sender that waits for `freed`; the others wait for it in turn.
    turn: Mutex<()>,
    mutex: Mutex<()>,
    freed: Condvar,
}

impl Room {
    pub(super) fn new(bound: Bound) -> Self {
        Room {
            bound,
            used: AtomicUsize::new(0),
            messages: AtomicUsize::new(0),
            waiters: AtomicUsize::new(0),
            turn: Mutex::new(()),
            mutex: Mutex::new(()),
            freed: Condvar::new(),
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst) & !FLAGS
    }

    pub(super) fn reserve(&self, bytes: usize, class: Class) -> Result<(), Error> {
        // Who comes now does not overtake who waits.
        if class == Class::Request && self.waiters.load(Ordering::Relaxed) > 0 {
            return Err(self.full());
        }
        self.admit(bytes, class)
    }

    fn admit(&self, bytes: usize, class: Class) -> Result<(), Error> {
        let (bound, refusing) = match class {
            Class::Request => (self.bound.bytes, FLAGS),
            Class::Reply => (self.bound.bytes + self.bound.reply_reserve, CLOSED),
            Class::Control => (usize::MAX, CLOSED),
        };
        let most = match class {
            Class::Request => self.bound.messages,
            Class::Reply | Class::Control => self.bound.messages + self.bound.replies,
        };
        if self.messages.load(Ordering::Relaxed) >= most {
            // A closed queue says so even when it is full.
            return Err(match self.used.load(Ordering::Relaxed) & refusing {
                0 => self.full(),
                _ => closed(),
            });
        }
        let mut seen = self.used.load(Ordering::Relaxed);
        loop {
            if seen & refusing != 0 {
                return Err(closed());
            }
            let waiting = seen & !FLAGS;
            // One frame over the bound is admitted alone.
            if waiting != 0 && waiting.saturating_add(bytes) > bound {
                return Err(self.full());
            }
            match self.used.compare_exchange_weak(
                seen,
                seen + bytes,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        self.messages.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Waits for room in the order of coming.
    pub(super) fn reserve_by(&self, bytes: usize, deadline: Option<Instant>) -> Result<(), Error> {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let reserved = match lock_by(&self.turn, deadline) {
            None => Err(self.full()),
            Some(turn) => {
                let reserved = self.wait_for(deadline, || self.admit(bytes, Class::Request));
                unlock_in_turn(turn);
                reserved
            }
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        reserved
    }

    pub(super) fn wait_settled(&self, deadline: Option<Instant>) -> bool {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let settled = self.wait_for(deadline, || match self.used() {
            0 => Ok(()),
            _ if self.used.load(Ordering::SeqCst) & CLOSED != 0 => Err(closed()),
            _ => Err(self.full()),
        });
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        settled.is_ok()
    }

    /// Tries until it succeeds, the queue closes, or the deadline passes. The caller is counted
    /// as a waiter before its first try, so whoever frees room after that try wakes it.
    fn wait_for(
        &self,
        deadline: Option<Instant>,
        attempt: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut guard = lock(&self.mutex);
        loop {
            fence(Ordering::SeqCst);
            match attempt() {
                Err(error) if error.kind() == ErrorKind::QueueFull => {
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
        let before = self.used.fetch_sub(bytes, Ordering::SeqCst);
        let messages_before = self.messages.fetch_sub(messages, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) == 0 {
            return;
        }
        // Waking at half the bound lets a waiter queue a run of messages instead of one.
        let left = (before & !FLAGS) - bytes;
        if left <= self.bound.bytes / 2 && messages_before - messages <= self.bound.messages / 2 {
            self.wake();
        }
    }

    pub(super) fn close_to_requests(&self) {
        self.used.fetch_or(NO_REQUESTS, Ordering::SeqCst);
        self.wake();
    }

    pub(super) fn close(&self) {
        self.used.fetch_or(FLAGS, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        let _guard = lock(&self.mutex);
        self.freed.notify_all();
    }

    fn full(&self) -> Error {
        Error::new(
            ErrorKind::QueueFull,
            format!(
                "the send queue is full: limits.queued_bytes is {}, limits.queued_messages {}",
                self.bound.bytes, self.bound.messages
            ),
        )
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the session is closed")
}
