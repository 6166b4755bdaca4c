//! What a server's hub knows a session by: its name and its groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;

use super::Session;

/// Written by the hub alone, under its own lock, so that both always say the same.
#[derive(Default)]
pub(super) struct Membership(RwLock<Known>);

#[derive(Default)]
struct Known {
    name: Option<Arc<str>>,
    groups: BTreeSet<Arc<str>>,
}

/// The session's place in a server's [`Hub`](crate::Hub). A client's session has none, and one
/// that is over has it no more.
impl Session {
    /// The name that the application has given it; see [`Hub::set_name`](crate::Hub::set_name).
    pub fn name(&self) -> Option<Arc<str>> {
        self.attached.membership.0.read().name.clone()
    }

    /// The groups it is in, in alphabetical order; see [`Hub::join`](crate::Hub::join).
    pub fn groups(&self) -> Vec<Arc<str>> {
        let known = self.attached.membership.0.read();
        known.groups.iter().cloned().collect()
    }

    /// Gives or takes the name; the answer is the one before.
    pub(crate) fn put_name(&self, name: Option<Arc<str>>) -> Option<Arc<str>> {
        let mut known = self.attached.membership.0.write();
        std::mem::replace(&mut known.name, name)
    }

    pub(crate) fn join_group(&self, group: &Arc<str>) -> bool {
        let mut known = self.attached.membership.0.write();
        known.groups.insert(group.clone())
    }

    pub(crate) fn leave_group(&self, group: &str) -> bool {
        self.attached.membership.0.write().groups.remove(group)
    }

    /// Leaves all groups, and tells which they were.
    pub(crate) fn leave_groups(&self) -> BTreeSet<Arc<str>> {
        let mut known = self.attached.membership.0.write();
        std::mem::take(&mut known.groups)
    }
}
