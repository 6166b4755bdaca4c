//! Code of the application's own around every handler and every outgoing call.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Session;
use crate::error::{Error, ErrorKind, caught};
use crate::message::{Kind, MessageRef, Metadata, MetadataRef, OwnedRoute, Route};
use crate::status::Status;

/// Sees the pushes and calls that handlers handle, and the calls that this side makes; may
/// refuse them.
///
/// Several may be given to a builder: [`before`](Interceptor::before) runs in their order,
/// [`after`](Interceptor::after) in the reverse one. Both run on the thread of the handler or
/// caller, without any lock held, and must not wait. Messages without a handler or inbox are not
/// shown. A panic is counted and goes no further; in
/// `before` it refuses with status [`HANDLER_PANICKED`](Status::HANDLER_PANICKED).
///
/// ```
/// use std::time::Duration;
/// use trunkline::{Exchange, Interceptor, Outcome};
///
/// struct LogSlow;
///
/// impl Interceptor for LogSlow {
///     fn after(&self, exchange: &Exchange<'_>, outcome: &Outcome<'_>) {
///         if outcome.duration > Duration::from_millis(100) {
///             eprintln!("{}: {:?}", exchange.route, outcome.duration);
///         }
///     }
/// }
/// ```
#[doc(alias = "middleware")]
#[doc(alias = "plugin")]
pub trait Interceptor: Send + Sync + 'static {
    /// Before a handler runs, a message is put into the inbox, or a call is sent.
    ///
    /// # Errors
    /// A status refuses: the caller gets it, a push is dropped and counted, and a call of this
    /// side fails with [`ErrorKind::Intercepted`].
    fn before(&self, exchange: &Exchange<'_>) -> Result<(), Status> {
        let _ = exchange;
        Ok(())
    }

    /// After a push was handled or put into the inbox, a call of the peer was answered (by
    /// whomever), or a call of this side has ended for its caller.
    fn after(&self, exchange: &Exchange<'_>, outcome: &Outcome<'_>) {
        let _ = (exchange, outcome);
    }
}

/// Who sent the message that an [`Interceptor`] sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The peer: a handler handles it.
    Incoming,
    /// This side.
    Outgoing,
}

/// A message that an [`Interceptor`] sees.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Exchange<'a> {
    /// With whom.
    pub session: &'a Session,
    /// Who sent it.
    pub direction: Direction,
    /// Push or call.
    pub kind: Kind,
    /// What it is about.
    pub route: Route<'a>,
    /// Its key and value pairs.
    pub metadata: MetadataRef<'a>,
    /// Bytes of its body.
    pub body_bytes: usize,
}

/// How it ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Outcome<'a> {
    /// The status code of the reply; 0 for success, and for a push. For a call that ended
    /// without a reply, the code that stands for the error.
    pub status: i32,
    /// Why a call of this side failed.
    pub error: Option<&'a Error>,
    /// From `before` to now.
    pub duration: Duration,
}

/// The interceptors of a client or server, in their order.
#[derive(Clone, Default)]
pub(crate) struct Interceptors(Option<Arc<Vec<Box<dyn Interceptor>>>>);

impl From<Vec<Box<dyn Interceptor>>> for Interceptors {
    fn from(interceptors: Vec<Box<dyn Interceptor>>) -> Self {
        Interceptors((!interceptors.is_empty()).then(|| Arc::new(interceptors)))
    }
}

impl Interceptors {
    fn all(&self) -> &[Box<dyn Interceptor>] {
        self.0.as_ref().map_or(&[], |all| all.as_slice())
    }
}

impl Session {
    /// Asks the interceptors; without any it is not even made out what about.
    #[inline]
    pub(crate) fn intercept<'a>(
        &'a self,
        exchange: impl FnOnce() -> Exchange<'a>,
    ) -> Result<Watched, Status> {
        match self.attached.interceptors.0 {
            None => Ok(None),
            Some(_) => exchange().begin(),
        }
    }
}

impl fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} interceptors", self.all().len())
    }
}

/// A message between its `before` and its `after`.
pub(crate) struct Intercepted {
    session: Session,
    direction: Direction,
    kind: Kind,
    route: OwnedRoute,
    metadata: Metadata,
    body_bytes: usize,
    begun: Instant,
}

/// The message that is being intercepted; `None` where there are no interceptors.
pub(crate) type Watched = Option<Arc<Intercepted>>;

impl<'a> Exchange<'a> {
    /// A message of the peer.
    pub(crate) fn incoming(session: &'a Session, message: &MessageRef<'a>) -> Self {
        Exchange {
            session,
            direction: Direction::Incoming,
            kind: message.kind,
            route: message.route,
            metadata: message.metadata,
            body_bytes: message.body.len(),
        }
    }

    /// Asks all interceptors of the session. One that refuses, or panics, ends it for those
    /// before it.
    fn begin(self) -> Result<Watched, Status> {
        let intercepted = Arc::new(Intercepted {
            session: self.session.clone(),
            direction: self.direction,
            kind: self.kind,
            route: self.route.to_owned_route(),
            metadata: self.metadata.to_metadata(),
            body_bytes: self.body_bytes,
            begun: Instant::now(),
        });
        let interceptors = self.session.attached.interceptors.all();
        for (passed, interceptor) in interceptors.iter().enumerate() {
            let answer = caught(|| interceptor.before(&self)).unwrap_or_else(|| {
                self.session.connection.count_panic();
                Err(panicked())
            });
            if let Err(status) = answer {
                intercepted.tell(passed, status.code(), None);
                return Err(status);
            }
        }
        Ok(Some(intercepted))
    }
}

impl Intercepted {
    /// Tells the interceptors, of which so many have let it pass.
    fn tell(&self, passed: usize, status: i32, error: Option<&Error>) {
        let exchange = Exchange {
            session: &self.session,
            direction: self.direction,
            kind: self.kind,
            route: self.route.as_route(),
            metadata: self.metadata.as_ref(),
            body_bytes: self.body_bytes,
        };
        let outcome = Outcome {
            status,
            error,
            duration: self.begun.elapsed(),
        };
        let interceptors = self.session.attached.interceptors.all();
        for interceptor in interceptors.iter().take(passed).rev() {
            let connection = &self.session.connection;
            connection.guard(|| interceptor.after(&exchange, &outcome));
        }
    }

    /// It was handled or answered with this status.
    pub(crate) fn answered(&self, status: i32) {
        self.tell(usize::MAX, status, None);
    }

    /// A call of this side has ended.
    pub(crate) fn ended<T>(&self, outcome: &Result<T, Error>) {
        let error = outcome.as_ref().err();
        let status = error.map_or(Status::OK, |error| Status::from(error.clone()).code());
        self.tell(usize::MAX, status, error);
    }
}

fn panicked() -> Status {
    Status::new(Status::HANDLER_PANICKED, "an interceptor panicked")
}

/// Why a call of this side was not sent.
pub(super) fn refused(status: Status) -> Error {
    Error::from_status(ErrorKind::Intercepted, status)
}
