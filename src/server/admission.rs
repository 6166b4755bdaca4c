//! Who may come in: sessions are counted, in all and per IP address, or per user of a Unix socket.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::address::Address;
use crate::config::Limits;
use crate::status::Status;

/// What the sessions of one peer have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Host(IpAddr),
    User(u32),
    /// A Unix peer of which the system tells nothing.
    Unknown,
}

impl From<&Address> for Origin {
    fn from(address: &Address) -> Self {
        let user = address.process().map(|process| Origin::User(process.uid));
        let host = address.ip().map(Origin::Host);
        host.or(user).unwrap_or(Origin::Unknown)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Host(address) => address.fmt(f),
            Origin::User(uid) => write!(f, "user {uid}"),
            Origin::Unknown => f.write_str("unknown users"),
        }
    }
}

/// The counts of one server.
pub(super) struct Admission {
    sessions: usize,
    per_address: usize,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    all: usize,
    by_origin: HashMap<Origin, usize>,
}

impl Admission {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Admission {
            sessions: limits.sessions as usize,
            per_address: limits.sessions_per_address as usize,
            counts: Mutex::default(),
        })
    }

    /// A place for one session from this address; dropping it frees the place.
    pub(super) fn admit(self: &Arc<Self>, address: &Address) -> Result<Ticket, Status> {
        let origin = Origin::from(address);
        let mut counts = self.counts.lock();
        if counts.all >= self.sessions {
            return Err(Status::new(
                Status::OVERLOADED,
                format!("limits.sessions = {} are open", self.sessions),
            ));
        }
        let from_origin = counts.by_origin.entry(origin).or_default();
        if *from_origin >= self.per_address {
            return Err(Status::new(
                Status::OVERLOADED,
                format!(
                    "limits.sessions_per_address = {} are open from {origin}",
                    self.per_address
                ),
            ));
        }
        *from_origin += 1;
        counts.all += 1;
        Ok(Ticket {
            admission: self.clone(),
            origin,
        })
    }
}

/// A session's place.
pub(super) struct Ticket {
    admission: Arc<Admission>,
    origin: Origin,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut counts = self.admission.counts.lock();
        counts.all -= 1;
        if let Some(count) = counts.by_origin.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                counts.by_origin.remove(&self.origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_all_and_per_address_and_come_back() {
        let mut limits = Limits::server();
        limits.sessions = 3;
        limits.sessions_per_address = 2;
        let admission = Admission::new(&limits);
        let [a, b] = ["127.0.0.1:1", "127.0.0.2:1"].map(|ip| Address::Tcp(ip.parse().unwrap()));
        let first = admission.admit(&a).unwrap();
        let _second = admission.admit(&a).unwrap();
        let refusal = admission.admit(&a).err().unwrap();
        assert!(refusal.text().contains("sessions_per_address = 2"));
        let _third = admission.admit(&b).unwrap();
        assert!(
            admission
                .admit(&b)
                .err()
                .unwrap()
                .text()
                .contains("limits.sessions = 3")
        );
        drop(first);
        admission.admit(&a).unwrap();
    }
}
