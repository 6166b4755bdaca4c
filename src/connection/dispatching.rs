//! Pushes and calls on their way to user code: now, or in their order after a handler that waits.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::order::Held;
use super::reading::Reader;
use super::serving::ServedCall;
use super::{Arrival, Receiver};
use crate::message::{Kind, MessageRef};

impl<D: Receiver> Reader<D> {
    /// User code runs that may take long, while messages lie behind it in the buffer.
    pub(super) fn note_arrival(&self) {
        let mut buffer = self.buffer.borrow_mut();
        if !buffer.is_empty() {
            buffer.came();
        }
    }

    /// A push or call: now, or in its order after the handler that waits.
    pub(super) fn request(&self, message: &MessageRef<'_>, size: usize) {
        let connection = self.connection();
        if message.kind == Kind::Call {
            let open = connection.call_came(message.sequence);
            if open >= connection.config.limits.incoming_calls as usize {
                connection.count_received(size, true);
                return connection.answer_overloaded(message.sequence);
            }
        }
        let (at, noted) = self.buffer.borrow_mut().came();
        let arrival = &Arrival {
            wire_bytes: size,
            at,
        };
        let is_held = self.reading.order.is_away()
            && !connection.descends_from_open_call(message)
            && self.hold(message, arrival);
        if !is_held {
            self.dispatch(message, arrival, noted);
        }
    }

    /// Holds a message back; `false` if it is to be dispatched now, in its order.
    fn hold(&self, message: &MessageRef<'_>, arrival: &Arrival) -> bool {
        let size = arrival.wire_bytes;
        let connection = self.connection();
        let limits = &connection.config.limits;
        if message.kind == Kind::Push {
            connection.held.fetch_add(1, Ordering::SeqCst);
        }
        let full = &connection.backlog_full;
        loop {
            match self.reading.order.hold(message, *arrival, limits, full) {
                Held::Yes => return true,
                Held::InOrder => {
                    connection.let_go(message.kind);
                    return false;
                }
                Held::Full if message.kind == Kind::Call => {
                    connection.count_received(size, true);
                    connection.answer_overloaded(message.sequence);
                    return true;
                }
                Held::Full => {
                    connection.drain_gathered();
                    connection.release_awaited();
                    self.reading.order.wait_for_room(size, limits);
                }
            }
        }
    }

    /// Runs user code. If it hands the reading over while another thread is the dispatcher
    /// away, it was let past the order.
    #[inline]
    pub(super) fn handle(&self, call: Option<ServedCall>, run: impl FnOnce()) {
        if !self.seat.has_handed_over() {
            self.nested.set(self.reading.order.is_away());
        }
        self.seat.handle(call, run);
    }

    /// `noted` is when its arrival was noted, if that was this moment.
    fn dispatch(&self, message: &MessageRef<'_>, arrival: &Arrival, noted: Option<Instant>) {
        let connection = self.connection();
        connection.count_received(arrival.wire_bytes, self.reading.order.is_away());
        if message.kind == Kind::Call && connection.is_closing() {
            return connection.answer_going_away(message.sequence);
        }
        let call = (message.kind == Kind::Call).then(|| ServedCall {
            sequence: message.sequence,
            deadline: connection.deadline_of(message, arrival.at),
        });
        let sample = self.sampling.next(noted);
        let mut handled = false;
        self.handle(call, || {
            handled = self.reading.dispatch.message(message, arrival);
        });
        if let Some(sample) = sample.filter(|_| handled) {
            connection.counters.handler_times.note(sample.elapsed());
        }
    }

    /// The handler during which the reading was handed over has returned.
    pub(super) fn return_to_order(&self) {
        if self.nested.replace(false) {
            self.reading.order.nested_returns();
        } else {
            self.work_off_backlog();
        }
    }

    /// Runs what was held back, in order, until nothing is left; then the reader dispatches.
    pub(super) fn work_off_backlog(&self) {
        let connection = self.connection();
        while let Some((held, arrival)) = self.reading.order.next_held(&connection.backlog_full) {
            let message = held.as_ref();
            match connection.stale(&message, arrival.at) {
                Some(status) => connection.refuse_held(&message, &arrival, status),
                None => self.dispatch(&message, &arrival, None),
            }
            connection.let_go(message.kind);
        }
    }
}
