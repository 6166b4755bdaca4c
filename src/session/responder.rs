//! Answers that are given later than the handler returns, by whatever thread.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Watched, with_bytes};
use crate::codec::IntoBody;
use crate::connection::Connection;
use crate::error::Error;
use crate::message::{Metadata, MetadataRef};
use crate::status::{Status, StatusRef};

/// The duty to answer one call. Dropping it answers status [`Status::NO_REPLY`].
#[must_use = "dropping it answers the call with status NO_REPLY"]
pub struct Responder {
    connection: Arc<Connection>,
    sequence: u32,
    metadata: Metadata,
    answered: bool,
    watched: Watched,
    /// When the caller gives up.
    deadline: Option<Instant>,
}

impl Responder {
    pub(crate) fn new(
        connection: Arc<Connection>,
        sequence: u32,
        answered: bool,
        watched: Watched,
        deadline: Option<Instant>,
    ) -> Self {
        Responder {
            connection,
            sequence,
            metadata: Metadata::new(),
            answered,
            watched,
            deadline,
        }
    }

    /// How long the caller still waits, as [`Context::time_left`](crate::Context::time_left).
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether nobody waits for the answer any more, as
    /// [`Context::cancelled`](crate::Context::cancelled).
    pub fn cancelled(&self) -> bool {
        self.connection.is_cancelled_here(self.sequence)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Adds a metadata pair to the answer.
    ///
    /// # Errors
    /// `TooLarge` if key and value together pass 65,533 bytes.
    pub fn meta(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.metadata.push(key, value)
    }

    /// Answers with a body. An answer to a session that has ended goes nowhere; one that the
    /// peer does not admit is replaced by a status.
    pub fn reply(mut self, body: impl IntoBody) {
        if !self.answered {
            let (metadata, answered) = (self.metadata.as_ref(), &mut self.answered);
            let settle = || *answered = true;
            let code = answer(&self.connection, self.sequence, metadata, &body, settle);
            self.tell(code);
        }
    }

    /// Answers with an error status.
    pub fn fail(mut self, status: Status) {
        if !std::mem::replace(&mut self.answered, true) {
            self.send_status(status.as_ref());
        }
    }

    fn send_status(&mut self, status: StatusRef<'_>) {
        let code = self
            .connection
            .reply_status(self.sequence, status, self.metadata.as_ref());
        self.tell(code);
    }

    /// The call is answered: the interceptors are told.
    fn tell(&mut self, code: i32) {
        if let Some(watched) = self.watched.take() {
            watched.answered(code);
        }
    }
}

/// Encodes and sends an answer. `settle` runs in between: an encoder that panics leaves the
/// call to whoever answers panics. The answer is the status code that it came to.
pub(crate) fn answer(
    connection: &Connection,
    sequence: u32,
    metadata: MetadataRef<'_>,
    body: &impl IntoBody,
    settle: impl FnOnce(),
) -> i32 {
    let mut settle = Some(settle);
    let mut settled = || settle.take().into_iter().for_each(|settle| settle());
    let sent = with_bytes(body, |codec, bytes| {
        settled();
        Ok(connection.reply(sequence, None, metadata, codec, bytes))
    });
    sent.unwrap_or_else(|error| {
        settled();
        let status = Status::from(error);
        connection.reply_status(sequence, status.as_ref(), metadata)
    })
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.answered {
            self.send_status(StatusRef {
                code: Status::NO_REPLY,
                text: "the call was dropped without an answer",
                cause: "",
            });
        }
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder")
            .field("session", &self.connection.id.0)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

/// What a handler returns when its [`Responder`] answers; see
/// [`Context::defer`](crate::Context::defer).
#[derive(Debug)]
pub struct Deferred(pub(crate) ());
