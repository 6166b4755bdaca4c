//! What a client's handles and its thread share: the session that is used now, and the state
//! between the sessions.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use socket2::Socket;

use super::holding::Held;
use super::setup::{Hooks, Setup};
use super::state::{ClientState, StateChange};
use super::totals::Sums;
use crate::connection::{CloseReport, before_wait, is_handler_of};
use crate::error::{Error, ErrorKind, caught};
use crate::records::Topic;
use crate::session::{Inbox, Session, Source, Standing};
use crate::stats::Count;

pub(super) struct Line {
    pub(super) setup: Arc<Setup>,
    /// Read for each message. Stored under the lock of the desk.
    pub(super) current: ArcSwap<Standing>,
    pub(super) desk: Mutex<Desk>,
    pub(super) changed: Condvar,
}

/// What is needed only while sessions come and go.
pub(super) struct Desk {
    pub(super) state: ClientState,
    /// Why there is no session.
    pub(super) reason: Option<Error>,
    /// This side wants no session any more.
    pub(super) closed: bool,
    /// The next attempt shall not be waited for.
    pub(super) hurry: bool,
    /// A socket in its handshake.
    pub(super) greeting: Option<Arc<Socket>>,
    /// A session that is not the current one yet.
    pub(super) newcomer: Option<Session>,
    /// What became of it.
    pub(super) outcome: Option<Result<(), Error>>,
    pub(super) held: Held,
    /// Of what was held and dropped, what is still to be told.
    untold: Count,
    pub(super) sums: Sums,
    pub(super) inbox: Option<Inbox>,
    /// What keeps an inbox open that was opened for the thread.
    pub(super) source: Option<Source>,
    /// Until the thread ends.
    hooks: Option<Arc<Hooks>>,
    thread: Option<ThreadId>,
    finished: bool,
}

impl Line {
    /// The line of a client that has this session, or is to get its first one.
    pub(super) fn new(
        setup: Arc<Setup>,
        hooks: Arc<Hooks>,
        session: Session,
        down: Option<Error>,
        inbox: Option<Inbox>,
    ) -> Arc<Line> {
        let state = match down {
            Some(_) => ClientState::Connecting,
            None => ClientState::Connected,
        };
        let desk = Desk {
            state,
            reason: None,
            closed: false,
            hurry: false,
            greeting: None,
            newcomer: None,
            outcome: None,
            held: Held::default(),
            untold: Count::default(),
            sums: Sums::default(),
            inbox,
            source: None,
            hooks: Some(hooks),
            thread: None,
            finished: false,
        };
        Arc::new(Line {
            setup,
            current: ArcSwap::from_pointee(Standing { session, down }),
            desk: Mutex::new(desk),
            changed: Condvar::new(),
        })
    }

    pub(super) fn reconnects(&self) -> bool {
        self.setup.backoff.is_some()
    }

    /// The session that is used now, or was used last.
    pub(super) fn session(&self) -> Session {
        self.current.load().session.clone()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.desk.lock().closed
    }

    pub(super) fn hooks(&self) -> Option<Arc<Hooks>> {
        self.desk.lock().hooks.clone()
    }

    /// This thread is the one that dials.
    pub(super) fn take_thread(&self) {
        self.desk.lock().thread = Some(thread::current().id());
    }

    /// That thread does nothing more.
    pub(super) fn finish(&self) {
        let mut desk = self.desk.lock();
        let (hooks, source) = (desk.hooks.take(), desk.source.take());
        drop(desk);
        drop((hooks, source));
        self.desk.lock().finished = true;
        self.changed.notify_all();
    }

    /// Whether the next session waits for this thread.
    pub(super) fn is_behind_this_thread(&self) -> bool {
        let desk = self.desk.lock();
        let (thread, newcomer) = (desk.thread, desk.newcomer.clone());
        drop(desk);
        thread == Some(thread::current().id())
            || is_handler_of(&self.current.load().session.connection)
            || newcomer.is_some_and(|session| is_handler_of(&session.connection))
    }

    /// No session any more; the answer is those that are to be ended.
    pub(super) fn close(&self) -> Vec<Session> {
        let mut desk = self.desk.lock();
        desk.closed = true;
        if let Some(socket) = &desk.greeting {
            // This wakes a thread that waits in read.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        let newcomer = desk.newcomer.clone();
        if self.reconnects() && self.current.load().down.is_some() {
            self.put_down(&desk);
        }
        let dropped = desk.held.drop_all();
        desk.sums.drop_held(dropped);
        desk.untold.add(dropped);
        drop(desk);
        self.changed.notify_all();
        let sessions = [Some(self.session()), newcomer].into_iter().flatten();
        sessions
            .inspect(|session| session.connection.keep_pushes(false))
            .collect()
    }

    /// A session has ended.
    pub(super) fn session_ended(&self, session: &Session, report: &CloseReport) {
        let mut desk = self.desk.lock();
        let now = Instant::now();
        desk.sums.end(report);
        desk.held.carry_over(session.connection.take_kept(), now);
        if self.reconnects() && self.is_current(session) {
            desk.reason = Some(loss(report));
            self.put_down(&desk);
        }
        drop(desk);
        self.changed.notify_all();
    }

    pub(super) fn is_current(&self, session: &Session) -> bool {
        let standing = self.current.load();
        standing.down.is_none() && standing.session == *session
    }

    /// To be called with the desk locked.
    pub(super) fn put(&self, session: Session, down: Option<Error>) {
        self.current.store(Arc::new(Standing { session, down }));
    }

    /// No session is to come. Without a reason it is this side that wants none.
    pub(super) fn stop(&self, reason: Option<Error>) {
        let error = match reason.clone() {
            None => closed(),
            Some(reason) => {
                let message = "the client has stopped to dial";
                Error::with_source(ErrorKind::Closed, message, reason)
            }
        };
        let mut desk = self.desk.lock();
        let before = std::mem::replace(&mut desk.state, ClientState::Stopped);
        desk.reason = reason.clone();
        desk.hurry = false;
        let mut dropped = desk.held.drop_all();
        desk.sums.drop_held(dropped);
        dropped.add(std::mem::take(&mut desk.untold));
        if self.reconnects() {
            self.put(self.session(), Some(error.clone()));
        }
        drop(desk);
        self.changed.notify_all();
        self.tell_dropped(dropped, error);
        if before != ClientState::Stopped {
            self.tell(StateChange {
                reason,
                ..StateChange::to(ClientState::Stopped)
            });
        }
    }

    /// A session is to come again. The answer is the inbox that has ended, to be dropped without
    /// the lock.
    pub(super) fn begin_anew(&self, desk: &mut Desk) -> Option<Inbox> {
        desk.state = ClientState::Connecting;
        self.put_down(desk);
        let handlers = &desk.hooks.as_ref()?.handlers;
        let (inbox, source) = handlers.open_inbox(&self.setup.config.limits).unzip();
        desk.source = source;
        std::mem::replace(&mut desk.inbox, inbox)
    }

    /// There is no session, for the reason that the desk knows.
    fn put_down(&self, desk: &Desk) {
        let message = "the client is not connected";
        let down = match desk.reason.clone() {
            _ if desk.closed => closed(),
            Some(reason) => Error::with_source(ErrorKind::Disconnected, message, reason),
            None => Error::new(ErrorKind::Disconnected, message),
        };
        self.put(self.session(), Some(down));
    }

    /// On the way to a session.
    pub(super) fn enter(&self, change: StateChange) {
        let mut desk = self.desk.lock();
        desk.state = change.state;
        desk.reason = change.reason.clone().or(desk.reason.take());
        // Those who meanwhile try to send are told the latest.
        self.put_down(&desk);
        drop(desk);
        self.changed.notify_all();
        self.tell(change);
    }

    /// Tells the hook and the log of a change that was made.
    pub(super) fn tell(&self, mut change: StateChange) {
        let Some(hooks) = self.hooks() else {
            return;
        };
        if self.reconnects() {
            let topic = match (change.state, &change.reason) {
                (ClientState::Waiting, _) => Some(Topic::Lost),
                (ClientState::Connected, _) => Some(Topic::Connected),
                (ClientState::Stopped, Some(_)) => Some(Topic::Stopped),
                _ => None,
            };
            if let Some(topic) = topic {
                let handlers = &hooks.handlers;
                handlers.record(topic, format_args!("client {change}"));
            }
        }
        if let Some(hook) = &hooks.on_state {
            change.dropped = self.desk.lock().held.take_dropped();
            // A panic in the hook has nowhere to go; the panic hook has shown it.
            let _ = caught(|| hook(&change));
        }
    }

    /// Tells the application about pushes that were held in vain.
    pub(super) fn tell_dropped(&self, dropped: Count, reason: Error) {
        if dropped.messages == 0 {
            return;
        }
        if let Some(hooks) = self.hooks() {
            let message = format!("{dropped} that were held are dropped");
            let error = Error::with_source(reason.kind(), message, reason);
            hooks.handlers.tell(&error);
        }
    }

    /// Waits until `is_reached`, at most until the deadline; whether it is.
    pub(super) fn wait(
        &self,
        deadline: Option<Instant>,
        is_reached: impl Fn(&Desk) -> bool,
    ) -> bool {
        let mut desk = self.desk.lock();
        while !is_reached(&desk) {
            match deadline {
                Some(deadline) => {
                    if self.changed.wait_until(&mut desk, deadline).timed_out() {
                        return is_reached(&desk);
                    }
                }
                None => self.changed.wait(&mut desk),
            }
        }
        true
    }

    /// Waits for the end of the thread, unless it waits for this one.
    pub(super) fn wait_finished(&self, deadline: Instant) {
        if !self.is_behind_this_thread() {
            self.wait(Some(deadline), |desk| desk.finished);
        }
    }

    /// Waits until the client has stopped; whether it has.
    pub(super) fn wait_stopped(&self, limit: Duration) -> bool {
        let now = Instant::now();
        let deadline = match self.is_behind_this_thread() || before_wait().is_err() {
            true => Some(now),
            false => now.checked_add(limit),
        };
        self.wait(deadline, |desk| {
            desk.finished || desk.state == ClientState::Stopped
        })
    }
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client is closed")
}

/// Why the session with this report is over.
pub(super) fn loss(report: &CloseReport) -> Error {
    let error = match &report.error {
        Some(error) => Error::with_source(
            ErrorKind::Disconnected,
            "the session is lost",
            error.clone(),
        ),
        None => Error::new(ErrorKind::Disconnected, "the session was closed"),
    };
    error.with_farewell(report.farewell.clone())
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("addresses", &self.setup.addresses)
            .finish_non_exhaustive()
    }
}
