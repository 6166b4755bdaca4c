//! The server's registry of sessions.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crossbeam::atomic::AtomicCell;
use parking_lot::RwLock;

use crate::codec::IntoBody;
use crate::error::{Error, ErrorKind};
use crate::message::{Kind, MessageRef, Route, SessionId};
use crate::protocol::Framing;
use crate::queue::scratch;
use crate::session::Session;
use crate::stats::{Counters, OtherCounters, Stats};

/// How a message to many went: each session is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Sessions that have it in their queue.
    pub queued: usize,
    /// Sessions whose queue was full, or whose peer does not admit it.
    pub full: usize,
    /// Sessions that were closed.
    pub closed: usize,
}

/// The sessions of a server: find, count, iterate, push to all.
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

struct Registry {
    sessions: HashMap<SessionId, Session>,
    /// The figures of sessions that are over, and the peaks.
    past: Stats,
}

impl Hub {
    pub(crate) fn new(framing: Framing) -> Self {
        let counters = Counters::default();
        Hub {
            shared: Arc::new(Shared {
                framing,
                registry: RwLock::new(Registry {
                    sessions: HashMap::new(),
                    past: counters.snapshot(Instant::now()),
                }),
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

    pub(crate) fn join(&self, session: Session, ticket: impl Send + Sync + 'static) -> Member {
        let mut registry = self.shared.registry.write();
        registry.sessions.insert(session.id(), session);
        let open = registry.sessions.len() as u64;
        registry.past.sessions_peak = registry.past.sessions_peak.max(open);
        drop(registry);
        Member {
            hub: self.clone(),
            _ticket: Box::new(ticket),
        }
    }

    /// How many sessions are open.
    #[doc(alias = "Count")]
    #[doc(alias = "CountSession")]
    pub fn len(&self) -> usize {
        self.shared.registry.read().sessions.len()
    }

    /// Whether no session is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The session with this number.
    ///
    /// # Errors
    /// `Closed` if there is none (any more).
    #[doc(alias = "GetSession")]
    pub fn session(&self, id: SessionId) -> Result<Session, Error> {
        let registry = self.shared.registry.read();
        let session = registry.sessions.get(&id);
        session
            .cloned()
            .ok_or_else(|| Error::new(ErrorKind::Closed, format!("there is no session {id}")))
    }

    /// All sessions that are open now, in no order.
    #[doc(alias = "Range")]
    #[doc(alias = "RangeSession")]
    #[doc(alias = "GetRemoteEndPoints")]
    pub fn sessions(&self) -> Vec<Session> {
        let registry = self.shared.registry.read();
        registry.sessions.values().cloned().collect()
    }

    /// Pushes to all sessions, encoded once. It never waits: a session whose queue is full does
    /// not get the message, and is counted.
    ///
    /// # Errors
    /// Those of encoding: `InvalidInput` for the route or body, `TooLarge`, `Unsupported` by the
    /// protocol. Then nobody got it.
    #[doc(alias = "pub")]
    #[doc(alias = "publish")]
    #[doc(alias = "publisher")]
    pub fn broadcast<'r>(
        &self,
        route: impl Into<Route<'r>>,
        body: impl IntoBody,
    ) -> Result<Sent, Error> {
        let (frame, body_bytes): (Arc<[u8]>, usize) = scratch::with(|buffer| {
            let codec = body.codec();
            let bytes = body.bytes(buffer)?;
            let message = MessageRef::new(Kind::Push, route.into(), 0, codec, bytes);
            let mut frame = Vec::new();
            self.shared.framing.encode(&message, &mut frame)?;
            Ok::<_, Error>((frame.into(), bytes.len()))
        })?;
        let mut sent = Sent::default();
        for session in self.sessions() {
            match session.connection.send_shared(&frame, body_bytes) {
                Ok(()) => sent.queued += 1,
                Err(error) if error.is_closed() => sent.closed += 1,
                Err(_) => sent.full += 1,
            }
        }
        Ok(sent)
    }

    /// The figures of all sessions together, those that are over included.
    pub fn stats(&self) -> Stats {
        let now = Instant::now();
        let mut stats = self.shared.counters.snapshot(now);
        // Over both, so that a session that leaves meanwhile is in one of them.
        let registry = self.shared.registry.read();
        stats.add(&registry.past);
        for session in registry.sessions.values() {
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
    /// Whatever the server counts sessions with; it goes with the session.
    _ticket: Box<dyn Send + Sync>,
}

impl Member {
    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    pub(crate) fn leave(&self, session: &Session) {
        let mut registry = self.hub.shared.registry.write();
        if registry.sessions.remove(&session.id()).is_some() {
            // Counted under the lock, so that no figure is missing or counted twice.
            registry.past.add(&session.stats());
        }
    }
}
