//! Sessions by number and address, all of them, and any of them.

use rand::TryRngCore;
use rand::rngs::OsRng;

use super::Hub;
use crate::address::Address;
use crate::error::{Error, ErrorKind};
use crate::message::SessionId;
use crate::session::Session;

impl Hub {
    /// The session with this number.
    ///
    /// # Errors
    /// `Closed` if there is none (any more).
    #[doc(alias = "GetSession")]
    pub fn session(&self, id: SessionId) -> Result<Session, Error> {
        let registry = self.shared.registry.read();
        registry
            .session(id)
            .cloned()
            .ok_or_else(|| Error::new(ErrorKind::Closed, format!("there is no session {id}")))
    }

    /// All sessions that are open now, in no order.
    #[doc(alias = "Range")]
    #[doc(alias = "RangeSession")]
    #[doc(alias = "GetRemoteEndPoints")]
    pub fn sessions(&self) -> Vec<Session> {
        self.shared.registry.read().sessions().cloned().collect()
    }

    /// The session whose [peer address](Session::peer_address) this is.
    ///
    /// # Errors
    /// `Closed` if there is none (any more); `InvalidInput` if there are several, which no
    /// guess is made about: see [`sessions_at`](Hub::sessions_at).
    pub fn session_at(&self, address: &Address) -> Result<Session, Error> {
        let mut found = self.sessions_at(address);
        match (found.pop(), found.len()) {
            (Some(session), 0) => Ok(session),
            (None, _) => Err(Error::new(
                ErrorKind::Closed,
                format!("there is no session with {address}"),
            )),
            (Some(_), more) => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{} sessions have the address {address}", more + 1),
            )),
        }
    }

    /// The sessions with this [peer address](Session::peer_address), in no order. All sessions
    /// of a process over Unix sockets have the same, as a rule; a TCP address is shared only by
    /// sessions with different addresses of the server.
    pub fn sessions_at(&self, address: &Address) -> Vec<Session> {
        self.shared.registry.read().addresses.get(address)
    }

    /// Any of the sessions, each as likely as the others; `None` if there is none. It takes
    /// time with the number of sessions.
    pub fn random(&self) -> Option<Session> {
        // After the boot the system always has random numbers; without them any session is one.
        let random = OsRng.try_next_u64().unwrap_or_default();
        let registry = self.shared.registry.read();
        // For any number of sessions that fits into memory the remainder is as good as uniform.
        let index = random.checked_rem(registry.len() as u64)?;
        registry.sessions().nth(index as usize).cloned()
    }
}
