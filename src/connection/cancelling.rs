//! Calls of the peer that it has given up, and the calls that their handlers wait for.
//!
//! A number is noted here only from its cancel to its answer, or until it comes again in a new
//! call: no later call is taken for one that was given up. As long as nothing is noted, calls
//! and answers look at a flag and no more.

use std::collections::{HashMap, VecDeque};
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{Connection, seat};
use crate::error::{Error, ErrorKind};

/// So many numbers are noted; of more the oldest are forgotten, and their handlers just run on.
const MOST: usize = 1024;

#[derive(Default)]
pub(super) struct Cancelling {
    /// Whether any number is noted, and any nested call; written under the lock.
    any_cancelled: AtomicBool,
    any_nested: AtomicBool,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    /// The calls that were given up, in that order.
    cancelled: VecDeque<u32>,
    /// What was called for open calls of the peer, by their numbers.
    nested: HashMap<u32, Vec<Nested>>,
    /// The nested calls so far.
    count: usize,
}

/// A call of this side, made by the handler of a call of the peer.
struct Nested {
    number: usize,
    connection: Weak<Connection>,
    sequence: u32,
}

impl Nested {
    fn cancel(&self) {
        if let Some(connection) = self.connection.upgrade() {
            connection.cancel_nested(self.sequence);
        }
    }
}

/// Kept with a nested call until it ends.
pub(super) struct NestedGuard {
    parent: Weak<Connection>,
    parent_sequence: u32,
    number: usize,
}

impl Drop for NestedGuard {
    fn drop(&mut self) {
        if let Some(parent) = self.parent.upgrade() {
            parent.nested_ended(self.parent_sequence, self.number);
        }
    }
}

impl Connection {
    /// Whether the peer has given up this call of its, or can get no answer any more.
    pub(crate) fn is_cancelled(&self, sequence: u32) -> bool {
        self.is_over() || self.is_given_up(sequence)
    }

    /// Whether the peer has given up this call of its.
    pub(super) fn is_given_up(&self, sequence: u32) -> bool {
        let cancelling = &self.cancelling;
        cancelling.any_cancelled.load(Ordering::Acquire)
            && cancelling.notes.lock().cancelled.contains(&sequence)
    }

    /// The same, for the handler on this thread: as nobody could read the cancel while it runs,
    /// another thread reads from now on.
    pub(crate) fn is_cancelled_here(&self, sequence: u32) -> bool {
        if seat::is_handler_of(self) {
            // Without a thread what is known so far has to do.
            let _ = seat::before_wait();
        }
        self.is_cancelled(sequence)
    }

    /// The peer has given up a call.
    pub(super) fn call_cancelled(&self, sequence: u32) {
        let mut notes = self.cancelling.notes.lock();
        // 0 is the number of pushes.
        if sequence == 0 || self.incoming() == 0 {
            return;
        }
        if !notes.cancelled.contains(&sequence) {
            if notes.cancelled.len() == MOST {
                notes.cancelled.pop_front();
            }
            notes.cancelled.push_back(sequence);
            self.cancelling.any_cancelled.store(true, Ordering::Release);
        }
        let nested = notes.nested.remove(&sequence).unwrap_or_default();
        drop(notes);
        nested.iter().for_each(Nested::cancel);
    }

    /// A new call has this number: an old cancel is not for it.
    pub(super) fn number_comes(&self, sequence: u32) {
        if self.cancelling.any_cancelled.load(Ordering::Relaxed) {
            let mut notes = self.cancelling.notes.lock();
            notes.cancelled.retain(|noted| *noted != sequence);
        }
    }

    /// A call of the peer is answered: what was noted for it goes.
    pub(super) fn forget_cancel(&self, sequence: u32) {
        let cancelling = &self.cancelling;
        if !cancelling.any_cancelled.load(Ordering::Acquire)
            && !cancelling.any_nested.load(Ordering::Acquire)
        {
            return;
        }
        let mut notes = cancelling.notes.lock();
        notes.cancelled.retain(|noted| *noted != sequence);
        if self.incoming() == 0 {
            notes.cancelled.clear();
        }
        let nested = notes.nested.remove(&sequence);
        self.note_emptiness(&notes);
        drop(notes);
        drop(nested);
    }

    fn note_emptiness(&self, notes: &Notes) {
        let cancelling = &self.cancelling;
        let (any_cancelled, any_nested) = (!notes.cancelled.is_empty(), !notes.nested.is_empty());
        cancelling
            .any_cancelled
            .store(any_cancelled, Ordering::Release);
        cancelling.any_nested.store(any_nested, Ordering::Release);
    }

    /// A handler of this connection has called elsewhere, or back: that call ends with the
    /// cancel of its own. `None` if it was given up already.
    pub(super) fn note_nested(
        &self,
        parent_sequence: u32,
        connection: Weak<Connection>,
        sequence: u32,
    ) -> Option<NestedGuard> {
        let mut notes = self.cancelling.notes.lock();
        if self.is_over() || notes.cancelled.contains(&parent_sequence) {
            return None;
        }
        notes.count = notes.count.wrapping_add(1);
        let number = notes.count;
        notes
            .nested
            .entry(parent_sequence)
            .or_default()
            .push(Nested {
                number,
                connection,
                sequence,
            });
        self.cancelling.any_nested.store(true, Ordering::Release);
        Some(NestedGuard {
            parent: self.me.clone(),
            parent_sequence,
            number,
        })
    }

    fn nested_ended(&self, parent_sequence: u32, number: usize) {
        let mut notes = self.cancelling.notes.lock();
        if let Some(nested) = notes.nested.get_mut(&parent_sequence) {
            nested.retain(|nested| nested.number != number);
            if nested.is_empty() {
                notes.nested.remove(&parent_sequence);
            }
        }
        self.note_emptiness(&notes);
    }

    /// The connection has ended: nobody wants what its handlers wait for.
    pub(super) fn cancel_all_nested(&self) {
        let mut notes = self.cancelling.notes.lock();
        let nested = std::mem::take(&mut notes.nested);
        drop(notes);
        nested.values().flatten().for_each(Nested::cancel);
    }

    /// A call of this side ends, as the one for which it was made has; its peer is told.
    fn cancel_nested(&self, sequence: u32) {
        let caller = self.abandon_call(sequence);
        if let Some(caller) = caller {
            self.counters.others.calls_given_up.fetch_add(1);
            self.put_cancel(sequence);
            // This may be the timer's thread, which leaves the writing of messages to others.
            self.wake_writer();
            self.fail_caller(caller, cancelled());
        }
    }
}

/// The error of a nested call that was sent.
pub(super) fn cancelled() -> Error {
    Error::after_sending(
        ErrorKind::Cancelled,
        "the caller of the handler that made this call has given up",
    )
}
