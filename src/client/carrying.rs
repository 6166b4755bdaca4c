//! Messages over whichever session there is: sent, held until there is one, or refused.

use std::sync::Arc;
use std::time::Instant;

use super::line::{Desk, Line, closed};
use super::state::ClientState;
use crate::config::Config;
use crate::connection::{Company, PushFrame, Wait, before_wait};
use crate::error::{Error, ErrorKind};
use crate::message::MessageRef;
use crate::session::{Callee, Current, Session, Standing};
use crate::stats::Count;

impl Callee for Line {
    #[inline]
    fn config(&self) -> &Config {
        &self.setup.config
    }

    #[inline]
    fn send(&self, message: &MessageRef<'_>, wait: Wait) -> Result<(), Error> {
        loop {
            let standing = self.current.load();
            let error = match &standing.down {
                None => {
                    let connection = &standing.session.connection;
                    match connection.send(message, wait, Company::Alone) {
                        Err(error) if error.is_closed() && self.reconnects() => error,
                        result => return result,
                    }
                }
                Some(error) => error.clone(),
            };
            if self.keep(message, &standing, error)? {
                return Ok(());
            }
        }
    }

    #[inline]
    fn current(&self, deadline: Option<Instant>) -> Result<Current<'_>, Error> {
        let standing = self.current.load();
        let waits = self.setup.hold.is_some();
        match &standing.down {
            Some(error) if !waits => Err(error.clone()),
            None if !waits || !standing.session.is_closed() => Ok(Current::Shared(standing)),
            _ => self.wait_current(deadline),
        }
    }

    fn refused(&self, error: Error) -> Error {
        let is_lost = error.kind() == ErrorKind::Closed && self.reconnects() && !self.is_closed();
        match is_lost {
            true => Error::with_source(
                ErrorKind::Disconnected,
                "the client is not connected",
                error,
            ),
            false => error,
        }
    }
}

impl Line {
    /// Keeps a push that this standing does not take; `false` if there is another by now.
    #[cold]
    fn keep(
        &self,
        message: &MessageRef<'_>,
        standing: &Arc<Standing>,
        error: Error,
    ) -> Result<bool, Error> {
        let Some(hold) = &self.setup.hold else {
            return Err(match standing.down {
                Some(_) => error,
                None => self.refused(error),
            });
        };
        let push = PushFrame::new(message, self.setup.framing, &self.setup.config)?;
        let mut desk = self.desk.lock();
        if !Arc::ptr_eq(&self.current.load(), standing) {
            return Ok(false);
        }
        if desk.closed || desk.state == ClientState::Stopped {
            return Err(error);
        }
        desk.held.add(push, hold, Instant::now())?;
        drop(desk);
        // The thread that waits to dial also watches the age.
        self.changed.notify_all();
        Ok(true)
    }

    /// Waits for a session that can be used.
    #[cold]
    fn wait_current(&self, deadline: Option<Instant>) -> Result<Current<'_>, Error> {
        loop {
            let standing = self.current.load();
            let is_up = standing.down.is_none();
            if is_up && !standing.session.is_closed() {
                return Ok(Current::Shared(standing));
            }
            let is_over = |desk: &Desk| desk.closed || desk.state == ClientState::Stopped;
            let error = match &standing.down {
                Some(error) => error.clone(),
                None => standing.session.connection.closed_error(),
            };
            if self.is_behind_this_thread() || is_over(&self.desk.lock()) {
                return Err(self.refused(error));
            }
            before_wait()?;
            let is_changed =
                |desk: &Desk| is_over(desk) || !Arc::ptr_eq(&self.current.load(), &standing);
            if !self.wait(deadline, is_changed) {
                return Err(Error::with_source(
                    ErrorKind::Timeout,
                    "no connection within the time limit of the call",
                    error,
                ));
            }
        }
    }

    /// Sends what is held on a new session, which then becomes the current one: everything newer
    /// goes behind it.
    pub(super) fn take_over(&self, session: &Session) -> Result<(), Error> {
        let connection = &session.connection;
        loop {
            let mut desk = self.desk.lock();
            if desk.closed {
                return Err(closed());
            }
            let old = self.drop_old(&mut desk);
            let Some((push, since)) = desk.held.take() else {
                desk.state = ClientState::Connected;
                desk.reason = None;
                desk.hurry = false;
                desk.newcomer = None;
                self.put(session.clone(), None);
                drop(desk);
                self.changed.notify_all();
                self.tell_old(old);
                return Ok(());
            };
            drop(desk);
            self.tell_old(old);
            let Err(error) = connection.send_framed(&push, Wait::Until(None)) else {
                continue;
            };
            let mut desk = self.desk.lock();
            if is_of_the_message(&error) {
                let dropped = push.count();
                desk.held.drop_taken(&push);
                desk.sums.drop_held(dropped);
                drop(desk);
                self.tell_dropped(dropped, error);
            } else {
                desk.held.put_back(push, since);
                return Err(error);
            }
        }
    }

    /// Drops what is held longer than it may be.
    pub(super) fn drop_old(&self, desk: &mut Desk) -> Count {
        let Some(hold) = &self.setup.hold else {
            return Count::default();
        };
        let dropped = desk.held.drop_old(hold, Instant::now());
        desk.sums.drop_held(dropped);
        dropped
    }

    pub(super) fn tell_old(&self, dropped: Count) {
        if let Some(hold) = self.setup.hold.as_ref().filter(|_| dropped.messages > 0) {
            let message = format!("they were held longer than hold.age = {:?}", hold.age);
            self.tell_dropped(dropped, Error::new(ErrorKind::Timeout, message));
        }
    }
}

/// Whether no session with this peer takes the message.
fn is_of_the_message(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::TooLarge | ErrorKind::InvalidInput | ErrorKind::Unsupported
    )
}
