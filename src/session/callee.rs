//! Who messages go to: a session, or a client, whose session changes.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::Guard;

use super::{Session, with_bytes};
use crate::codec::IntoBody;
use crate::config::Config;
use crate::connection::{Company, Wait};
use crate::error::Error;
use crate::message::{Kind, MessageRef, MetadataRef, Route};

/// Takes messages for a peer. Both kinds offer the same methods for it; see
/// [`calling_methods`](super::calling::calling_methods).
pub(crate) trait Callee: fmt::Debug + Send + Sync {
    fn config(&self) -> &Config;

    /// Sends a push; on error nothing was sent.
    fn send(&self, message: &MessageRef<'_>, wait: Wait) -> Result<(), Error>;

    /// The session to use now; one that is to come may be waited for until the deadline.
    fn current(&self, deadline: Option<Instant>) -> Result<Current<'_>, Error>;

    /// The error of a call that the session has refused.
    fn refused(&self, error: Error) -> Error;
}

/// The session that a client has, or had last.
pub(crate) struct Standing {
    pub(crate) session: Session,
    /// What those get who would use it while there is none to use.
    pub(crate) down: Option<Error>,
}

/// A session to use now.
pub(crate) enum Current<'a> {
    Own(&'a Session),
    Shared(Guard<Arc<Standing>>),
}

impl Deref for Current<'_> {
    type Target = Session;

    #[inline]
    fn deref(&self) -> &Session {
        match self {
            Current::Own(session) => session,
            Current::Shared(standing) => &standing.session,
        }
    }
}

impl Callee for Session {
    #[inline]
    fn config(&self) -> &Config {
        &self.connection.config
    }

    #[inline]
    fn send(&self, message: &MessageRef<'_>, wait: Wait) -> Result<(), Error> {
        self.connection.send(message, wait, Company::Alone)
    }

    #[inline]
    fn current(&self, _: Option<Instant>) -> Result<Current<'_>, Error> {
        Ok(Current::Own(self))
    }

    fn refused(&self, error: Error) -> Error {
        error
    }
}

/// Encodes a push and sends it.
#[inline]
pub(crate) fn push<C: Callee + ?Sized>(
    callee: &C,
    route: Route<'_>,
    metadata: MetadataRef<'_>,
    body: &impl IntoBody,
    wait: Wait,
) -> Result<(), Error> {
    with_bytes(body, |codec, bytes| {
        let mut message = MessageRef::new(Kind::Push, route, 0, codec, bytes);
        message.metadata = metadata;
        callee.send(&message, wait)
    })
}
