//! The thread of a client: it reads the session, and when that is lost dials the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::Socket;

use super::dispatch::ClientDispatch;
use super::line::{Line, closed, loss};
use super::setup::{Hooks, is_dismissal, is_permanent, is_permanent_login};
use super::state::{ClientState, StateChange};
use crate::config::{Backoff, ThreadRole};
use crate::connection::handshake::random;
use crate::connection::prepare;
use crate::connection::threads::{self, Places};
use crate::error::Error;
use crate::link::backoff::Schedule;
use crate::session::{Session, Source};

/// A session that is to be read.
pub(super) struct First {
    pub(super) session: Session,
    pub(super) read: Box<dyn FnOnce() + Send>,
}

/// How a session, or an attempt to have one, has ended.
struct End {
    reason: Error,
    /// Trying again cannot help.
    for_good: bool,
}

impl From<Error> for End {
    fn from(reason: Error) -> End {
        let for_good = is_permanent(&reason);
        End { reason, for_good }
    }
}

/// Starts the thread; the places are for it and for the writers of its sessions.
pub(super) fn start(
    line: &Arc<Line>,
    first: Option<First>,
    inbox: Option<Source>,
    places: Places,
) -> Result<(), Error> {
    let name = match &first {
        Some(first) => format!("tl-read-{}", first.session.id()),
        None => "tl-read".to_owned(),
    };
    let options = &line.setup.config.threads;
    let line = line.clone();
    threads::spawn(name, ThreadRole::Reader, options, move || {
        let finish = Finish(line.clone());
        line.take_thread();
        match (&line.setup.backoff, line.hooks()) {
            (Some(backoff), Some(hooks)) => {
                Dialling::new(&line, hooks, backoff, inbox).run(first);
            }
            _ => read_once(&line, first),
        }
        drop(places);
        drop(finish);
    })
}

struct Finish(Arc<Line>);

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// The one session of a client that does not reconnect.
fn read_once(line: &Line, first: Option<First>) {
    let Some(first) = first else {
        return;
    };
    (first.read)();
    let end = end_of(&first.session);
    if is_logged_in(line) {
        line.stop(Some(end.reason).filter(|_| !line.is_closed()));
    }
}

/// Whether the session that has ended was the current one.
fn is_logged_in(line: &Line) -> bool {
    matches!(line.desk.lock().outcome, Some(Ok(())))
}

/// Waits for the last steps of a session.
fn end_of(session: &Session) -> End {
    let connection = &session.connection;
    let report = connection.wait_ended(None);
    connection.wait_threads(None);
    match report {
        Some(report) => End {
            reason: loss(&report),
            for_good: report.farewell.as_ref().is_some_and(is_dismissal),
        },
        None => connection.closed_error().into(),
    }
}

struct Dialling<'l> {
    line: &'l Arc<Line>,
    hooks: Arc<Hooks>,
    backoff: &'l Backoff,
    inbox: Option<Source>,
    schedule: Schedule,
}

impl<'l> Dialling<'l> {
    fn new(
        line: &'l Arc<Line>,
        hooks: Arc<Hooks>,
        backoff: &'l Backoff,
        inbox: Option<Source>,
    ) -> Self {
        Dialling {
            line,
            hooks,
            backoff,
            inbox,
            schedule: Schedule::new(backoff.clone(), Instant::now()),
        }
    }

    fn run(mut self, first: Option<First>) {
        let mut end = match first {
            None => self.round(),
            Some(first) => {
                let begun = Instant::now();
                (first.read)();
                let end = end_of(&first.session);
                if !is_logged_in(self.line) {
                    // It is `connect` that tells.
                    return;
                }
                self.schedule.connected(begun);
                end
            }
        };
        while !self.line.is_closed() {
            let now = Instant::now();
            self.schedule.lost(now);
            let delay = match end.for_good {
                true => None,
                false => self.schedule.next(now, random_number()),
            };
            let reason = Some(end.reason);
            let goes_on = match delay {
                Some(delay) => self.pause(delay, reason),
                None => self.rest(reason),
            };
            if !goes_on {
                break;
            }
            end = self.round();
        }
        self.line.stop(None);
    }

    /// Waits for the next attempt; `false` if there shall be none.
    fn pause(&self, delay: Duration, reason: Option<Error>) -> bool {
        let until = Instant::now().checked_add(delay);
        self.line.enter(StateChange {
            attempt: self.schedule.attempt(),
            delay: Some(delay),
            reason,
            ..StateChange::to(ClientState::Waiting)
        });
        self.line.pause(until)
    }

    /// Stops, and waits to be started again; `false` if that shall not be.
    fn rest(&mut self, reason: Option<Error>) -> bool {
        self.line.stop(reason);
        self.inbox = None;
        self.line.wait(None, |desk| desk.closed || desk.hurry);
        let mut desk = self.line.desk.lock();
        if desk.closed {
            return false;
        }
        desk.hurry = false;
        self.inbox = desk.source.take();
        drop(desk);
        self.schedule = Schedule::new(self.backoff.clone(), Instant::now());
        true
    }

    /// Tries all addresses in turn, and reads the session that comes of it to its end.
    fn round(&mut self) -> End {
        let mut for_good = true;
        let mut reason = None;
        for address in &self.line.setup.addresses {
            self.line.enter(StateChange {
                address: Some(address.clone()),
                attempt: self.schedule.attempt(),
                reason: reason.clone(),
                ..StateChange::to(ClientState::Connecting)
            });
            match self.attempt(address) {
                Ok(end) => return end,
                Err(end) => {
                    for_good &= end.for_good;
                    reason = Some(end.reason);
                }
            }
            if self.line.is_closed() {
                break;
            }
        }
        End {
            reason: reason.unwrap_or_else(closed),
            for_good,
        }
    }

    /// One address: the end of the session that came of it, or else why there was none.
    fn attempt(&mut self, address: &Arc<str>) -> Result<End, End> {
        let setup = &self.line.setup;
        if self.line.is_closed() {
            return Err(closed().into());
        }
        let (socket, peer) = setup.dial(address)?;
        let socket = Arc::new(socket);
        self.line.greet(&socket)?;
        let greeted = setup.greet(&socket);
        self.line.desk.lock().greeting = None;
        let (agreed, received) = greeted?;
        let session = setup.session(socket, peer, agreed, &self.hooks, self.inbox.as_ref())?;
        self.line.admit(&session)?;
        let begun = Instant::now();
        let dispatch = ClientDispatch::new(
            self.line.clone(),
            self.hooks.clone(),
            session.clone(),
            self.inbox.clone(),
            Some(address.clone()),
            self.schedule.attempt(),
        );
        prepare(&session.connection, dispatch, &received, None)();
        let end = end_of(&session);
        let mut desk = self.line.desk.lock();
        desk.newcomer = None;
        match desk.outcome.take() {
            Some(Err(reason)) => {
                let for_good = end.for_good || is_permanent_login(&reason);
                Err(End { reason, for_good })
            }
            _ => {
                self.schedule.connected(begun);
                Ok(end)
            }
        }
    }
}

/// Any number; if the system has none to give, the longest wait is the safest.
fn random_number() -> u64 {
    random().map_or(u64::MAX, u64::from_le_bytes)
}

impl Line {
    /// A handshake begins, unless nothing shall come of it.
    fn greet(&self, socket: &Arc<Socket>) -> Result<(), Error> {
        let mut desk = self.desk.lock();
        if desk.closed {
            return Err(closed());
        }
        desk.greeting = Some(socket.clone());
        Ok(())
    }

    /// There is a session, unless it is not wanted any more.
    fn admit(&self, session: &Session) -> Result<(), Error> {
        let mut desk = self.desk.lock();
        if desk.closed {
            drop(desk);
            session.abort();
            return Err(closed());
        }
        desk.outcome = None;
        desk.newcomer = Some(session.clone());
        Ok(())
    }

    /// Waits until then, or until somebody is in a hurry; meanwhile what is held too long is
    /// dropped. `false` if the client was closed.
    fn pause(&self, until: Option<Instant>) -> bool {
        let mut desk = self.desk.lock();
        loop {
            if desk.closed || std::mem::take(&mut desk.hurry) {
                return !desk.closed;
            }
            let old = self.drop_old(&mut desk);
            if old.messages > 0 {
                drop(desk);
                self.tell_old(old);
                desk = self.desk.lock();
                continue;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return true;
            }
            let hold = self.setup.hold.as_ref();
            let expiry = hold.and_then(|hold| desk.held.expiry(hold));
            match until.into_iter().chain(expiry).min() {
                Some(next) => {
                    self.changed.wait_until(&mut desk, next);
                }
                None => self.changed.wait(&mut desk),
            }
        }
    }
}
