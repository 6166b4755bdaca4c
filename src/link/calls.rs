//! The calls of this side that wait for replies, by sequence number.
//!
//! A sequence is a slot's index (low 16 bits) and the slot's generation (high 16 bits, never 0),
//! so it is never 0. A slot is free again only when its reply has come: a call that timed out
//! keeps its number, and its place in the count, until then. So no late reply can reach another
//! caller, and a peer that never answers is found by the limit.

use std::collections::VecDeque;
use std::time::Instant;

/// The most calls that the numbering can hold open.
pub(crate) const MOST: usize = 1 << 16;

/// How much may be open at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) calls: usize,
    pub(crate) bytes: usize,
}

/// What a reply's sequence stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Completion<W> {
    /// The waiter of the call.
    Waiting(W),
    /// The call ended before, by time limit or cancellation.
    Late,
    /// No such call was ever open, or its reply has come already.
    Unknown,
}

#[derive(Debug)]
enum State<W> {
    Free,
    Waiting(W),
    /// The waiter has left; the reply has not come.
    Abandoned,
}

#[derive(Debug)]
struct Slot<W> {
    generation: u16,
    state: State<W>,
    bytes: usize,
    expires: Option<Instant>,
}

impl<W> Slot<W> {
    fn sequence(&self, index: usize) -> u32 {
        u32::from(self.generation) << 16 | index as u32
    }

    /// The waiter leaves an open call; `None` if there is none.
    fn leave(&mut self, index: usize) -> Option<(u32, W)> {
        if !matches!(self.state, State::Waiting(_)) {
            return None;
        }
        self.expires = None;
        match std::mem::replace(&mut self.state, State::Abandoned) {
            State::Waiting(waiter) => Some((self.sequence(index), waiter)),
            State::Free | State::Abandoned => None,
        }
    }
}

/// The open calls. `W` is whatever waits.
#[derive(Debug)]
pub(crate) struct Calls<W> {
    slots: Vec<Slot<W>>,
    free: VecDeque<u16>,
    allowance: Allowance,
    open: usize,
    /// The most that were open at once.
    peak: usize,
    bytes: usize,
    closed: bool,
}

impl<W> Calls<W> {
    pub(crate) fn new(allowance: Allowance) -> Self {
        Calls {
            slots: Vec::new(),
            free: VecDeque::new(),
            allowance: Allowance {
                calls: allowance.calls.min(MOST),
                ..allowance
            },
            open: 0,
            peak: 0,
            bytes: 0,
            closed: false,
        }
    }

    /// Whether a call with a body of this size may be opened now.
    pub(crate) fn admits(&self, bytes: usize) -> bool {
        self.open < self.allowance.calls
            && (self.open == 0 || self.bytes.saturating_add(bytes) <= self.allowance.bytes)
    }

    /// Whether no call can be opened any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Calls whose reply has not come.
    pub(crate) fn open_calls(&self) -> usize {
        self.open
    }

    /// The most calls that were open at once.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    pub(crate) fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// Opens a call and gives its sequence; the waiter comes back if the calls are closed or
    /// the call is not [admitted](Calls::admits). At `expires`, [`expire`](Calls::expire) takes
    /// the waiter out.
    pub(crate) fn open(
        &mut self,
        waiter: W,
        bytes: usize,
        expires: Option<Instant>,
    ) -> Result<u32, W> {
        if self.closed || !self.admits(bytes) {
            return Err(waiter);
        }
        let index = match self.free.pop_front() {
            Some(index) => index,
            None => {
                self.slots.push(Slot {
                    generation: 0,
                    state: State::Free,
                    bytes: 0,
                    expires: None,
                });
                (self.slots.len() - 1) as u16
            }
        };
        let Some(slot) = self.slots.get_mut(usize::from(index)) else {
            return Err(waiter);
        };
        slot.generation = slot.generation.checked_add(1).unwrap_or(1);
        slot.state = State::Waiting(waiter);
        slot.bytes = bytes;
        slot.expires = expires;
        self.open += 1;
        self.peak = self.peak.max(self.open);
        self.bytes += bytes;
        Ok(slot.sequence(usize::from(index)))
    }

    fn slot(&mut self, sequence: u32) -> Option<&mut Slot<W>> {
        let slot = self.slots.get_mut((sequence & 0xFFFF) as usize)?;
        (u32::from(slot.generation) == sequence >> 16).then_some(slot)
    }

    /// A reply has come: the number is free again.
    pub(crate) fn complete(&mut self, sequence: u32) -> Completion<W> {
        let Some(slot) = self.slot(sequence) else {
            return Completion::Unknown;
        };
        let completion = match std::mem::replace(&mut slot.state, State::Free) {
            State::Free => return Completion::Unknown,
            State::Waiting(waiter) => Completion::Waiting(waiter),
            State::Abandoned => Completion::Late,
        };
        let bytes = std::mem::take(&mut slot.bytes);
        slot.expires = None;
        self.bytes -= bytes;
        self.open -= 1;
        self.free.push_back((sequence & 0xFFFF) as u16);
        completion
    }

    /// The waiter leaves before the reply has come; `None` if there is none any more.
    pub(crate) fn abandon(&mut self, sequence: u32) -> Option<W> {
        let index = (sequence & 0xFFFF) as usize;
        let (_, waiter) = self.slot(sequence)?.leave(index)?;
        Some(waiter)
    }

    /// The call was never sent: its number is free again.
    pub(crate) fn withdraw(&mut self, sequence: u32) -> Option<W> {
        match self.complete(sequence) {
            Completion::Waiting(waiter) => Some(waiter),
            Completion::Late | Completion::Unknown => None,
        }
    }

    /// The waiter of an open call, which stays open.
    pub(crate) fn waiter(&mut self, sequence: u32) -> Option<&mut W> {
        match &mut self.slot(sequence)?.state {
            State::Waiting(waiter) => Some(waiter),
            State::Free | State::Abandoned => None,
        }
    }

    /// Takes out all waiters whose time has come, as [`abandon`](Calls::abandon) does.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<(u32, W)> {
        let mut expired = Vec::new();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.expires.is_none_or(|expires| expires > now) {
                continue;
            }
            expired.extend(slot.leave(index));
        }
        expired
    }

    /// Takes out the waiters that `leaves` picks, as [`abandon`](Calls::abandon) does.
    pub(crate) fn abandon_if(&mut self, leaves: impl Fn(&W) -> bool) -> Vec<(u32, W)> {
        let mut left = Vec::new();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if !matches!(&slot.state, State::Waiting(waiter) if leaves(waiter)) {
                continue;
            }
            left.extend(slot.leave(index));
        }
        left
    }

    /// When the next waiter expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.slots.iter().filter_map(|slot| slot.expires).min()
    }

    /// No call can be opened any more; all waiters come out.
    pub(crate) fn close(&mut self) -> Vec<(u32, W)> {
        self.closed = true;
        self.open = 0;
        self.bytes = 0;
        self.free.clear();
        std::mem::take(&mut self.slots)
            .into_iter()
            .enumerate()
            .filter_map(|(index, mut slot)| slot.leave(index))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn calls(calls: usize, bytes: usize) -> Calls<&'static str> {
        Calls::new(Allowance { calls, bytes })
    }

    #[test]
    fn a_reply_reaches_its_waiter_once() {
        let mut calls = calls(10, 100);
        let a = calls.open("a", 1, None).unwrap();
        let b = calls.open("b", 1, None).unwrap();
        assert_ne!(a, b);
        assert_eq!(calls.complete(b), Completion::Waiting("b"));
        assert_eq!(calls.complete(b), Completion::Unknown);
        assert_eq!(calls.complete(a), Completion::Waiting("a"));
        assert_eq!((calls.open_calls(), calls.peak()), (0, 2));
    }

    #[test]
    fn numbers_that_were_never_issued_are_unknown() {
        let mut calls = calls(10, 100);
        let a = calls.open("a", 1, None).unwrap();
        for sequence in [0, 1, 77, a ^ 0x8000_0000, u32::MAX] {
            assert_eq!(calls.complete(sequence), Completion::Unknown);
        }
    }

    #[test]
    fn an_abandoned_number_is_not_reused_before_its_late_reply() {
        let mut calls = calls(2, 100);
        let first = calls.open("first", 1, None).unwrap();
        assert_eq!(calls.abandon(first), Some("first"));
        assert_eq!(calls.abandon(first), None);
        for _ in 0..200_000 {
            let next = calls.open("next", 1, None).unwrap();
            assert_ne!(next, first);
            assert_eq!(calls.complete(next), Completion::Waiting("next"));
        }
        assert_eq!(calls.complete(first), Completion::Late);
        assert_eq!(calls.open_calls(), 0);
    }

    #[test]
    fn abandoned_calls_count_until_they_are_answered() {
        let mut calls = calls(2, 100);
        let a = calls.open("a", 1, None).unwrap();
        calls.open("b", 1, None).unwrap();
        calls.abandon(a);
        assert_eq!(calls.open("c", 1, None), Err("c"));
        calls.complete(a);
        calls.open("c", 1, None).unwrap();
    }

    #[test]
    fn bytes_are_bounded_but_one_large_call_is_admitted_alone() {
        let mut calls = calls(10, 100);
        let large = calls.open("large", 1000, None).unwrap();
        assert!(!calls.admits(0));
        calls.complete(large);
        calls.open("a", 60, None).unwrap();
        assert!(!calls.admits(60));
        assert!(calls.admits(40));
    }

    #[test]
    fn numbers_wrap_without_zero_and_without_touching_open_ones() {
        let mut calls = calls(2, 100);
        let held = calls.open("held", 1, None).unwrap();
        for _ in 0..70_000 {
            let sequence = calls.open("short", 1, None).unwrap();
            assert!(sequence != 0 && sequence != held);
            assert_eq!(calls.complete(sequence), Completion::Waiting("short"));
        }
        assert_eq!(calls.complete(held), Completion::Waiting("held"));
    }

    #[test]
    fn only_what_is_due_expires() {
        let mut calls = calls(10, 100);
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let early = calls.open("early", 1, Some(now)).unwrap();
        calls.open("late", 1, Some(later)).unwrap();
        calls.open("never", 1, None).unwrap();
        assert_eq!(calls.next_expiry(), Some(now));
        assert_eq!(calls.expire(now), [(early, "early")]);
        assert_eq!(calls.next_expiry(), Some(later));
        assert_eq!(calls.complete(early), Completion::Late);
    }

    #[test]
    fn closing_gives_all_waiters_back_and_admits_none() {
        let mut calls = calls(10, 100);
        let a = calls.open("a", 1, None).unwrap();
        let b = calls.open("b", 1, None).unwrap();
        assert_eq!(calls.close(), [(a, "a"), (b, "b")]);
        assert_eq!(calls.open("c", 1, None), Err("c"));
    }
}
