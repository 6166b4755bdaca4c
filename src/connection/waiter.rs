//! The place where a call waits: a slot that is filled once, polled or slept upon; or a
//! callback.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, Kind, MessageRef, Metadata, Route};
use crate::status::StatusRef;

const OPEN: u8 = 0;
const PARKED: u8 = 1;
const DONE: u8 = 2;

/// How long a caller polls, giving its core away in between, before it sleeps.
const POLL: Duration = Duration::from_micros(50);

/// A buffer that one large reply has grown beyond this is not kept.
const KEEP: usize = 64 << 10;

/// How a call ended: with a reply that is not an error, or not.
pub(crate) type Outcome<'a> = Result<&'a MessageRef<'a>, Error>;

/// User code that takes the outcome; it runs once, without any lock held.
pub(crate) type Callback = Box<dyn for<'a> FnOnce(Outcome<'a>) + Send>;

/// Who waits for a call to end.
pub(crate) enum Caller {
    Thread(Arc<Waiter>),
    Callback(Callback),
}

impl Caller {
    /// Whether the messages of the connection wait until this caller goes on.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            Caller::Thread(waiter) => waiter.awaited.load(Ordering::SeqCst),
            Caller::Callback(_) => false,
        }
    }
}

/// What a reply means for its caller.
pub(super) fn outcome<'a>(reply: &'a MessageRef<'a>) -> Outcome<'a> {
    match reply.status.filter(|status| status.code != 0) {
        None => Ok(reply),
        Some(status) => Err(Error::from_status(
            ErrorKind::Status,
            StatusRef::to_status(status),
        )),
    }
}

/// What a call came to.
pub(crate) struct Answer {
    pub(crate) codec: CodecId,
    pub(crate) metadata: Metadata,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The reply that it was.
    pub(crate) fn as_message(&self) -> MessageRef<'_> {
        let mut reply = MessageRef::new(Kind::Reply, Route::Number(0), 0, self.codec, &self.body);
        reply.metadata = self.metadata.as_ref();
        reply
    }
}

#[derive(Default)]
struct Slot {
    outcome: Option<Result<(CodecId, Metadata), Error>>,
    /// Kept from call to call, so that a steady caller allocates nothing.
    body: Vec<u8>,
}

/// One call's waiting place.
#[derive(Default)]
pub(crate) struct Waiter {
    state: AtomicU8,
    slot: Mutex<Slot>,
    filled: Condvar,
    /// Whether a handler of the same connection waits here, or a thread that empties its inbox
    /// or works in its pool.
    awaited: AtomicBool,
}

thread_local! {
    static SPARE: RefCell<Vec<Arc<Waiter>>> = const { RefCell::new(Vec::new()) };
}

impl Waiter {
    /// A fresh waiter, reused if this thread has one to spare.
    pub(crate) fn take() -> Arc<Waiter> {
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
        let mut waiter = spare.ok().flatten().unwrap_or_default();
        match Arc::get_mut(&mut waiter) {
            Some(fresh) => {
                fresh.state = AtomicU8::new(OPEN);
                fresh.awaited = AtomicBool::new(false);
                let slot = fresh.slot.get_mut();
                slot.outcome = None;
                slot.body.clear();
                if slot.body.capacity() > KEEP {
                    slot.body = Vec::new();
                }
                waiter
            }
            // The thread that filled it has not let go of it yet.
            None => Arc::default(),
        }
    }

    /// Keeps a waiter for this thread's next call.
    pub(crate) fn give_back(waiter: Arc<Waiter>) {
        // A thread that is ending keeps none.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < 4 {
                spare.push(waiter);
            }
        });
    }

    pub(super) fn set_awaited(&self, awaited: bool) {
        self.awaited.store(awaited, Ordering::SeqCst);
    }

    /// Fills the slot, once.
    pub(super) fn fill(&self, outcome: Outcome<'_>) {
        let mut slot = self.slot.lock();
        match outcome {
            Ok(reply) => {
                slot.body.extend_from_slice(reply.body);
                slot.outcome = Some(Ok((reply.codec, reply.metadata.to_metadata())));
            }
            Err(error) => slot.outcome = Some(Err(error)),
        }
        let parked = self.state.swap(DONE, Ordering::AcqRel) == PARKED;
        drop(slot);
        if parked {
            self.filled.notify_all();
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state.load(Ordering::Acquire) == DONE
    }

    /// Waits until the slot is filled; `false` if the deadline passed. With `poll` it first
    /// looks for a while.
    pub(crate) fn wait(&self, start: Instant, deadline: Option<Instant>, poll: bool) -> bool {
        if poll {
            let end = start + POLL;
            let end = deadline.map_or(end, |deadline| deadline.min(end));
            while !self.is_done() && Instant::now() < end {
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
        let outcome = slot.outcome.take()?;
        Some(outcome.map(|(codec, metadata)| Answer {
            codec,
            metadata,
            body: std::mem::take(&mut slot.body),
        }))
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
}
