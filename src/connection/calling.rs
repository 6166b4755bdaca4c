//! Calls of this side: opened, waited for, answered, given up.

use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::MutexGuard;

use super::seat;
use super::waiter::{Callback, Caller, Waiter, outcome};
use super::{Company, Connection, Wait};
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::link::calls::{Allowance, Calls, Completion};
use crate::message::{Kind, MessageRef};
use crate::protocol::native::handshake::PeerLimits;
use crate::stats::bump;

/// What a call counts beside its body, so that the peer's reserve for replies also holds their
/// headers.
pub(crate) const OVERHEAD: usize = 64;

const BACKLOG_FULL: &str = "the backlog (limits.backlog_bytes, limits.backlog_messages) is full while a handler, or who empties the inbox or works in the pool, waits for a call";

/// The calls that wait for replies, and how many callers wait to open one.
pub(super) struct OpenCalls {
    calls: Calls<Caller>,
    waiting: usize,
    /// When the timer looks for calls whose time has passed.
    watched: Option<Instant>,
}

impl OpenCalls {
    pub(super) fn new(limits: &Limits, peer: &PeerLimits) -> Self {
        OpenCalls {
            calls: Calls::new(Allowance {
                calls: limits.pending_calls.min(peer.calls) as usize,
                bytes: peer.call_bytes as usize,
            }),
            waiting: 0,
            watched: None,
        }
    }

    pub(super) fn open_calls(&self) -> usize {
        self.calls.open_calls()
    }

    pub(super) fn peak(&self) -> usize {
        self.calls.peak()
    }

    /// Nobody waits for a call with this deadline: the timer is to end it. The answer is the
    /// time that it has to be told.
    fn watch(&mut self, deadline: Option<Instant>) -> Option<Instant> {
        let earlier = deadline.filter(|new| self.watched.is_none_or(|watched| *new < watched))?;
        self.watched = Some(earlier);
        Some(earlier)
    }
}

impl Connection {
    /// Opens a call and sends it; the sequence is for [`give_up_call`](Self::give_up_call).
    ///
    /// Waits until `deadline` for room in the queue and among the calls in flight.
    pub(crate) fn open_call(
        &self,
        mut message: MessageRef<'_>,
        caller: Caller,
        deadline: Option<Instant>,
    ) -> Result<u32, Error> {
        self.check_carries(Kind::Call)?;
        let runs_callback = matches!(caller, Caller::Callback(_));
        let watch = deadline.filter(|_| runs_callback);
        let (sequence, company) = self.admit_call(&message, caller, deadline, watch)?;
        message.sequence = sequence;
        message.parent = message.parent.or_else(|| seat::parent_on(self));
        if let Err(error) = self.send(&message, Wait::Until(deadline), company) {
            let mut open = self.calls.lock();
            let caller = open.calls.withdraw(sequence);
            bump(&self.counters.others.calls_sent, 1_u64.wrapping_neg());
            self.call_ended(open);
            // Otherwise the call has ended with the connection, and its callback has run.
            if caller.is_some() || !runs_callback {
                return Err(error);
            }
        }
        Ok(sequence)
    }

    fn admit_call(
        &self,
        message: &MessageRef<'_>,
        mut caller: Caller,
        deadline: Option<Instant>,
        watch: Option<Instant>,
    ) -> Result<(u32, Company), Error> {
        let bytes = message.body.len() + OVERHEAD;
        let mut open = self.calls.lock();
        loop {
            match open.calls.open(caller, bytes, deadline) {
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
                Err(refused) => caller = refused,
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
            Completion::Waiting(Caller::Thread(waiter)) => waiter.fill(outcome(reply)),
            Completion::Waiting(Caller::Callback(callback)) => return Ok(Some(callback)),
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
            Some(caller) => *caller = Caller::Callback(callback),
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
        let waiter = self.calls.lock().calls.abandon(sequence);
        if waiter.is_none() {
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
            // The timer's thread does not write.
            self.wake_writer();
        }
        next
    }

    /// A call has ended without a reply; a callback is run on the callback thread.
    fn fail_caller(&self, caller: Caller, error: Error) {
        let callback = match caller {
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
        let released = open.calls.abandon_if(Caller::is_awaited);
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
        "no reply within the time limit of the call (timeouts.call, or its own)",
    )
}
