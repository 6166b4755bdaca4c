//! A message taken out of an inbox, and the ways to answer it.

use std::fmt;
use std::time::Duration;

use super::{CallBytes, Request, Responder, Session, Watched};
use crate::codec::{FromBody, IntoBody, decode};
use crate::connection::Arrival;
use crate::connection::serving::{Served, ServedCall};
use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, Kind, Message, MessageRef, Metadata, Route};
use crate::status::Status;

/// A push or call from an [`Inbox`](crate::Inbox), with the session that it came by.
///
/// A call that is dropped is answered with status [`Status::NO_REPLY`].
pub struct Received {
    session: Session,
    message: Message,
    arrival: Arrival,
    /// Of a call.
    duty: Option<Duty>,
}

/// An unanswered call. Its bytes are given back first: with the answer its caller may send more.
struct Duty {
    _bytes: CallBytes,
    responder: Responder,
}

impl Received {
    /// `None` for a call for which the unanswered ones of the session leave no room.
    pub(super) fn new(
        session: &Session,
        message: &MessageRef<'_>,
        arrival: Arrival,
        watched: Watched,
    ) -> Option<Self> {
        let duty = match message.kind {
            Kind::Call => {
                let connection = session.connection.clone();
                Some(Duty {
                    _bytes: CallBytes::take(session, message, arrival.wire_bytes)?,
                    responder: Responder::new(
                        connection,
                        message.sequence,
                        false,
                        watched,
                        session.connection.deadline_of(message, arrival.at),
                    ),
                })
            }
            _ => None,
        };
        Some(Received {
            session: session.clone(),
            message: message.to_message(),
            arrival,
            duty,
        })
    }

    /// The message, unless it is a call for whose answer nobody waits any more: that is
    /// answered here.
    pub(super) fn unless_stale(mut self) -> Option<Self> {
        let message = self.message.as_ref();
        let connection = &self.session.connection;
        match connection.stale(&message, self.arrival.at) {
            None => Some(self),
            Some(status) => {
                if let Some(duty) = self.duty.take() {
                    duty.responder.fail(status.to_status());
                }
                None
            }
        }
    }

    /// The session that the message came by: push to it, call it.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Push or call.
    pub fn kind(&self) -> Kind {
        self.message.kind
    }

    /// What the message is about.
    pub fn route(&self) -> Route<'_> {
        self.message.route.as_route()
    }

    /// The call's sequence number; 0 for a push.
    pub fn sequence(&self) -> u32 {
        self.message.sequence
    }

    /// The message's key and value pairs.
    pub fn metadata(&self) -> &Metadata {
        &self.message.metadata
    }

    /// The format of the body.
    pub fn codec(&self) -> CodecId {
        self.message.codec
    }

    /// The body's bytes.
    pub fn body(&self) -> &[u8] {
        &self.message.body
    }

    /// The body itself. A call is dropped with it, and so answered.
    pub fn into_body(self) -> Vec<u8> {
        self.message.body
    }

    /// Reads the body as a value.
    ///
    /// # Errors
    /// `Unsupported` if the type does not read this format, `BadBody` if it does not decode.
    pub fn decode<'a, T: FromBody<'a>>(&'a self) -> Result<T, Error> {
        decode(&self.message.body, self.message.codec)
    }

    /// How long the caller still waits, as [`Context::time_left`](crate::Context::time_left).
    pub fn time_left(&self) -> Option<Duration> {
        self.duty.as_ref()?.responder.time_left()
    }

    /// Whether nobody waits for the answer any more, as
    /// [`Context::cancelled`](crate::Context::cancelled).
    pub fn cancelled(&self) -> bool {
        let connection = &self.session.connection;
        connection.is_cancelled_here(self.message.sequence)
    }

    /// The bytes that the whole message took on the wire.
    pub fn wire_bytes(&self) -> usize {
        self.arrival.wire_bytes
    }

    /// Begins a push or call on the same session. A call so made belongs to this one, as a call
    /// made in a handler does: a peer whose handler waits for our answer serves it at once, and it
    /// waits no longer than the caller of this one does.
    pub fn request<'r>(&self, route: impl Into<Route<'r>>) -> Request<'_, 'r> {
        let served = self.duty.as_ref().map(|duty| Served {
            connection: self.session.connection.clone(),
            call: ServedCall {
                sequence: self.message.sequence,
                deadline: duty.responder.deadline(),
            },
        });
        self.session.request(route).descends_from(served)
    }

    /// Answers the call with a body; one that the peer does not admit is replaced by a status. The
    /// message goes with it: what the answer borrows from it is to be copied first.
    ///
    /// # Errors
    /// `InvalidInput` for a push, `Closed` or `Disconnected` if the session has ended.
    pub fn reply(self, body: impl IntoBody) -> Result<(), Error> {
        self.open_responder()?.reply(body);
        Ok(())
    }

    /// Answers the call with an error status.
    ///
    /// # Errors
    /// As [`reply`](Received::reply).
    pub fn fail(self, status: Status) -> Result<(), Error> {
        self.open_responder()?.fail(status);
        Ok(())
    }

    fn open_responder(self) -> Result<Responder, Error> {
        let connection = self.session.connection.clone();
        let responder = self.into_responder()?;
        match connection.is_over() {
            true => Err(connection.closed_error()),
            false => Ok(responder),
        }
    }

    /// The duty to answer the call, to be fulfilled later and elsewhere.
    ///
    /// # Errors
    /// `InvalidInput` for a push.
    pub fn into_responder(self) -> Result<Responder, Error> {
        match self.duty {
            Some(duty) => Ok(duty.responder),
            None => Err(Error::new(
                ErrorKind::InvalidInput,
                "a push is not answered",
            )),
        }
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("session", &self.session.id().0)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

/// For logs, on one line: at most 64 bytes of the body, and no control characters.
impl fmt::Display for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}
