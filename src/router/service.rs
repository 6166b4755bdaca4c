//! How one message of a session meets its handler, on whichever thread.

use std::sync::Arc;
use std::time::Instant;

use super::{Context, Handler, Handlers};
use crate::codec::Body;
use crate::connection::Arrival;
use crate::error::caught;
use crate::hub::Hub;
use crate::message::{Kind, MessageRef};
use crate::records::{Limit, Topic};
use crate::session::Session;
use crate::status::Status;

/// The handlers, for the messages of one session.
pub(super) struct Service {
    pub(super) handlers: Arc<Handlers>,
    pub(super) session: Session,
    /// Of a server.
    hub: Option<Hub>,
    /// At most a panic a second of one session is recorded.
    panics: Limit,
}

impl Service {
    pub(super) fn new(handlers: Arc<Handlers>, session: Session, hub: Option<Hub>) -> Self {
        Service {
            handlers,
            session,
            hub,
            panics: Limit::new(1),
        }
    }

    pub(super) fn handler(&self, message: &MessageRef<'_>) -> Option<&Handler> {
        self.handlers.find(message.kind, message.route)
    }

    /// Runs the handler of a message, and answers if it does not.
    pub(super) fn run(&self, handler: &Handler, message: &MessageRef<'_>, arrival: Arrival) {
        let connection = &self.session.connection;
        let context = Context::new(&self.session, message, arrival, self.hub.as_ref());
        let body = Body::new(message.body, message.codec);
        if context.begin() {
            if caught(|| handler(&context, body)).is_none() {
                connection.count_panic();
                self.record_panic(message);
                context.answer_status(Status::HANDLER_PANICKED, "the handler panicked");
            }
            context.end();
        } else if message.kind == Kind::Push {
            connection.counters.reader.dropped_pushes.fetch_add(1);
        }
    }

    fn record_panic(&self, message: &MessageRef<'_>) {
        let (kind, route, id) = (message.kind, message.route, self.session.id());
        self.handlers.records.write_limited(
            Topic::Panicked,
            Some(&self.panics),
            Instant::now(),
            format_args!("the handler of a {kind} of route {route} panicked in session {id}"),
        );
    }
}
