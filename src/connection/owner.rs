//! What the connections of one server or client have in common.

use std::sync::Arc;

use crate::config::Limits;
use crate::memory::{Account, Cap};
use crate::records::Records;

/// What the connections of one server or client have in common.
pub(crate) struct Owner {
    /// What all peers together make this side hold.
    memory: Arc<Account>,
    pub(super) records: Arc<Records>,
}

impl Owner {
    pub(crate) fn new(limits: &Limits, records: Arc<Records>) -> Arc<Owner> {
        let cap = Cap::new("limits.total_bytes", limits.total_bytes);
        Arc::new(Owner {
            memory: Account::new(cap, None),
            records,
        })
    }

    /// The account of one more session.
    pub(super) fn session_account(&self, limits: &Limits) -> Arc<Account> {
        let cap = Cap::new("limits.session_bytes", limits.session_bytes);
        Account::new(cap, Some(self.memory.clone()))
    }
}
