//! Those who wait for room, or for everything to be released.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::room::{CLOSED, Class, NO_REQUESTS, Refusal, Room, Shortage};
use super::sync::{Ordering, fence, lock, wait};

/// How often those whom only a memory cap stops look again: nobody tells them when another
/// session gives something back.
const AGAIN: Duration = Duration::from_millis(50);

/// The senders that wait for room, in the order of coming. Whoever releases room gives it to
/// them, so that one who is slow to wake finds it still there.
#[derive(Default)]
pub(super) struct Line {
    next: u64,
    /// Tickets below this one have their room.
    granted: u64,
    waiting: VecDeque<(u64, usize)>,
    /// What stopped the first of them.
    shortage: Option<Shortage>,
}

impl Line {
    pub(super) fn shortage(&self) -> Shortage {
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
            if self.is_settled() {
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

    /// Nothing will be released for a while: those who wait get what room there is.
    pub(super) fn pause(&self) {
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }

    pub(super) fn wake(&self) {
        let mut line = lock(&self.line);
        self.grant(&mut line);
        self.changed.notify_all();
    }
}
