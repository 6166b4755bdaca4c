//! The messages of one session that wait for a worker.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Workers;
use crate::connection::inlet::Place;
use crate::connection::sampling::Sampling;
use crate::connection::serving::ServedCall;
use crate::connection::{Arrival, serve};
use crate::message::{Kind, Message, MessageRef, MetadataRef};
use crate::router::service::Service;
use crate::session::CallBytes;
use crate::status::{Status, StatusRef};

/// So many messages of an ordered lane run before the lane queues again behind the others.
const TURN: usize = 16;

const TOO_MANY_CALLS: StatusRef<'_> = StatusRef {
    code: Status::OVERLOADED,
    text: "calls of limits.incoming_call_bytes wait for a thread of the pool",
    cause: "",
};

/// What a message takes up while it waits.
enum Hold {
    Push { _place: Option<Place> },
    Call { _bytes: CallBytes },
}

/// A message that waits.
struct Job {
    message: Message,
    arrival: Arrival,
    hold: Hold,
}

/// The messages of one session that wait for a worker.
pub(crate) struct Lane {
    service: Arc<Service>,
    workers: Arc<Workers>,
    state: Mutex<State>,
    /// A handler has returned.
    returned: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    running: usize,
    /// It queues for the workers, or one of them decides whether it shall.
    queues: bool,
    /// The session has ended: its reader works here, too.
    ends: bool,
}

impl Lane {
    pub(crate) fn new(service: Arc<Service>, workers: Arc<Workers>) -> Arc<Self> {
        Arc::new(Lane {
            service,
            workers,
            state: Mutex::default(),
            returned: Condvar::new(),
        })
    }

    fn is_ordered(&self) -> bool {
        self.workers.pool.ordered
    }

    /// Takes over a message; a push waits for room. With `false` there is no thread to run it,
    /// and never was.
    pub(crate) fn take(self: &Arc<Self>, message: &MessageRef<'_>, arrival: Arrival) -> bool {
        if !self.workers.is_staffed() {
            return false;
        }
        let session = &self.service.session;
        let connection = &session.connection;
        let hold = match message.kind {
            Kind::Call => match CallBytes::take(session, message, arrival.wire_bytes) {
                Some(_bytes) => Hold::Call { _bytes },
                None => {
                    connection.counters.others.calls_overloaded.fetch_add(1);
                    let (sequence, nothing) = (message.sequence, MetadataRef::EMPTY);
                    connection.reply_status(sequence, TOO_MANY_CALLS, nothing);
                    return true;
                }
            },
            _ => Hold::Push {
                _place: connection.wait_for_place(&self.workers.room, arrival.wire_bytes),
            },
        };
        let job = Job {
            message: message.to_message(),
            arrival,
            hold,
        };
        let mut state = self.state.lock();
        state.waiting.push_back(job);
        let queues = std::mem::replace(&mut state.queues, true);
        drop(state);
        if !queues {
            self.workers.announce(self.clone());
        }
        true
    }

    /// A worker runs what waits, as much as is fair to other sessions.
    pub(super) fn take_turn(self: &Arc<Self>, sampling: &Sampling) {
        let run = |job| {
            self.serve(job, sampling);
            self.state.lock().running -= 1;
            self.returned.notify_all();
        };
        if self.is_ordered() {
            (0..TURN).map_while(|_| self.begin()).for_each(run);
            if self.queues_again() {
                return self.workers.put_in_queue(self.clone());
            }
        } else {
            let job = self.begin();
            // Before the handler runs, so that the next one may run beside it.
            if self.queues_again() {
                self.workers.announce(self.clone());
            }
            job.into_iter().for_each(run);
        }
        self.workers.turn_ended();
    }

    /// Whether a worker may run what waits: of a session that ends it is run in order by the
    /// reader.
    fn is_for_workers(&self, state: &State) -> bool {
        !(self.is_ordered() && state.ends)
    }

    /// A worker takes a message.
    fn begin(&self) -> Option<Job> {
        let mut state = self.state.lock();
        match self.is_for_workers(&state) {
            true => state.begin(),
            false => None,
        }
    }

    /// Whether it needs another turn; if not, the next message announces it.
    fn queues_again(&self) -> bool {
        let mut state = self.state.lock();
        state.queues = self.is_for_workers(&state) && !state.waiting.is_empty();
        state.queues
    }

    /// The session has ended, and this is its reader: runs what still waits, so that the end
    /// depends on no handler of another session, and waits for what runs.
    pub(crate) fn finish(&self) {
        let sampling = Sampling::default();
        let mut state = self.state.lock();
        state.ends = true;
        loop {
            let is_kept = self.is_ordered() && state.running > 0;
            let job = match is_kept {
                true => None,
                false => state.begin(),
            };
            match job {
                Some(job) => {
                    MutexGuard::unlocked(&mut state, || self.handle(job, &sampling));
                    state.running -= 1;
                }
                None if state.running > 0 => self.returned.wait(&mut state),
                None => return,
            }
        }
    }

    /// Handles a message on a worker.
    fn serve(&self, job: Job, sampling: &Sampling) {
        let connection = &self.service.session.connection;
        let message = job.message.as_ref();
        let call = (message.kind == Kind::Call).then(|| ServedCall {
            sequence: message.sequence,
            deadline: connection.deadline_of(&message, job.arrival.at),
        });
        serve(connection, call, || self.handle(job, sampling));
    }

    fn handle(&self, job: Job, sampling: &Sampling) {
        let Job {
            message,
            arrival,
            hold,
        } = job;
        // First, as with the answer to a call its caller may send more.
        drop(hold);
        let message = message.as_ref();
        if !self.is_worth_running(&message, arrival) {
            return;
        }
        let sample = sampling.next(None);
        if let Some(handler) = self.service.handler(&message) {
            self.service.run(handler, &message, arrival);
        }
        if let Some(sample) = sample {
            let counters = &self.service.session.connection.counters;
            counters.handler_times.note(sample.elapsed());
        }
    }

    /// Whether the handler shall run for a message that has waited; a call for which it shall not
    /// is done with.
    fn is_worth_running(&self, message: &MessageRef<'_>, arrival: Arrival) -> bool {
        let connection = &self.service.session.connection;
        if let Some(status) = connection.stale(message, arrival.at) {
            connection.reply_status(message.sequence, status, MetadataRef::EMPTY);
            return false;
        }
        let is_too_late = message.kind == Kind::Call && connection.is_over();
        if is_too_late {
            connection.counters.others.calls_dropped.fetch_add(1);
            connection.answer_going_away(message.sequence);
        }
        !is_too_late
    }
}

impl State {
    fn begin(&mut self) -> Option<Job> {
        let job = self.waiting.pop_front()?;
        self.running += 1;
        Some(job)
    }
}
