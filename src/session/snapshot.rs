//! How a session is at one moment.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Session;
use crate::address::Address;
use crate::message::SessionId;

/// How a session is at one moment; it prints on one line.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionSnapshot {
    /// The session.
    pub id: SessionId,
    /// Its [name](Session::name).
    pub name: Option<Arc<str>>,
    /// The peer's address.
    pub peer: Address,
    /// Since when the session has been there.
    pub age: Duration,
    /// How long nothing has come from the peer; zero while what came is worked on.
    pub last_heard: Duration,
    /// Bytes that wait in the send queue.
    pub queued_bytes: usize,
    /// How full the send queue is, by bytes or by messages, whichever is more: 1 is full.
    /// Replies may go beyond.
    pub queue_fill: f64,
    /// Calls of this side whose reply has not come.
    pub pending_calls: usize,
    /// Calls of the peer that are not answered.
    pub incoming_calls: usize,
    /// The [groups](Session::groups) it is in.
    pub groups: Vec<Arc<str>>,
}

impl Session {
    /// How it is at this moment. The figures are read one after the other while the session
    /// goes on; for totals see [`stats`](Session::stats).
    pub fn snapshot(&self) -> SessionSnapshot {
        let observed = self.connection.observe(Instant::now());
        SessionSnapshot {
            id: self.id(),
            name: self.name(),
            peer: self.peer_address().clone(),
            age: observed.age,
            last_heard: observed.last_heard,
            queued_bytes: observed.queued_bytes,
            queue_fill: observed.queue_fill,
            pending_calls: observed.pending_calls,
            incoming_calls: observed.incoming_calls,
            groups: self.groups(),
        }
    }
}

impl fmt::Display for SessionSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}", self.id)?;
        // Names may come from peers: escaped, they keep to this line.
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(
            f,
            " with {}: open {:.1?}, heard {:.1?} ago, queue {:.0}% ({} bytes), calls {} out {} in",
            self.peer,
            self.age,
            self.last_heard,
            self.queue_fill * 100.0,
            self.queued_bytes,
            self.pending_calls,
            self.incoming_calls
        )?;
        if !self.groups.is_empty() {
            write!(f, ", groups {:?}", self.groups)?;
        }
        Ok(())
    }
}
