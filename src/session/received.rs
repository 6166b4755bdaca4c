//! A message taken out of an inbox, and the ways to answer it.

use std::fmt;
use std::time::Duration;

use super::{CallBytes, Request, Responder, Session, Watched};
use crate::codec::{FromBody, IntoBody, decode};
use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, Kind, Message, MessageRef, Metadata, Route};
use crate::status::Status;

/// A push or call from an [`Inbox`](crate::Inbox), with the session that it came by.
///
/// A call that is dropped is answered with status [`Status::NO_REPLY`].
pub struct Received {
    session: Session,
    message: Message,
    wire_bytes: usize,
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
        wire_bytes: usize,
        watched: Watched,
    ) -> Option<Self> {
        let duty = match message.kind {
            Kind::Call => {
                let connection = session.connection.clone();
                Some(Duty {
                    _bytes: CallBytes::take(session, message, wire_bytes)?,
                    responder: Responder::new(connection, message.sequence, false, watched),
                })
            }
            _ => None,
        };
        Some(Received {
            session: session.clone(),
            message: message.to_message(),
            wire_bytes,
            duty,
        })
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

    /// How long the caller would still wait when it sent the call, if it said so.
    pub fn time_left(&self) -> Option<Duration> {
        self.message.time_left
    }

    /// The bytes that the whole message took on the wire.
    pub fn wire_bytes(&self) -> usize {
        self.wire_bytes
    }

    /// Begins a push or call on the same session. A call so made belongs to this one, as a call
    /// made in a handler does: a peer whose handler waits for our answer serves it at once.
    pub fn request<'r>(&self, route: impl Into<Route<'r>>) -> Request<'_, 'r> {
        let parent = self.duty.as_ref().map(|_| self.message.sequence);
        self.session.request(route).descends_from(parent)
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
