//! A push or call with metadata or a time limit of its own.

use std::time::{Duration, Instant};

use super::clock::coarse_now;
use super::interceptor::refused;
use super::{Callee, Direction, Exchange, Pending, Reply, Session, Watched, push, with_bytes};
use crate::codec::{Body, IntoBody};
use crate::config::deadline;
use crate::connection::serving::{self, Served};
use crate::connection::waiter::{Caller, Outcome, Waiter};
use crate::connection::{Wait, before_wait};
use crate::error::{Error, ErrorKind};
use crate::message::{Kind, MessageRef, Metadata, Route};

/// From this time limit on the coarse clock will do for a callback.
const COARSE: Duration = Duration::from_secs(1);

/// Until when a call may take.
#[derive(Clone, Copy)]
struct Until {
    deadline: Option<Instant>,
    /// What the peer is told of it.
    told: Option<Duration>,
}

/// A message that is being put together; see [`Session::request`].
#[must_use = "nothing is sent before push, call or start"]
#[derive(Debug)]
pub struct Request<'s, 'r> {
    callee: &'s dyn Callee,
    route: Route<'r>,
    metadata: Metadata,
    limit: Option<Duration>,
    /// The call for whose answer this one is made.
    served: Option<Served>,
    error: Option<Error>,
}

impl<'s, 'r> Request<'s, 'r> {
    pub(crate) fn new(callee: &'s dyn Callee, route: Route<'r>) -> Self {
        Request {
            callee,
            route,
            metadata: Metadata::new(),
            limit: None,
            served: None,
            error: None,
        }
    }

    pub(super) fn descends_from(mut self, served: Option<Served>) -> Self {
        self.served = served;
        self
    }

    /// In a handler, the call is made for the one that the handler serves.
    fn in_service(mut self) -> Self {
        self.served = self.served.or_else(serving::current);
        self
    }

    /// Adds a metadata pair. A pair that is too large shows as the error of sending.
    #[doc(alias = "AddMeta")]
    pub fn meta(mut self, key: &str, value: &str) -> Self {
        if let Err(error) = self.metadata.push(key, value) {
            self.error = Some(error);
        }
        self
    }

    /// Time limit of this message instead of `timeouts.call` or `timeouts.push`. The handler of
    /// a call sees what is left of it, and what that handler calls waits no longer; likewise a
    /// call made in a handler waits no longer than the handler's own caller. Zero fails a call without sending it; [`Duration::MAX`]
    /// is no limit.
    #[doc(alias = "RCVTIMEO")]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sends it as a push.
    ///
    /// # Errors
    /// As [`Session::push`].
    pub fn push(mut self, body: impl IntoBody) -> Result<(), Error> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let limit = self.limit.unwrap_or(self.callee.config().timeouts.push);
        let metadata = self.metadata.as_ref();
        push(self.callee, self.route, metadata, &body, Wait::For(limit))
    }

    /// Sends it as a call and waits for the reply.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn call(self, body: impl IntoBody) -> Result<Reply, Error> {
        // A handler that cannot wait shall not send.
        before_wait()?;
        self.start(body)?.wait()
    }

    /// Sends it as a call and lends the reply's body to `read`.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn call_with<R>(
        self,
        body: impl IntoBody,
        read: impl FnOnce(Body<'_>) -> R,
    ) -> Result<R, Error> {
        before_wait()?;
        self.start(body)?.wait_with(read)
    }

    /// Sends it as a call and returns without waiting for the reply; do that with the
    /// [`Pending`]. It waits, up to the time limit, for room in the queue and among the calls in
    /// flight.
    ///
    /// # Errors
    /// As [`Session::call`], before the call is sent.
    #[doc(alias = "AsyncCall")]
    pub fn start(self, body: impl IntoBody) -> Result<Pending, Error> {
        let waiter = Waiter::take();
        let started = Instant::now();
        let request = self.in_service();
        let until = request.until(started)?;
        let deadline = until.deadline;
        let session = request.callee.current(deadline)?;
        let caller = |_: &Watched| Caller::Thread(waiter.clone());
        let (sequence, watched) = request.open(&session, &body, until, caller)?;
        let connection = session.connection.clone();
        Ok(Pending::new(
            connection, waiter, sequence, started, deadline, watched,
        ))
    }

    /// Sends it as a call and returns as [`start`](Request::start) does; `callback` is lent the
    /// reply's body, once, without any lock held: on the connection's reader thread when the
    /// reply comes, or on the callback thread when the call ends otherwise. For many calls in
    /// flight this is the cheapest way: what callbacks send goes out together.
    ///
    /// # Errors
    /// As [`Session::call`], before the call is sent; then `callback` does not run.
    pub fn call_then(
        self,
        body: impl IntoBody,
        callback: impl FnOnce(Result<Body<'_>, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let caller = |watched: &Watched| {
            let watched = watched.clone();
            Caller::Callback(Box::new(move |outcome: Outcome<'_>| {
                if let Some(watched) = watched {
                    watched.ended(&outcome);
                }
                callback(outcome.map(|reply| Body::new(reply.body, reply.codec)));
            }))
        };
        let request = self.in_service();
        let started = match request.call_limit() < COARSE || request.served.is_some() {
            true => Instant::now(),
            false => coarse_now(),
        };
        let until = request.until(started)?;
        let session = request.callee.current(until.deadline)?;
        request.open(&session, &body, until, caller)?;
        Ok(())
    }

    fn call_limit(&self) -> Duration {
        self.limit.unwrap_or(self.callee.config().timeouts.call)
    }

    /// Until when the call, which is to be sent, may take.
    fn until(&self, started: Instant) -> Result<Until, Error> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let limit = self.call_limit();
        if limit == Duration::ZERO {
            return Err(Error::new(
                ErrorKind::Timeout,
                "a call with a time limit of zero is not sent",
            ));
        }
        let own = deadline(started, limit);
        let Some(inherited) = inherited(self.served.as_ref(), own)? else {
            // The peer knows the default from the handshake.
            let default = self.callee.config().timeouts.call;
            return Ok(Until {
                deadline: own,
                told: self.limit.filter(|own| *own != default),
            });
        };
        let left = inherited.saturating_duration_since(started);
        if left.is_zero() {
            return Err(Error::new(
                ErrorKind::Timeout,
                "no time is left of the call that this handler serves",
            ));
        }
        Ok(Until {
            deadline: Some(inherited),
            told: Some(left),
        })
    }

    fn open(
        &self,
        session: &Session,
        body: &impl IntoBody,
        until: Until,
        caller: impl FnOnce(&Watched) -> Caller,
    ) -> Result<(u32, Watched), Error> {
        with_bytes(body, |codec, bytes| {
            let exchange = || Exchange {
                session,
                direction: Direction::Outgoing,
                kind: Kind::Call,
                route: self.route,
                metadata: self.metadata.as_ref(),
                body_bytes: bytes.len(),
            };
            let watched = session.intercept(exchange).map_err(refused)?;
            let mut message = MessageRef::new(Kind::Call, self.route, 0, codec, bytes);
            message.metadata = self.metadata.as_ref();
            message.time_left = until.told;
            let opened = session
                .connection
                .open_call(
                    message,
                    caller(&watched),
                    until.deadline,
                    self.served.as_ref(),
                )
                .map_err(|error| self.callee.refused(error));
            if let (Err(_), Some(watched)) = (&opened, &watched) {
                watched.ended(&opened);
            }
            Ok((opened?, watched))
        })
    }
}

/// The deadline of the call that is served, if it comes before the own one.
///
/// # Errors
/// `Cancelled` if that call was given up.
fn inherited(served: Option<&Served>, own: Option<Instant>) -> Result<Option<Instant>, Error> {
    let Some(Served { connection, call }) = served else {
        return Ok(None);
    };
    if connection.is_cancelled(call.sequence) {
        return Err(Error::new(
            ErrorKind::Cancelled,
            "the caller of this handler has given up: nothing is called for it any more",
        ));
    }
    let deadline = call.deadline;
    Ok(deadline.filter(|deadline| own.is_none_or(|own| *deadline < own)))
}
