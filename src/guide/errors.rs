//! Whose fault it is, whether to try again, and what to do.
//!
//! Everything fails with one [`Error`](crate::Error). Decide by its
//! [`kind`](crate::Error::kind), or by a predicate; show its text to people. `{}` prints what
//! happened and names the limit that was passed, `{:#}` adds the causes.
//!
//! | to know | ask |
//! |---|---|
//! | did a time limit pass? | [`is_timeout`](crate::Error::is_timeout) |
//! | is the session over? | [`is_closed`](crate::Error::is_closed) |
//! | may it work later, or with another peer? | [`is_retryable`](crate::Error::is_retryable) |
//! | did the peer break the protocol? | [`is_peer_fault`](crate::Error::is_peer_fault) |
//! | may the peer have executed the call all the same? | [`maybe_executed`](crate::Error::maybe_executed) |
//! | what did the peer's handler say? | [`status`](crate::Error::status) |
//!
//! # Kinds
//!
//! | kind | whose fault | again? | what to do |
//! |---|---|---|---|
//! | [`InvalidInput`] | the caller's | no | mend the argument or setting that it names |
//! | [`TooLarge`] | the caller's | no | send less at once, or raise the limit that it names, at the side that it names |
//! | [`Unsupported`] | the caller's | no | the protocol cannot carry this, or the type does not read that format: choose another |
//! | [`QueueFull`] | nobody's | yes | the peer is slower than this side: wait, drop or thin out |
//! | [`TooManyInFlight`] | nobody's | yes | fewer calls at a time, or higher limits at both sides |
//! | [`Overloaded`] | nobody's | yes | later; or raise what the text names: `limits.sessions`, `limits.session_bytes`, `limits.total_bytes`, or the system's limit of threads |
//! | [`SlowPeer`] | the peer's, or the line's | yes | the session is over, by the [policy](crate::SlowPeer) for peers that read too slowly: the peer dials again; push less, or raise `limits.queued_bytes` |
//! | [`WouldDeadlock`] | the caller's | no | do not wait here: defer the answer, or let another thread wait |
//! | [`Cancelled`] | nobody's | no | the caller of the handler that made this call has given up, or its session ended: stop |
//! | [`Timeout`] | nobody's | yes | the text names the limit. A call may have been executed: see below |
//! | [`Closed`] | this side's, or the peer said goodbye | no | dial again if the work goes on; a client that [reconnects](super::promises#reconnecting) gives it only after its own end |
//! | [`Disconnected`] | the line, or the peer's host | yes | dial again, or let the client [reconnect](super::promises#reconnecting); a call may have been executed |
//! | [`ConnectFailed`] | the line, or the peer's host | yes | later, or another address |
//! | [`WrongProtocol`] | the peer's | no | something else listens there; the text says what it looks like |
//! | [`Malformed`] | the peer's | no | the session is over: look for a broken or foreign peer |
//! | [`FrameTooLarge`] | the peer's | no | the same; or `limits.frame_bytes` is too low here |
//! | [`FrameTimeout`] | the peer's, or the line's | no | the same; or `timeouts.frame` is too short for this line |
//! | [`ProtocolAbuse`] | the peer's | no | the same |
//! | [`Version`] | nobody's | no | update one of the sides; the text has both ranges |
//! | [`Refused`] | the peer said no | with `OVERLOADED` and `GOING_AWAY` | read the status |
//! | [`Status`](crate::ErrorKind::Status) | the peer's handler said no | with `OVERLOADED`, `GOING_AWAY` and `DEADLINE_EXCEEDED` | read the status: codes are in [`status`](crate::status) |
//! | [`Intercepted`] | this side's own interceptor | no | read the status that it gave |
//! | [`NameTaken`] | the caller's | no | another name, or [`Duplicate::Replace`](crate::Duplicate::Replace) |
//! | [`BadBody`] | the sender of the body | no | the two sides disagree about a format |
//! | [`AddressInUse`] | the system | if the address becomes free | another port, or end the other program |
//! | [`Io`] | the system | depends | the cause has the system's own words |
//!
//! [`InvalidInput`]: crate::ErrorKind::InvalidInput
//! [`TooLarge`]: crate::ErrorKind::TooLarge
//! [`Unsupported`]: crate::ErrorKind::Unsupported
//! [`QueueFull`]: crate::ErrorKind::QueueFull
//! [`TooManyInFlight`]: crate::ErrorKind::TooManyInFlight
//! [`Overloaded`]: crate::ErrorKind::Overloaded
//! [`SlowPeer`]: crate::ErrorKind::SlowPeer
//! [`WouldDeadlock`]: crate::ErrorKind::WouldDeadlock
//! [`Cancelled`]: crate::ErrorKind::Cancelled
//! [`Timeout`]: crate::ErrorKind::Timeout
//! [`Closed`]: crate::ErrorKind::Closed
//! [`Disconnected`]: crate::ErrorKind::Disconnected
//! [`ConnectFailed`]: crate::ErrorKind::ConnectFailed
//! [`WrongProtocol`]: crate::ErrorKind::WrongProtocol
//! [`Malformed`]: crate::ErrorKind::Malformed
//! [`FrameTooLarge`]: crate::ErrorKind::FrameTooLarge
//! [`FrameTimeout`]: crate::ErrorKind::FrameTimeout
//! [`ProtocolAbuse`]: crate::ErrorKind::ProtocolAbuse
//! [`Version`]: crate::ErrorKind::Version
//! [`Refused`]: crate::ErrorKind::Refused
//! [`Intercepted`]: crate::ErrorKind::Intercepted
//! [`NameTaken`]: crate::ErrorKind::NameTaken
//! [`BadBody`]: crate::ErrorKind::BadBody
//! [`AddressInUse`]: crate::ErrorKind::AddressInUse
//! [`Io`]: crate::ErrorKind::Io
//!
//! New kinds may come with any minor version: match with a `_` arm.
//!
//! # Trying again
//!
//! A push that failed was not sent. A call that ended without a reply and says
//! [`maybe_executed`](crate::Error::maybe_executed) may have been executed: repeat it only if
//! doing it twice does no harm.
//!
//! An error status is a reply, so that question is for its code. `NO_ROUTE`, `UNSUPPORTED` and
//! `GOING_AWAY` come in place of a handler. `OVERLOADED` does so as a rule, but it also replaces
//! a reply that found no room. `DEADLINE_EXCEEDED` and `CANCELLED` come in place of a handler,
//! or from one whose own calls ended so. All others come from a handler that ran.
//!
//! ```
//! # use trunkline::{Client, Error, Reply};
//! /// Calls again as long as that is certain to do no harm.
//! fn call(client: &Client, attempts: u32) -> Result<Reply, Error> {
//!     for _ in 1..attempts {
//!         match client.call("/orders/add", "one coffee") {
//!             Err(error)
//!                 if error.is_retryable()
//!                     && !error.maybe_executed()
//!                     && error.status().is_none() => {}
//!             outcome => return outcome,
//!         }
//!     }
//!     client.call("/orders/add", "one coffee")
//! }
//! ```
//!
//! # In handlers
//!
//! A call handler fails with a [`Status`](crate::Status): a code of your own from 1000 upwards or
//! below zero, a text and perhaps a cause. `?` makes one of an [`Error`](crate::Error): a body
//! that does not decode becomes `BAD_BODY`, a status that a further call brought is passed on,
//! and what has no code of its own becomes `HANDLER_FAILED`.
//!
//! # Errors that no caller sees
//!
//! Failed handshakes, refused connections and sessions that did not end cleanly are told to
//! `on_error`, and [recorded](super::logging). `on_closed` gets them in the
//! [`CloseReport`](crate::CloseReport) of their session.
