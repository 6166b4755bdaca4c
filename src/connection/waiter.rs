//! The place where a call waits: a slot that is filled once, polled or slept upon.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, MessageRef, Metadata};
use crate::status::StatusRef;

const OPEN: u8 = 0;
const PARKED: u8 = 1;
const DONE: u8 = 2;

/// How long a caller polls, giving its core away in between, before it sleeps.
const POLL: Duration = Duration::from_micros(50);

/// What a call came to; the body lies beside it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) codec: CodecId,
    pub(crate) metadata: Metadata,
    pub(crate) body: Vec<u8>,
}

pub(crate) type Callback = Box<dyn FnOnce(Result<Answer, Error>) + Send>;

/// A callback with what it is to be given, run without any lock held.
pub(crate) type Ready = (Callback, Result<Answer, Error>);

#[derive(Default)]
struct Slot {
    outcome: Option<Result<(CodecId, Metadata), Error>>,
    /// Kept from call to call, so that a steady caller allocates nothing.
    body: Vec<u8>,
    callback: Option<Callback>,
}

/// One call's waiting place.
#[derive(Default)]
pub(crate) struct Waiter {
    state: AtomicU8,
    slot: Mutex<Slot>,
    filled: Condvar,
    /// Whether a handler of the same connection waits here.
    in_handler: bool,
}

thread_local! {
    static SPARE: RefCell<Vec<Arc<Waiter>>> = const { RefCell::new(Vec::new()) };
}

impl Waiter {
    /// A fresh waiter, reused if this thread has one to spare.
    pub(crate) fn take(in_handler: bool) -> Arc<Waiter> {
        let spare = SPARE.with_borrow_mut(Vec::pop);
        let mut waiter = spare.unwrap_or_default();
        match Arc::get_mut(&mut waiter) {
            Some(fresh) => {
                fresh.state = AtomicU8::new(OPEN);
                fresh.in_handler = in_handler;
                let slot = fresh.slot.get_mut();
                slot.outcome = None;
                slot.callback = None;
                slot.body.clear();
                waiter
            }
            None => Arc::new(Waiter {
                in_handler,
                ..Waiter::default()
            }),
        }
    }

    /// Keeps a waiter for this thread's next call.
    pub(crate) fn give_back(waiter: Arc<Waiter>) {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < 4 {
                spare.push(waiter);
            }
        });
    }

    pub(crate) fn in_handler(&self) -> bool {
        self.in_handler
    }

    /// Fills the slot with a reply.
    pub(crate) fn reply(&self, message: &MessageRef<'_>) -> Option<Ready> {
        let status = message.status.filter(|status| status.code != 0);
        let outcome = match status.map(StatusRef::to_status) {
            Some(status) => Err(Error::from_status(ErrorKind::Status, status)),
            None => Ok((message.codec, message.metadata.to_metadata())),
        };
        self.fill(outcome, message.body)
    }

    /// Fills the slot with an error.
    pub(crate) fn fail(&self, error: Error) -> Option<Ready> {
        self.fill(Err(error), &[])
    }

    fn fill(&self, outcome: Result<(CodecId, Metadata), Error>, body: &[u8]) -> Option<Ready> {
        let mut slot = self.slot.lock();
        if slot.outcome.is_some() {
            return None;
        }
        slot.body.extend_from_slice(body);
        slot.outcome = Some(outcome);
        let ready = slot.callback.take().map(|callback| {
            let answer = slot.answer();
            (callback, answer)
        });
        let parked = self.state.swap(DONE, Ordering::AcqRel) == PARKED;
        drop(slot);
        if parked {
            self.filled.notify_all();
        }
        ready
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state.load(Ordering::Acquire) == DONE
    }

    /// Waits until the slot is filled; `false` if the deadline passed. With `poll` it first
    /// looks for a while.
    pub(crate) fn wait(&self, start: Instant, deadline: Option<Instant>, poll: bool) -> bool {
        if poll {
            while !self.is_done() && start.elapsed() < POLL {
                thread::yield_now();
            }
        }
        if self.is_done() {
            return true;
        }
        let mut slot = self.slot.lock();
        let _ = self
            .state
            .compare_exchange(OPEN, PARKED, Ordering::AcqRel, Ordering::Acquire);
        while !self.is_done() {
            match deadline {
                Some(deadline) => {
                    if self.filled.wait_until(&mut slot, deadline).timed_out() {
                        return self.is_done();
                    }
                }
                None => self.filled.wait(&mut slot),
            }
        }
        true
    }

    /// Takes the outcome out; `None` if there is none (yet, or any more).
    pub(crate) fn take_answer(&self) -> Option<Result<Answer, Error>> {
        let mut slot = self.slot.lock();
        slot.outcome.is_some().then(|| slot.answer())
    }

    /// Lends the outcome's body to `read`.
    pub(crate) fn read<R>(
        &self,
        read: impl FnOnce(&[u8], CodecId) -> R,
    ) -> Option<Result<R, Error>> {
        let (outcome, body) = {
            let mut slot = self.slot.lock();
            (slot.outcome.take()?, std::mem::take(&mut slot.body))
        };
        let result = outcome.map(|(codec, _)| read(&body, codec));
        self.slot.lock().body = body;
        Some(result)
    }

    /// Sets what is to be run when the slot is filled; gives it back, ready, if it is filled.
    pub(crate) fn on_filled(&self, callback: Callback) -> Option<Ready> {
        let mut slot = self.slot.lock();
        if slot.outcome.is_some() {
            let answer = slot.answer();
            return Some((callback, answer));
        }
        slot.callback = Some(callback);
        None
    }
}

impl Slot {
    fn answer(&mut self) -> Result<Answer, Error> {
        match self.outcome.take() {
            Some(Ok((codec, metadata))) => Ok(Answer {
                codec,
                metadata,
                body: std::mem::take(&mut self.body),
            }),
            Some(Err(error)) => Err(error),
            None => Err(Error::new(
                ErrorKind::Closed,
                "the outcome was taken before",
            )),
        }
    }
}
