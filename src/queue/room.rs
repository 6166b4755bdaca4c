//! The bound of the queue: bytes and messages that may wait, and those who wait for room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lease::Lease;
use super::sync::{AtomicUsize, Condvar, Mutex, Ordering, Word, fence, lock, wait};
use crate::memory::{Account, Cap};

/// Bits of the word that hold the bytes; the messages are above them.
const BYTES_BITS: u32 = 36;
const BYTES: u64 = (1 << BYTES_BITS) - 1;
const MESSAGES: u64 = (1 << 26) - 1;
/// No push or call finds room any more.
const NO_REQUESTS: u64 = 1 << 62;
/// Nothing finds room any more.
const CLOSED: u64 = 1 << 63;
/// How often those whom only a memory cap stops look again: nobody tells them when another
/// session gives something back.
const AGAIN: Duration = Duration::from_millis(50);

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
    used: Word,
    lease: Lease,
    /// The most bytes that were in use at once.
    peak: AtomicUsize,
    /// Who waits for room, or for everything to be released.
    waiters: AtomicUsize,
    /// Those of them that wait for room.
    senders: AtomicUsize,
    line: Mutex<Line>,
    changed: Condvar,
}

/// The senders that wait for room, in the order of coming. Whoever releases room gives it to
/// them, so that one who is slow to wake finds it still there.
#[derive(Default)]
struct Line {
    next: u64,
    /// Tickets below this one have their room.
    granted: u64,
    waiting: VecDeque<(u64, usize)>,
    /// What stopped the first of them.
    shortage: Option<Shortage>,
}

impl Line {
    fn shortage(&self) -> Shortage {
        self.shortage.unwrap_or(Shortage::Queue)
    }

    /// Until when who waits sleeps, and whether that is only to look again.
    fn wait_until(&self, deadline: Option<Instant>) -> (Option<Instant>, bool) {
        if !matches!(self.shortage, Some(Shortage::Memory(_))) {
            return (deadline, false);
        }
        let again = Instant::now() + AGAIN;
        match deadline {
            Some(deadline) if deadline <= again => (Some(deadline), false),
            _ => (Some(again), true),
        }
    }
}

impl Room {
    pub(super) fn new(bound: Bound, account: Arc<Account>) -> Self {
        Room {
            lease: Lease::new(account, bound.uncounted),
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

    pub(super) fn used(&self) -> usize {
        fence(Ordering::SeqCst);
        (self.used.load() & BYTES) as usize
    }

    pub(super) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    pub(super) fn fill(&self) -> f64 {
        let used = self.used.load();
        let bytes = (used & BYTES) as f64 / self.bound.bytes as f64;
        let messages = ((used >> BYTES_BITS) & MESSAGES) as f64 / self.bound.messages as f64;
        bytes.max(messages)
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

    fn admit(&self, bytes: usize, class: Class) -> Result<(), Refusal> {
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
                    // The lease may have ended just before.
                    if is_counted && !self.lease.covers(in_use) {
                        self.lease.follow(in_use);
                    }
                    self.note_peak(in_use);
                    return Ok(());
                }
                Err(now) => seen = now,
            }
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

    fn note_peak(&self, used: usize) {
        if used > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(used, Ordering::Relaxed);
        }
    }

    /// Waits for room in the order of coming.
    pub(super) fn reserve_by(
        &self,
        bytes: usize,
        deadline: Option<Instant>,
    ) -> Result<(), Refusal> {
        let mut line = lock(&self.line);
        // Counted before the first try, so that whoever releases room after it sees the waiter.
        self.waiters.fetch_add(1, Ordering::SeqCst);
        self.senders.fetch_add(1, Ordering::SeqCst);
        let ticket = line.next;
        line.next += 1;
        line.waiting.push_back((ticket, bytes));
        self.grant(&mut line);
        let reserved = loop {
            if line.granted > ticket {
                break Ok(());
            }
            if self.used.load() & NO_REQUESTS != 0 {
                break Err(Refusal::Closed);
            }
            let (until, looks_again) = line.wait_until(deadline);
            let notified;
            (line, notified) = wait(&self.changed, line, until);
            if !notified {
                self.grant(&mut line);
                if line.granted <= ticket && !looks_again {
                    break Err(Refusal::Full(line.shortage()));
                }
            }
        };
        if reserved.is_err() {
            line.waiting.retain(|(other, _)| *other != ticket);
            self.senders.fetch_sub(1, Ordering::SeqCst);
            self.grant(&mut line);
        }
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        reserved
    }

    /// Gives room to those who wait, as far as it reaches.
    fn grant(&self, line: &mut Line) {
        fence(Ordering::SeqCst);
        let before = line.granted;
        line.shortage = None;
        while let Some((ticket, bytes)) = line.waiting.front().copied() {
            if let Err(refusal) = self.admit(bytes, Class::Request) {
                if let Refusal::Full(shortage) = refusal {
                    line.shortage = Some(shortage);
                }
                break;
            }
            line.waiting.pop_front();
            line.granted = ticket + 1;
            self.senders.fetch_sub(1, Ordering::SeqCst);
        }
        if line.granted != before {
            self.changed.notify_all();
        }
    }

    pub(super) fn wait_settled(&self, deadline: Option<Instant>) -> bool {
        let mut line = lock(&self.line);
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let mut notified = true;
        let settled = loop {
            if self.used() == 0 {
                break true;
            }
            if !notified || self.used.load() & CLOSED != 0 {
                break false;
            }
            (line, notified) = wait(&self.changed, line, deadline);
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        settled
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

    /// Nothing will be released for a while: those who wait get what room there is.
    pub(super) fn pause(&self) {
        if self.waiters.load(Ordering::SeqCst) > 0 {
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
        let mut line = lock(&self.line);
        self.grant(&mut line);
        self.changed.notify_all();
    }
}
