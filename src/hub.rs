//! The server's registry of sessions: found by number, address, name and group.
//!
//! Everything is changed under one lock, so that a session is in all of it or in nothing. The
//! lock is held neither while user code runs nor while anything is sent; a message to many
//! takes it once, for reading, to copy the handles. The rooms:
//!
//! - `registry`: what is under the lock; `sets`, sessions by something they have in common
//! - `finding`: by number and address, at random; `names`; `groups`
//! - `sending`: one message to many

mod finding;
mod groups;
mod names;
mod registry;
mod sending;
mod sets;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crossbeam::atomic::AtomicCell;
use parking_lot::RwLock;

use crate::error::{Error, ErrorKind};
use crate::message::SessionId;
use crate::protocol::Framing;
use crate::session::{Session, SessionSnapshot};
use crate::stats::{Counters, OtherCounters, Stats};
use crate::status::Status;

pub use names::Duplicate;
use registry::Registry;
pub use sending::Sent;

/// The sessions of a server: find, name, group, count, iterate, push to many, remove.
///
/// It is a cheap handle. No lock is held while user code runs or anything is sent.
#[doc(alias = "router")]
#[derive(Clone)]
pub struct Hub {
    shared: Arc<Shared>,
}

struct Shared {
    framing: Framing,
    registry: RwLock<Registry>,
    next: AtomicCell<u64>,
    /// What the server itself counts.
    counters: Counters,
}

impl Hub {
    pub(crate) fn new(framing: Framing) -> Self {
        let counters = Counters::default();
        Hub {
            shared: Arc::new(Shared {
                framing,
                registry: RwLock::new(Registry::new(counters.snapshot(Instant::now()))),
                next: AtomicCell::new(1),
                counters,
            }),
        }
    }

    /// What the server itself counts: connections that are no sessions yet.
    pub(crate) fn counters(&self) -> &OtherCounters {
        &self.shared.counters.others
    }

    pub(crate) fn next_id(&self) -> SessionId {
        SessionId(self.shared.next.fetch_add(1))
    }

    pub(crate) fn admit(&self, session: Session, ticket: impl Send + Sync + 'static) -> Member {
        self.shared.registry.write().add(session.clone());
        Member {
            hub: self.clone(),
            session,
            _ticket: Box::new(ticket),
        }
    }

    /// Sessions that are found no more, and whose last steps, the closed event for one, run.
    pub(crate) fn leaving(&self) -> Vec<Session> {
        self.shared.registry.read().leaving.clone()
    }

    /// How many sessions are open.
    #[doc(alias = "Count")]
    #[doc(alias = "CountSession")]
    pub fn len(&self) -> usize {
        self.shared.registry.read().len()
    }

    /// Whether no session is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes a session and tells its peer why; see
    /// [`Session::close_with`](Session::close_with). It returns at once.
    ///
    /// # Errors
    /// `Closed` if there is no such session (any more), or if it closes already: then the
    /// reason is not told.
    #[doc(alias = "kick")]
    pub fn remove(&self, id: SessionId, reason: Status) -> Result<(), Error> {
        match self.session(id)?.begin_close_with(&reason) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Closed,
                format!("session {id} closes already"),
            )),
        }
    }

    /// How all sessions are at this moment, ordered by their numbers.
    pub fn snapshot(&self) -> Vec<SessionSnapshot> {
        let sessions = self.sessions().into_iter();
        let mut snapshots: Vec<_> = sessions.map(|session| session.snapshot()).collect();
        snapshots.sort_unstable_by_key(|snapshot| snapshot.id);
        snapshots
    }

    /// The figures of all sessions together, those that are over included.
    pub fn stats(&self) -> Stats {
        let now = Instant::now();
        let mut stats = self.shared.counters.snapshot(now);
        // Over both, so that a session that leaves meanwhile is in one of them.
        let registry = self.shared.registry.read();
        stats.add(&registry.past);
        for session in registry.sessions().chain(&registry.leaving) {
            stats.add(&session.connection.stats(now));
        }
        stats
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("sessions", &self.len())
            .finish_non_exhaustive()
    }
}

/// A session's place in the hub, held by its reader thread.
pub(crate) struct Member {
    hub: Hub,
    session: Session,
    /// Whatever the server counts sessions with; it goes with the session.
    _ticket: Box<dyn Send + Sync>,
}

impl Member {
    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// From now on the session is not found, and its name is free.
    pub(crate) fn leave(&self) {
        let mut registry = self.hub.shared.registry.write();
        if registry.remove(&self.session) {
            registry.leaving.push(self.session.clone());
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut registry = self.hub.shared.registry.write();
        registry.leaving.retain(|session| *session != self.session);
        // Counted under the lock, so that no figure is missing or counted twice.
        registry.past.add(&self.session.stats());
    }
}
