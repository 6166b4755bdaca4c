//! What is known about a session when it is over.

use std::fmt;

use crate::error::Error;
use crate::message::SessionId;
use crate::stats::Count;
use crate::status::Status;

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both sides said goodbye; or, in a protocol without goodbye, the stream ended between
    /// two messages.
    Clean,
    /// The stream ended between two messages, without a goodbye.
    Ended,
    /// The stream ended inside a message.
    Truncated,
    /// The connection was reset, or writing failed.
    Reset,
    /// This side cut it off: by abort, a time limit, a limit or the policy for slow peers. The
    /// error says which.
    Cut,
}

/// What is known when a session is over. "Written" means: handed to the kernel as a whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CloseReport {
    /// The session.
    pub session: SessionId,
    /// Why it ended.
    pub reason: CloseReason,
    /// What went wrong, unless the reason is `Clean`.
    pub error: Option<Error>,
    /// What the peer gave as its reason with its goodbye. Its texts, of at most 512 characters
    /// each, are the peer's and not to be trusted.
    pub farewell: Option<Status>,
    /// What this side gave as its reason: to [`Session::close_with`](crate::Session::close_with)
    /// or [`Hub::remove`](crate::Hub::remove), or because another session took its name.
    pub dismissal: Option<Status>,
    /// Accepted here and never handed to the kernel: certainly lost.
    pub not_written: Count,
    /// Pushes that were dropped and never accepted, as the peer reads too slowly
    /// ([`SlowPeer::DropNewest`](crate::SlowPeer::DropNewest)).
    pub dropped: Count,
    /// Accepted here and never handed to the kernel, but [held](crate::ClientBuilder::hold) by
    /// the client for its next session.
    pub held: Count,
    /// Written, and the peer has not said that it came: perhaps lost.
    pub unconfirmed: Count,
    /// Received by the peer.
    pub confirmed: Count,
    /// Received here.
    pub received: Count,
}

impl fmt::Display for CloseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "session {} closed ({:?}): received {}, confirmed {}",
            self.session, self.reason, self.received, self.confirmed
        )?;
        if self.unconfirmed.messages > 0 {
            write!(f, ", unconfirmed {}", self.unconfirmed)?;
        }
        if self.not_written.messages > 0 {
            write!(f, ", not written {}", self.not_written)?;
        }
        if self.dropped.messages > 0 {
            write!(f, ", dropped {}", self.dropped)?;
        }
        if self.held.messages > 0 {
            write!(f, ", held {}", self.held)?;
        }
        if let Some(dismissal) = &self.dismissal {
            write!(f, "; closed here with {dismissal}")?;
        }
        if let Some(farewell) = &self.farewell {
            write!(f, "; the peer closed it with {farewell}")?;
        }
        match &self.error {
            Some(error) => write!(f, "; {error:#}"),
            None => Ok(()),
        }
    }
}
