//! Names that the application gives to sessions.

use std::sync::Arc;

use super::Hub;
use crate::error::{Error, ErrorKind};
use crate::session::Session;
use crate::status::Status;

/// What becomes of a name that another session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Duplicate {
    /// The other keeps it, and the attempt is an error. Only a session that closes already
    /// loses it, so that a peer that comes back gets its name.
    Refuse,
    /// The other loses it and is closed: its peer is told [`Status::NAME_TAKEN`].
    Replace,
}

/// Names: each belongs to one session, and a session has at most one. It is free again when the
/// session ends, before the closed event.
impl Hub {
    /// Gives a session a name; one that it had before is free from then on. The answer is the
    /// session that has lost the name to it.
    ///
    /// # Errors
    /// `NameTaken` if another session has the name, and `Duplicate::Refuse` was asked for;
    /// `Closed` if the session closes; `InvalidInput` if it is of another server. Then nothing
    /// has changed.
    #[doc(alias = "set_id")]
    #[doc(alias = "SetId")]
    pub fn set_name(
        &self,
        session: &Session,
        name: &str,
        duplicate: Duplicate,
    ) -> Result<Option<Session>, Error> {
        let mut registry = self.shared.registry.write();
        registry.check(session)?;
        let holder = registry.names.get(name);
        let other = holder.filter(|holder| *holder != session).cloned();
        if let Some(other) = &other {
            if duplicate == Duplicate::Refuse && !other.is_closed() {
                return Err(Error::new(
                    ErrorKind::NameTaken,
                    format!("another session has the name {name:?}"),
                ));
            }
            other.put_name(None);
        }
        let name: Arc<str> = name.into();
        if let Some(old) = session.put_name(Some(name.clone())) {
            registry.names.remove(&old);
        }
        registry.names.insert(name.clone(), session.clone());
        drop(registry);
        if let Some(other) = &other {
            let text = format!("another session has taken the name {name:?}");
            other.close_with(Status::new(Status::NAME_TAKEN, text));
        }
        Ok(other)
    }

    /// Takes a session's name away and gives it back, if it had one.
    pub fn remove_name(&self, session: &Session) -> Option<Arc<str>> {
        let mut registry = self.shared.registry.write();
        // The name of another server's session stays.
        if !registry.is_own(session) {
            return None;
        }
        let name = session.put_name(None)?;
        registry.names.remove(&name);
        Some(name)
    }

    /// The session with this name.
    ///
    /// # Errors
    /// `Closed` if there is none (any more).
    #[doc(alias = "id")]
    pub fn named(&self, name: &str) -> Result<Session, Error> {
        let registry = self.shared.registry.read();
        registry.names.get(name).cloned().ok_or_else(|| {
            Error::new(
                ErrorKind::Closed,
                format!("there is no session with the name {name:?}"),
            )
        })
    }
}
