//! Calls of this side: opened, waited for, answered, given up.

use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::MutexGuard;

use super::cancelling::cancelled;
use super::open_calls::{OpenCall, OpenCalls};
use super::seat;
use super::serving::Served;
use super::waiter::{Callback, Caller, Waiter, outcome};
use super::{Company, Connection, Wait};
use crate::error::{Error, ErrorKind};
use crate::link::calls::{Allowance, Completion};
use crate::message::{Kind, MessageRef};
use crate::stats::bump;

/// What a call counts beside its body, so that the peer's reserve for replies also holds their
/// headers.
pub(crate) const OVERHEAD: usize = 64;

const BACKLOG_FULL: &str = "the backlog (limits.backlog_bytes, limits.backlog_messages) is full while a handler, or who empties the inbox or works in the pool, waits for a call";

impl Connection {
    /// Opens a call and sends it; the sequence is for [`give_up_call`](Self::give_up_call).
    ///
    /// Waits until `deadline` for room in the queue and among the calls in flight.
    pub(crate) fn open_call(
        &self,
        mut message: MessageRef<'_>,
        caller: Caller,
        deadline: Option<Instant>,
        served: Option<&Served>,
    ) -> Result<u32, Error> {
        self.check_carries(Kind::Call)?;
        let runs_callback = matches!(caller, Caller::Callback(_));
        let watch = deadline.filter(|_| runs_callback);
        let open = OpenCall {
            caller,
            nested: None,
        };
        let (sequence, company) = self.admit_call(&message, open, deadline, watch)?;
        message.sequence = sequence;
        message.parent = served
            .filter(|served| std::ptr::eq(&*served.connection, self))
            .map(|served| served.call.sequence);
        if let Err(error) = self.send(&message, Wait::Until(deadline), company) {
            let mut open = self.calls.lock();
            let caller = open.calls.withdraw(sequence);
            bump(&self.counters.others.calls_sent, 1_u64.wrapping_neg());
            self.call_ended(open);
            // Otherwise the call has ended with the connection, and its callback has run.
            if caller.is_some() || !runs_callback {
                return Err(error);
            }
        } else if let Some(served) = served {
            self.end_with(served, sequence)?;
        }
        Ok(sequence)
    }

    /// A call that was sent ends when the one that its handler serves is given up.
    fn end_with(&self, served: &Served, sequence: u32) -> Result<(), Error> {
        let parent = &served.connection;
        let noted = parent.note_nested(served.call.sequence, self.me.clone(), sequence);
        let Some(guard) = noted else {
            return match self.give_up_call(sequence) {
                true => Err(cancelled()),
                false => Ok(()),
            };
        };
        let mut open = self.calls.lock();
        let left = match open.calls.waiter(sequence) {
            Some(call) => call.nested.replace(Box::new(guard)),
            None => Some(Box::new(guard)),
        };
        drop(open);
        drop(left);
        Ok(())
    }

    /// The caller leaves, if there is one.
    pub(super) fn abandon_call(&self, sequence: u32) -> Option<OpenCall> {
        self.calls.lock().calls.abandon(sequence)
    }

    fn admit_call(
        &self,
        message: &MessageRef<'_>,
        mut call: OpenCall,
        deadline: Option<Instant>,
        watch: Option<Instant>,
    ) -> Result<(u32, Company), Error> {
        let bytes = message.body.len() + OVERHEAD;
        let mut open = self.calls.lock();
        loop {
            match open.calls.open(call, bytes, deadline) {
                Ok(sequence) => {
                    bump(&self.counters.others.calls_sent, 1);
                    let check = open.watch(watch);
                    let company = match open.calls.open_calls() {
                        1 => Company::Alone,
                        _ => Company::Crowded,
                    };
                    drop(open);
                    if let Some(check) = check {
                        self.schedule(check);
                    }
                    return Ok((sequence, company));
                }
                Err(refused) => call = refused,
            }
            if open.calls.is_closed() {
                drop(open);
                return Err(self.closed_error());
            }
            drop(open);
            // For what the peer never takes a place would be of no use.
            self.send_limits().check_message(message)?;
            seat::before_wait()?;
            open = self.calls.lock();
            if open.calls.admits(bytes) || open.calls.is_closed() {
                continue;
            }
            if self.is_awaited_here() {
                self.check_backlog()?;
            }
            open.waiting += 1;
            let timed_out = match deadline {
                Some(deadline) => self.calls_freed.wait_until(&mut open, deadline).timed_out(),
                None => {
                    self.calls_freed.wait(&mut open);
                    false
                }
            };
            open.waiting -= 1;
            if timed_out && !open.calls.admits(bytes) && !open.calls.is_closed() {
                self.counters.others.calls_refused.fetch_add(1);
                let Allowance { calls, bytes } = open.calls.allowance();
                return Err(Error::new(
                    ErrorKind::TooManyInFlight,
                    format!(
                        "{calls} calls (limits.pending_calls, or limits.incoming_calls of the peer) \
                         or {bytes} bytes of calls (limits.incoming_call_bytes of the peer) are in flight"
                    ),
                ));
            }
        }
    }

    /// After a call left the table: lets a waiting caller in, and a close go on.
    fn call_ended(&self, open: MutexGuard<'_, OpenCalls>) {
        let waiting = open.waiting;
        drop(open);
        if waiting > 0 {
            self.calls_freed.notify_all();
        }
        if self.is_closing() {
            self.update_closing();
        }
    }

    /// A reply has come: fills its waiter. The answer is a callback that is to be run now, with
    /// the [`outcome`](super::waiter::outcome).
    pub(super) fn complete_call(&self, reply: &MessageRef<'_>) -> Result<Option<Callback>, Error> {
        let mut open = self.calls.lock();
        let completion = open.calls.complete(reply.sequence);
        match completion {
            Completion::Unknown => drop(open),
            _ => self.call_ended(open),
        }
        match completion {
            Completion::Waiting(call) => match call.caller {
                Caller::Thread(waiter) => waiter.fill(outcome(reply)),
                Caller::Callback(callback) => return Ok(Some(callback)),
            },
            Completion::Late => {
                self.counters.reader.late_replies.fetch_add(1);
            }
            Completion::Unknown => {
                self.counters.reader.unknown_replies.fetch_add(1);
                self.spend_budget()?;
            }
        }
        Ok(None)
    }

    /// A callback takes the place of a thread that was to wait. It comes back if the call has
    /// ended, and its waiter is or will at once be filled.
    pub(crate) fn call_back_instead(
        &self,
        sequence: u32,
        callback: Callback,
        deadline: Option<Instant>,
    ) -> Result<(), Callback> {
        let mut open = self.calls.lock();
        match open.calls.waiter(sequence) {
            Some(call) => call.caller = Caller::Callback(callback),
            None => return Err(callback),
        }
        let check = open.watch(deadline);
        drop(open);
        if let Some(check) = check {
            self.schedule(check);
        }
        Ok(())
    }

    /// The caller leaves; `false` if the call has ended already, and its waiter is or will at
    /// once be filled.
    pub(crate) fn give_up_call(&self, sequence: u32) -> bool {
        if self.abandon_call(sequence).is_none() {
            return false;
        }
        self.counters.others.calls_given_up.fetch_add(1);
        self.send_cancel(sequence);
        true
    }

    /// This thread is about to wait for a call: not if it would never return, as the reply is
    /// behind messages that wait for this thread.
    pub(crate) fn begin_wait(&self, waiter: &Waiter) -> Result<(), Error> {
        seat::before_wait()?;
        if self.is_awaited_here() {
            // The mark first: either the reader that finds the backlog full sees it, or it is
            // seen here that the backlog is full.
            waiter.set_awaited(true);
            self.check_backlog()?;
        }
        Ok(())
    }

    /// This thread waits no more, though the call goes on.
    pub(crate) fn end_wait(&self, waiter: &Waiter) {
        waiter.set_awaited(false);
    }

    fn check_backlog(&self) -> Result<(), Error> {
        match self.backlog_full.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::WouldDeadlock, BACKLOG_FULL)),
            false => Ok(()),
        }
    }

    /// Waits for the outcome of a call until its deadline.
    ///
    /// Afterwards the waiter is filled, or the call is given up and the error says so.
    pub(crate) fn wait_call(
        &self,
        sequence: u32,
        waiter: &Waiter,
        start: Instant,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        if !waiter.is_done() {
            if let Err(error) = self.begin_wait(waiter) {
                if self.give_up_call(sequence) {
                    return Err(Error::after_sending(
                        error.kind(),
                        "the call was sent, but this thread cannot wait for its reply",
                    ));
                }
            }
        }
        if waiter.wait(start, deadline, true) {
            return Ok(());
        }
        if self.give_up_call(sequence) {
            return Err(call_timeout());
        }
        waiter.wait(start, None, false);
        Ok(())
    }

    /// Ends the calls whose time has passed; their callbacks run on the callback thread.
    pub(super) fn check_calls(&self, now: Instant) -> Option<Instant> {
        let mut open = self.calls.lock();
        // The search through all calls is for those times only that were asked for.
        if open.watched.is_none_or(|watched| now < watched) {
            return open.watched;
        }
        let expired = open.calls.expire(now);
        open.watched = open.calls.next_expiry();
        let next = open.watched;
        drop(open);
        let any = !expired.is_empty();
        for (sequence, caller) in expired {
            self.counters.others.calls_given_up.fetch_add(1);
            self.put_cancel(sequence);
            self.fail_caller(caller, call_timeout());
        }
        if any {
            // The timer's thread leaves the writing of messages to others.
            self.wake_writer();
        }
        next
    }

    /// A call has ended without a reply; a callback is run on the callback thread.
    pub(super) fn fail_caller(&self, call: OpenCall, error: Error) {
        let callback = match call.caller {
            Caller::Thread(waiter) => return waiter.fill(Err(error)),
            Caller::Callback(callback) => callback,
        };
        let timer = self.timer.lock().clone();
        match timer {
            Some(timer) => timer.call_back(Box::new(move || callback(Err(error)))),
            // The connection ends this moment, on another thread.
            None => self.guard(|| callback(Err(error))),
        }
    }

    /// Whether a call of the peer was made by a handler that serves an open call of this side.
    pub(crate) fn descends_from_open_call(&self, message: &MessageRef<'_>) -> bool {
        message.kind == Kind::Call
            && message.parent.is_some_and(|parent| {
                let mut open = self.calls.lock();
                open.calls.waiter(parent).is_some()
            })
    }

    /// A push cannot be held while those wait who would make room for it: ends their calls, so
    /// that they go on.
    pub(super) fn release_awaited(&self) {
        let mut open = self.calls.lock();
        if !self.backlog_full.load(Ordering::SeqCst) {
            return;
        }
        let released = open.calls.abandon_if(|call| call.caller.is_awaited());
        drop(open);
        self.calls_freed.notify_all();
        for (sequence, caller) in released {
            self.send_cancel(sequence);
            let error = Error::after_sending(ErrorKind::WouldDeadlock, BACKLOG_FULL);
            self.fail_caller(caller, error);
        }
    }

    /// Ends all calls; `was_sent` tells whether the peer may have seen one.
    pub(super) fn fail_calls(&self, reason: &Error, was_sent: impl Fn(u32) -> bool) {
        let callers = self.calls.lock().calls.close();
        self.calls_freed.notify_all();
        let disconnected = [false, true].map(|maybe_executed| {
            Error::disconnected(reason, maybe_executed).with_farewell(self.farewell())
        });
        for (sequence, caller) in callers {
            let [unsent, sent] = &disconnected;
            let error = if was_sent(sequence) { sent } else { unsent };
            self.fail_caller(caller, error.clone());
        }
    }
}

fn call_timeout() -> Error {
    Error::after_sending(
        ErrorKind::Timeout,
        "no reply within the time limit of the call (timeouts.call, its own, or that of the call whose handler made it)",
    )
}
