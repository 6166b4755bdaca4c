//! Groups of sessions.

use std::sync::Arc;

use super::Hub;
use crate::error::Error;
use crate::session::Session;

/// Groups: they come into being with their first session and are gone with their last. A
/// session may be in any number of them, and leaves them when it ends, before the closed event.
impl Hub {
    /// Puts a session into a group; `false` if it is in it already.
    ///
    /// # Errors
    /// `Closed` if the session closes, `InvalidInput` if it is of another server.
    #[doc(alias = "room")]
    #[doc(alias = "topic")]
    pub fn join(&self, session: &Session, group: &str) -> Result<bool, Error> {
        let mut registry = self.shared.registry.write();
        registry.check(session)?;
        let group = registry.groups.key(group).unwrap_or_else(|| group.into());
        let is_new = session.join_group(&group);
        if is_new {
            registry.groups.insert(group, session);
        }
        Ok(is_new)
    }

    /// Takes a session out of a group; `false` if it was not in it.
    pub fn leave(&self, session: &Session, group: &str) -> bool {
        let mut registry = self.shared.registry.write();
        // Not of a group of another server.
        let was_in_it = registry.is_own(session) && session.leave_group(group);
        if was_in_it {
            registry.groups.remove(group, session);
        }
        was_in_it
    }

    /// The sessions of a group, in no order; none if there is no such group.
    pub fn group(&self, group: &str) -> Vec<Session> {
        self.shared.registry.read().groups.get(group)
    }

    /// The names of all groups, in no order.
    pub fn groups(&self) -> Vec<Arc<str>> {
        self.shared.registry.read().groups.keys()
    }
}
