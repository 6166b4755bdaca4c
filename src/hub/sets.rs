//! Sessions by something that several of them may have in common.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use crate::message::SessionId;
use crate::session::Session;

/// A set of sessions for each key; one that is empty is not there.
pub(super) struct Sets<K>(HashMap<K, HashMap<SessionId, Session>>);

impl<K> Default for Sets<K> {
    fn default() -> Self {
        Sets(HashMap::new())
    }
}

impl<K: Hash + Eq + Clone> Sets<K> {
    /// The key as it is here already, so that equal ones share their memory.
    pub(super) fn key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<K>
    where
        K: Borrow<Q>,
    {
        self.0.get_key_value(key).map(|(key, _)| key.clone())
    }

    pub(super) fn keys(&self) -> Vec<K> {
        self.0.keys().cloned().collect()
    }

    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Vec<Session>
    where
        K: Borrow<Q>,
    {
        let set = self.0.get(key);
        set.map(|set| set.values().cloned().collect())
            .unwrap_or_default()
    }

    pub(super) fn insert(&mut self, key: K, session: &Session) {
        let set = self.0.entry(key).or_default();
        set.insert(session.id(), session.clone());
    }

    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q, session: &Session)
    where
        K: Borrow<Q>,
    {
        if let Some(set) = self.0.get_mut(key) {
            set.remove(&session.id());
            if set.is_empty() {
                self.0.remove(key);
            }
        }
    }
}
