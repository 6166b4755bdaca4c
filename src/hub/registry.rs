//! What the hub keeps under its lock.

use std::collections::HashMap;
use std::sync::Arc;

use super::sets::Sets;
use crate::address::Address;
use crate::error::{Error, ErrorKind};
use crate::message::SessionId;
use crate::session::Session;
use crate::stats::Stats;

/// The sessions, and the ways to find them. What a session knows of itself, its name and its
/// groups, is changed together with what stands here.
pub(super) struct Registry {
    sessions: HashMap<SessionId, Session>,
    pub(super) addresses: Sets<Address>,
    pub(super) names: HashMap<Arc<str>, Session>,
    pub(super) groups: Sets<Arc<str>>,
    /// Sessions that are out of all this, until their last steps are done.
    pub(super) leaving: Vec<Session>,
    /// The figures of sessions that are over, and the peaks.
    pub(super) past: Stats,
}

impl Registry {
    /// Without sessions; `past` has figures of zero.
    pub(super) fn new(past: Stats) -> Self {
        Registry {
            sessions: HashMap::new(),
            addresses: Sets::default(),
            names: HashMap::new(),
            groups: Sets::default(),
            leaving: Vec::new(),
            past,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.values()
    }

    pub(super) fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub(super) fn add(&mut self, session: Session) {
        self.addresses
            .insert(session.peer_address().clone(), &session);
        self.sessions.insert(session.id(), session);
        let open = self.sessions.len() as u64;
        self.past.sessions_peak = self.past.sessions_peak.max(open);
    }

    /// Takes the session out of everything; whether it was here.
    pub(super) fn remove(&mut self, session: &Session) -> bool {
        if self.sessions.remove(&session.id()).is_none() {
            return false;
        }
        self.addresses.remove(session.peer_address(), session);
        if let Some(name) = session.put_name(None) {
            self.names.remove(&name);
        }
        for group in session.leave_groups() {
            self.groups.remove(&group, session);
        }
        true
    }

    /// Whether the session may get a name or join a group: what is here is also taken out.
    pub(super) fn check(&self, session: &Session) -> Result<(), Error> {
        if session.is_closed() {
            return Err(Error::new(
                ErrorKind::Closed,
                "a session that closes gets no name and joins no group",
            ));
        }
        match self.is_own(session) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::InvalidInput,
                "the session is not one of this server",
            )),
        }
    }

    /// Whether it is here, and not only its number.
    pub(super) fn is_own(&self, session: &Session) -> bool {
        self.sessions.get(&session.id()) == Some(session)
    }
}
