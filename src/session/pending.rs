//! A call that was sent and not yet taken, and its reply.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Watched;
use crate::codec::{Body, FromBody, decode};
use crate::config::deadline;
use crate::connection::Connection;
use crate::connection::waiter::{Answer, Callback, Waiter};
use crate::error::{Error, ErrorKind};
use crate::message::{BodyBytes, CodecId, MessageRef, Metadata, Payload};
use crate::status::Status;

/// The answer to a call.
///
/// `Display` and `Debug` are for logs: they show at most 64 bytes of the body, and escape control
/// characters. [`decode`](Reply::decode) gives the text itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    codec: CodecId,
    metadata: Metadata,
    body: Vec<u8>,
}

impl Reply {
    /// The body's bytes.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body itself.
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }

    /// The format of the body.
    pub fn codec(&self) -> CodecId {
        self.codec
    }

    /// The reply's key and value pairs.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Reads the body as a value.
    ///
    /// # Errors
    /// `Unsupported` if the type does not read this format, `BadBody` if it does not decode.
    pub fn decode<'a, T: FromBody<'a>>(&'a self) -> Result<T, Error> {
        decode(&self.body, self.codec)
    }
}

impl Reply {
    fn copy(message: &MessageRef<'_>) -> Self {
        Reply {
            codec: message.codec,
            metadata: message.metadata.to_metadata(),
            body: message.body.to_vec(),
        }
    }
}

impl fmt::Display for Reply {
    /// One line for logs, such as `reply, text, 5 bytes: "hello"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = Payload {
            metadata: self.metadata.as_ref(),
            codec: self.codec,
            body: &self.body,
        };
        write!(f, "reply, {payload}")
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("codec", &self.codec)
            .field("metadata", &self.metadata)
            .field("body", &BodyBytes(self.codec, &self.body))
            .finish()
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Reply {
            codec: answer.codec,
            metadata: answer.metadata,
            body: answer.body,
        }
    }
}

/// A call in flight: a future for threads. Dropping it cancels the call.
#[doc(alias = "aio")]
#[doc(alias = "future")]
#[doc(alias = "AsyncCall")]
#[must_use = "dropping it cancels the call"]
pub struct Pending {
    connection: Arc<Connection>,
    /// `None` once the call has ended for this side.
    waiter: Option<Arc<Waiter>>,
    sequence: u32,
    started: Instant,
    deadline: Option<Instant>,
    watched: Watched,
}

impl Pending {
    pub(super) fn new(
        connection: Arc<Connection>,
        waiter: Arc<Waiter>,
        sequence: u32,
        started: Instant,
        deadline: Option<Instant>,
        watched: Watched,
    ) -> Self {
        Pending {
            connection,
            waiter: Some(waiter),
            sequence,
            started,
            deadline,
            watched,
        }
    }

    /// Waits for the reply, up to the call's time limit.
    ///
    /// # Errors
    /// As [`Session::call`](crate::Session::call).
    pub fn wait(mut self) -> Result<Reply, Error> {
        self.finish()
    }

    fn finish(&mut self) -> Result<Reply, Error> {
        let answer = self.wait_filled().and_then(|waiter| {
            let answer = waiter.take_answer().unwrap_or_else(|| Err(taken()));
            Waiter::give_back(waiter);
            answer
        });
        self.tell(answer.map(Reply::from))
    }

    /// The call has ended for its caller: the interceptors are told.
    fn tell<T>(&mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        if let Some(watched) = self.watched.take() {
            watched.ended(&outcome);
        }
        outcome
    }

    pub(super) fn wait_with<R>(mut self, read: impl FnOnce(Body<'_>) -> R) -> Result<R, Error> {
        let result = self.wait_filled().and_then(|waiter| {
            let result = waiter
                .read(|bytes, codec| read(Body::new(bytes, codec)))
                .unwrap_or_else(|| Err(taken()));
            Waiter::give_back(waiter);
            result
        });
        self.tell(result)
    }

    /// Waits to the end of the call, whose waiter is filled then.
    fn wait_filled(&mut self) -> Result<Arc<Waiter>, Error> {
        let Some(waiter) = self.waiter.take() else {
            return Err(taken());
        };
        self.connection
            .wait_call(self.sequence, &waiter, self.started, self.deadline)?;
        Ok(waiter)
    }

    /// Waits for the reply at most `limit`: `None` means that the call goes on.
    ///
    /// The call's own time limit ends it all the same. After the outcome was taken, asking
    /// again gives `Closed`.
    ///
    /// # Errors
    /// As [`Session::call`](crate::Session::call).
    pub fn wait_timeout(&mut self, limit: Duration) -> Option<Result<Reply, Error>> {
        let now = Instant::now();
        let until = deadline(now, limit);
        let ends_first = match (self.deadline, until) {
            (Some(call), Some(until)) => call <= until,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if ends_first || until.is_none() {
            return Some(self.finish());
        }
        let Some(waiter) = &self.waiter else {
            return Some(Err(taken()));
        };
        if self.connection.begin_wait(waiter).is_err() {
            return Some(self.finish());
        }
        waiter.wait(now, until, false);
        self.connection.end_wait(waiter);
        self.try_take()
    }

    /// The outcome, if the call has ended; it does not wait. `None` means that the call goes on.
    ///
    /// # Errors
    /// As [`Session::call`](crate::Session::call); `Closed` once the outcome was taken.
    pub fn try_take(&mut self) -> Option<Result<Reply, Error>> {
        let Some(waiter) = &self.waiter else {
            return Some(Err(taken()));
        };
        if waiter.is_done() {
            let answer = waiter.take_answer();
            self.waiter = None;
            return answer.map(|answer| self.tell(answer.map(Reply::from)));
        }
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            return Some(self.finish());
        }
        None
    }

    /// Gives the call up; the peer is told. A reply that comes later is dropped and counted.
    pub fn cancel(self) {}

    /// Runs `callback` with the outcome, once, without any lock held: at once on this thread
    /// if the call has ended, else on the connection's reader thread when the reply comes, or
    /// on the callback thread when the call ends otherwise.
    pub fn on_reply(mut self, callback: impl FnOnce(Result<Reply, Error>) + Send + 'static) {
        let Some(waiter) = self.waiter.take() else {
            return callback(Err(taken()));
        };
        let watched = self.watched.take();
        let callback: Callback = Box::new(move |outcome| {
            if let Some(watched) = watched {
                watched.ended(&outcome);
            }
            callback(outcome.map(Reply::copy));
        });
        let instead = self
            .connection
            .call_back_instead(self.sequence, callback, self.deadline);
        if let Err(callback) = instead {
            // The call has ended; at most its waiter is being filled this moment.
            waiter.wait(self.started, None, false);
            match waiter.take_answer().unwrap_or_else(|| Err(taken())) {
                Ok(answer) => callback(Ok(&answer.as_message())),
                Err(error) => callback(Err(error)),
            }
        }
    }
}

fn taken() -> Error {
    Error::new(
        ErrorKind::Closed,
        "the outcome of the call was taken before",
    )
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.waiter.take().is_some() {
            self.connection.give_up_call(self.sequence);
        }
        if let Some(watched) = self.watched.take() {
            watched.answered(Status::CANCELLED);
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("session", &self.connection.id.0)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
