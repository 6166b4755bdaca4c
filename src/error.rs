//! One opaque error for everything, with a kind, a cause and predicates.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::status::Status;

/// What went wrong, coarse enough to act on. [`guide::errors`](crate::guide::errors) says what to
/// do about each.
///
/// | kind | whose fault | retry? |
/// |---|---|---|
/// | `InvalidInput`, `TooLarge`, `Unsupported` | the caller's | no |
/// | `QueueFull`, `TooManyInFlight`, `Overloaded` | nobody's: no room now | yes |
/// | `SlowPeer` | the peer's, or the line's: it reads too slowly | yes |
/// | `WouldDeadlock` | the caller's: waiting here could never end | no |
/// | `Timeout` | nobody's: the time limit passed | yes |
/// | `Cancelled` | nobody's: the caller of the handler that called has given up | no |
/// | `NameTaken` | the caller's: another session has the name | no |
/// | `Closed` | this side ended it, or the peer by a goodbye | no |
/// | `Disconnected`, `ConnectFailed` | the line or the peer's host | yes |
/// | `WrongProtocol`, `Malformed`, `FrameTooLarge`, `FrameTimeout`, `ProtocolAbuse` | the peer's | no |
/// | `Version`, `Refused` | the peer said no | no |
/// | `Status` | the peer's handler answered an error status | depends on the status |
/// | `Intercepted` | this side's own interceptor said no | no |
/// | `BadBody` | the sender of the body | no |
/// | `AddressInUse`, `Io` | the system | depends |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument or a configuration that cannot work.
    InvalidInput,
    /// A message that passes a limit of this side or of the peer; nothing was sent.
    TooLarge,
    /// The send queue has no room.
    QueueFull,
    /// As many calls as allowed wait for their replies.
    TooManyInFlight,
    /// Sessions, threads or memory are used up.
    Overloaded,
    /// The peer reads too slowly, and its session was ended for it
    /// ([`SlowPeer::Disconnect`](crate::SlowPeer::Disconnect)).
    SlowPeer,
    /// Waiting on this thread could never end.
    WouldDeadlock,
    /// The name that was asked for is another session's.
    NameTaken,
    /// A time limit passed; the message names the limit.
    Timeout,
    /// The caller of the handler that made this call has given up, or its session is over.
    Cancelled,
    /// This side, or the peer by saying goodbye, has closed the session.
    Closed,
    /// The connection is gone; see [`Error::maybe_executed`].
    Disconnected,
    /// No address of the peer could be reached.
    ConnectFailed,
    /// What answers on the port does not speak the expected protocol.
    WrongProtocol,
    /// The peer sent bytes that break the protocol.
    Malformed,
    /// The peer announced a frame over the limit.
    FrameTooLarge,
    /// The peer began a frame and did not finish it in time.
    FrameTimeout,
    /// The peer sends more control frames or stray replies than any honest one.
    ProtocolAbuse,
    /// No common protocol version.
    Version,
    /// The peer refused the connection; see [`Error::status`].
    Refused,
    /// The call was answered with an error status; see [`Error::status`].
    Status,
    /// An interceptor of this side refused the call; see [`Error::status`].
    Intercepted,
    /// A body that does not decode.
    BadBody,
    /// The protocol or this build cannot do what was asked.
    Unsupported,
    /// The local address is taken.
    AddressInUse,
    /// The operating system said no.
    Io,
}

/// The error of every operation of this crate.
///
/// It is cheap to clone. Use [`kind`](Error::kind) or the predicates to decide, and
/// `Display` to tell people: limits are named there, and `{:#}` adds the causes.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    status: Option<Status>,
    maybe_executed: bool,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Error(Arc::new(Inner {
            kind,
            message: message.into(),
            source: None,
            status: None,
            maybe_executed: false,
        }))
    }

    pub(crate) fn with_source(
        kind: ErrorKind,
        message: impl Into<Cow<'static, str>>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Error(Arc::new(Inner {
            kind,
            message: message.into(),
            source: Some(source.into()),
            status: None,
            maybe_executed: false,
        }))
    }

    pub(crate) fn from_status(kind: ErrorKind, status: Status) -> Self {
        let message = match kind {
            ErrorKind::Refused | ErrorKind::Overloaded => "the peer refused the connection",
            ErrorKind::Intercepted => "an interceptor refused the call",
            ErrorKind::Version => "no common protocol version",
            _ => "the call was answered with an error",
        };
        Error::with_status(kind, message, status)
    }

    /// A text, then the status behind it.
    pub(crate) fn with_status(kind: ErrorKind, message: &str, status: Status) -> Self {
        Error(Arc::new(Inner {
            kind,
            message: Cow::Owned(format!("{message}: {status}")),
            source: None,
            status: Some(status),
            maybe_executed: false,
        }))
    }

    /// The error of a call whose connection ended: `reason` is what ended it.
    pub(crate) fn disconnected(reason: &Error, maybe_executed: bool) -> Self {
        Error(Arc::new(Inner {
            kind: ErrorKind::Disconnected,
            message: Cow::Borrowed("the connection ended before the reply"),
            source: Some(Box::new(reason.clone())),
            status: None,
            maybe_executed,
        }))
    }

    /// The same error, with what the peer said when it closed the session. For new errors, of
    /// which there is no clone.
    pub(crate) fn with_farewell(mut self, farewell: Option<Status>) -> Self {
        if let (Some(status), Some(inner)) = (farewell, Arc::get_mut(&mut self.0)) {
            let message = format!("{}; the peer has closed it with {status}", inner.message);
            inner.message = Cow::Owned(message);
            inner.status = Some(status);
        }
        self
    }

    /// For codecs of your own: a value that cannot be encoded.
    pub fn invalid_input(message: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidInput, message)
    }

    /// For codecs of your own: a body that does not decode.
    pub fn bad_body(message: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::BadBody, message)
    }

    /// For protocols of your own: bytes that no correct peer sends.
    pub fn malformed(message: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::Malformed, message)
    }

    /// The same error for a call that the peer may execute all the same.
    pub(crate) fn after_sending(kind: ErrorKind, message: &'static str) -> Self {
        Error(Arc::new(Inner {
            kind,
            message: Cow::Borrowed(message),
            source: None,
            status: None,
            maybe_executed: true,
        }))
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The status that the peer sent, for the kinds `Status`, `Refused`, `Overloaded` and
    /// `Version`, and with its goodbye for `Closed` and `Disconnected`; or that the interceptor
    /// gave; `None` if there was none. With kind `Unsupported`, from
    /// [`Framed::read`](crate::Framed::read): the status that the message deserves.
    pub fn status(&self) -> Option<&Status> {
        self.0.status.as_ref()
    }

    /// Whether the peer may have executed the call, though no reply came.
    ///
    /// `false` means that it certainly was not, so it may be repeated; except where a reply did
    /// come, with an error [`status`](Error::status): then the status tells.
    pub fn maybe_executed(&self) -> bool {
        self.0.maybe_executed
    }

    /// A time limit passed: here, or at the peer, which answered so.
    pub fn is_timeout(&self) -> bool {
        match self.0.kind {
            ErrorKind::Timeout | ErrorKind::FrameTimeout => true,
            ErrorKind::Status => self.has_code(&[Status::DEADLINE_EXCEEDED]),
            _ => false,
        }
    }

    /// The session is over, whoever ended it.
    pub fn is_closed(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Closed | ErrorKind::Disconnected | ErrorKind::SlowPeer
        )
    }

    /// The same operation may succeed later, or with another peer.
    pub fn is_retryable(&self) -> bool {
        match self.0.kind {
            ErrorKind::QueueFull
            | ErrorKind::TooManyInFlight
            | ErrorKind::Overloaded
            | ErrorKind::SlowPeer
            | ErrorKind::Timeout
            | ErrorKind::Disconnected
            | ErrorKind::ConnectFailed => true,
            ErrorKind::Status if self.is_timeout() => true,
            ErrorKind::Status | ErrorKind::Refused => {
                self.has_code(&[Status::OVERLOADED, Status::GOING_AWAY])
            }
            _ => false,
        }
    }

    fn has_code(&self, codes: &[i32]) -> bool {
        self.status()
            .is_some_and(|status| codes.contains(&status.code()))
    }

    /// The peer broke the protocol.
    pub fn is_peer_fault(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::WrongProtocol
                | ErrorKind::Malformed
                | ErrorKind::FrameTooLarge
                | ErrorKind::FrameTimeout
                | ErrorKind::ProtocolAbuse
        )
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug
            .field("kind", &self.0.kind)
            .field("message", &self.0.message);
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        debug.finish()
    }
}

/// The message without its cause; `{:#}` appends the causes, from the nearest to the first.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if f.alternate() {
            let mut source = std::error::Error::source(self);
            while let Some(cause) = source {
                write!(f, ": {cause}")?;
                source = cause.source();
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.source {
            Some(source) => Some(source.as_ref()),
            None => None,
        }
    }
}

/// What a handler's `?` makes of an error: the peer's bad body is the peer's, the rest is ours.
impl From<Error> for Status {
    fn from(error: Error) -> Status {
        // What another peer said when it left is no answer to this one.
        if let Some(status) = error.status().filter(|_| !error.is_closed()) {
            return status.clone();
        }
        let code = match error.kind() {
            ErrorKind::BadBody => Status::BAD_BODY,
            ErrorKind::Unsupported => Status::UNSUPPORTED,
            ErrorKind::TooLarge => Status::TOO_LARGE,
            ErrorKind::Timeout => Status::DEADLINE_EXCEEDED,
            ErrorKind::Cancelled => Status::CANCELLED,
            ErrorKind::WouldDeadlock => Status::WOULD_DEADLOCK,
            ErrorKind::NameTaken => Status::NAME_TAKEN,
            ErrorKind::QueueFull | ErrorKind::TooManyInFlight | ErrorKind::Overloaded => {
                Status::OVERLOADED
            }
            _ => Status::HANDLER_FAILED,
        };
        Status::new(code, error.to_string())
    }
}

/// Runs user code; `None` if it panicked. What it panicked with is dropped here, where even a
/// panic of that does no harm.
pub(crate) fn caught<R>(run: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => Some(result),
        Err(payload) => {
            if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(second);
            }
            None
        }
    }
}

/// A push that could not be queued, with the body it was given.
pub struct TryPushError<B> {
    error: Error,
    body: B,
}

impl<B> TryPushError<B> {
    pub(crate) fn new(error: Error, body: B) -> Self {
        TryPushError { error, body }
    }

    /// Why the message was not queued.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The body, to be sent again.
    pub fn into_body(self) -> B {
        self.body
    }

    /// The queue was full: it may work later.
    pub fn is_full(&self) -> bool {
        matches!(self.error.kind(), ErrorKind::QueueFull | ErrorKind::Timeout)
    }
}

impl<B> fmt::Debug for TryPushError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryPushError")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl<B> fmt::Display for TryPushError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<B> std::error::Error for TryPushError<B> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.error)
    }
}

impl<B> From<TryPushError<B>> for Error {
    fn from(unsent: TryPushError<B>) -> Error {
        unsent.error
    }
}
