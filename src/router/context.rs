//! What a handler knows about the message that it handles.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::{Duration, Instant};

use super::reply::Replied;
use crate::address::Address;
use crate::codec::IntoBody;
use crate::connection::Arrival;
use crate::error::Error;
use crate::hub::Hub;
use crate::message::{CodecId, Kind, MessageRef, Metadata, MetadataRef, Route};
use crate::session::{Deferred, Exchange, Responder, Session, Watched};
use crate::status::{Status, StatusRef};

/// The message that a handler handles, and the ways to answer it.
#[doc(alias = "CallCtx")]
#[doc(alias = "PushCtx")]
pub struct Context<'a> {
    session: &'a Session,
    message: &'a MessageRef<'a>,
    arrival: Arrival,
    hub: Option<&'a Hub>,
    /// Whether the call is answered, or a responder has taken the duty over.
    settled: Cell<bool>,
    /// The status code that the call was answered with here.
    code: Cell<i32>,
    /// Until the handler has returned, or a responder has taken it over.
    watched: Cell<Watched>,
    metadata: RefCell<Metadata>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        session: &'a Session,
        message: &'a MessageRef<'a>,
        arrival: Arrival,
        hub: Option<&'a Hub>,
    ) -> Self {
        Context {
            session,
            message,
            arrival,
            hub,
            settled: Cell::new(message.kind != Kind::Call),
            code: Cell::new(Status::OK),
            watched: Cell::new(None),
            metadata: RefCell::default(),
        }
    }

    /// Asks the interceptors; whether the handler may run.
    #[inline]
    pub(super) fn begin(&self) -> bool {
        let exchange = || Exchange::incoming(self.session, self.message);
        match self.session.intercept(exchange) {
            Ok(None) => true,
            Ok(watched) => {
                self.watched.set(watched);
                true
            }
            Err(status) => {
                self.answer_error(&status);
                false
            }
        }
    }

    /// The handler has returned.
    pub(super) fn end(&self) {
        if let Some(watched) = self.watched.take() {
            watched.answered(self.code.get());
        }
    }

    /// The session that the message came by: push to it, call it; clone it to keep it.
    pub fn session(&self) -> &'a Session {
        self.session
    }

    /// The server's sessions; a client has no hub.
    pub fn hub(&self) -> Option<&'a Hub> {
        self.hub
    }

    /// The peer's address.
    pub fn peer_address(&self) -> &'a Address {
        &self.session.connection.peer
    }

    /// Push or call.
    pub fn kind(&self) -> Kind {
        self.message.kind
    }

    /// What the message is about.
    pub fn route(&self) -> Route<'a> {
        self.message.route
    }

    /// The call's sequence number; 0 for a push.
    pub fn sequence(&self) -> u32 {
        self.message.sequence
    }

    /// The message's key and value pairs.
    #[doc(alias = "PeekMeta")]
    pub fn metadata(&self) -> MetadataRef<'a> {
        self.message.metadata
    }

    /// The format of the body.
    pub fn codec(&self) -> CodecId {
        self.message.codec
    }

    /// The bytes that the whole message took on the wire.
    pub fn wire_bytes(&self) -> usize {
        self.arrival.wire_bytes
    }

    /// How long the caller still waits, from now on; zero if it does no more. `None` for a
    /// push, and if the caller sets no limit or has told none.
    ///
    /// It counts from the moment at which the call was read here: what it took on its way, or
    /// waited in the system while a handler kept the reader busy, is not seen. What this handler
    /// calls while the call is not answered, on any session, waits no longer than this.
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.deadline()?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    fn deadline(&self) -> Option<Instant> {
        let connection = &self.session.connection;
        connection.deadline_of(self.message, self.arrival.at)
    }

    /// Whether nobody waits for the answer any more: the caller gave the call up, by its time
    /// limit, [`Pending::cancel`](crate::Pending::cancel) or dropping the
    /// [`Pending`](crate::Pending), or the session is over.
    ///
    /// Long work asks between its steps. So that the word of the caller can be read while the
    /// handler runs, the first question hands the reading over to another thread, as
    /// [waiting](crate::guide::threads#hand-over) does; if there is none to be had, what came
    /// before is known. Of more than 1,024 open calls that a peer gave up the first are
    /// forgotten. For a push, only the end of the session counts.
    pub fn cancelled(&self) -> bool {
        let connection = &self.session.connection;
        connection.is_cancelled_here(self.message.sequence)
    }

    /// Adds a metadata pair to the answer.
    ///
    /// # Errors
    /// `TooLarge` if key and value together pass 65,533 bytes.
    pub fn reply_meta(&self, key: &str, value: &str) -> Result<(), Error> {
        self.metadata.borrow_mut().push(key, value)
    }

    /// Answers without an allocation for the body; the handler returns the result.
    ///
    /// Of several answers the first counts. A push has no answer.
    pub fn reply(&self, body: impl IntoBody) -> Replied {
        self.answer(body);
        Replied(())
    }

    pub(super) fn answer(&self, body: impl IntoBody) {
        if !self.settled.get() {
            let code = crate::session::answer(
                &self.session.connection,
                self.message.sequence,
                self.metadata.borrow().as_ref(),
                &body,
                || self.settled.set(true),
            );
            self.code.set(code);
        }
    }

    /// Answers later, from any thread: keep the responder, return the [`Deferred`].
    ///
    /// For a push, or after an answer, the responder answers nothing.
    pub fn defer(&self) -> (Responder, Deferred) {
        let answered = self.settled.replace(true);
        let watched = match answered {
            true => None,
            false => self.watched.take(),
        };
        let mut responder = Responder::new(
            self.session.connection.clone(),
            self.message.sequence,
            answered,
            watched,
            self.deadline(),
        );
        for (key, value) in self.metadata.borrow().iter() {
            // It fitted the answer's metadata, so it fits the responder's.
            let _ = responder.meta(key, value);
        }
        (responder, Deferred(()))
    }

    pub(super) fn answer_status(&self, code: i32, text: &str) {
        self.answer_with(StatusRef {
            code,
            text,
            cause: "",
        });
    }

    pub(super) fn answer_error(&self, status: &Status) {
        self.answer_with(status.as_ref());
    }

    fn answer_with(&self, status: StatusRef<'_>) {
        if !self.settled.replace(true) {
            self.code.set(self.session.connection.reply_status(
                self.message.sequence,
                status,
                self.metadata.borrow().as_ref(),
            ));
        }
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("session", &self.session.id().0)
            .field("kind", &self.kind())
            .field("route", &self.route())
            .field("sequence", &self.sequence())
            .finish_non_exhaustive()
    }
}
