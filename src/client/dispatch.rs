//! What the threads of one session tell the client beside its handlers: that it begins, with the
//! login, and that it is over.

use std::sync::Arc;
use std::time::Instant;

use super::line::Line;
use super::setup::Hooks;
use super::state::{ClientState, StateChange};
use crate::connection::{Arrival, CloseReport, Receiver};
use crate::error::{Error, ErrorKind, caught};
use crate::message::MessageRef;
use crate::router::Router;
use crate::session::{Session, Source};
use crate::status::Status;

pub(super) struct ClientDispatch {
    router: Router,
    session: Session,
    line: Arc<Line>,
    hooks: Arc<Hooks>,
    /// The address that was dialled, and the number of the attempt.
    address: Option<Arc<str>>,
    attempt: u32,
}

impl ClientDispatch {
    pub(super) fn new(
        line: Arc<Line>,
        hooks: Arc<Hooks>,
        session: Session,
        inbox: Option<Source>,
        address: Option<Arc<str>>,
        attempt: u32,
    ) -> Self {
        let handlers = hooks.handlers.clone();
        line.desk.lock().sums.begin(&session);
        ClientDispatch {
            router: Router::new(handlers, session.clone(), None, inbox, hooks.pool.clone()),
            session,
            line,
            hooks,
            address,
            attempt,
        }
    }

    fn log_in(&self) -> Result<(), Error> {
        let Some(login) = &self.hooks.login else {
            return Ok(());
        };
        caught(|| login(&self.session)).unwrap_or_else(|| {
            self.session.connection.count_panic();
            let status = Status::new(Status::HANDLER_PANICKED, "the login hook panicked");
            Err(Error::with_status(
                ErrorKind::Status,
                "the login has failed",
                status,
            ))
        })
    }

    fn begin(&self) -> Result<(), Error> {
        // Without a login the first session is in use from the beginning.
        if !self.line.is_current(&self.session) {
            self.log_in()?;
            if self.session.is_closed() {
                return Err(self.session.connection.closed_error());
            }
            self.line.take_over(&self.session)?;
        }
        self.line.tell(StateChange {
            session: Some(self.session.clone()),
            address: self.address.clone(),
            attempt: self.attempt,
            ..StateChange::to(ClientState::Connected)
        });
        Ok(())
    }
}

impl Receiver for ClientDispatch {
    fn connected(&self) {
        let connection = &self.session.connection;
        connection.guard(|| self.router.connected());
        let outcome = self.begin();
        if outcome.is_err() {
            self.session.close();
        }
        self.line.desk.lock().outcome = Some(outcome);
        self.line.changed.notify_all();
    }

    fn message(&self, message: &MessageRef<'_>, arrival: Arrival) -> bool {
        self.router.message(message, arrival)
    }

    fn closed(&self, report: &CloseReport) {
        self.line.session_ended(&self.session, report);
        self.router.closed(report);
    }

    fn end(&self) {
        self.router.end();
        self.line.desk.lock().sums.settle(Instant::now());
    }
}
