//! Who may come in: sessions are counted, in all and per address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::config::Limits;
use crate::status::Status;

/// The counts of one server.
pub(super) struct Admission {
    sessions: usize,
    per_address: usize,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
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
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Ticket, Status> {
        let mut counts = self.counts.lock();
        if counts.all >= self.sessions {
            return Err(Status::new(
                Status::OVERLOADED,
                format!("limits.sessions = {} are open", self.sessions),
            ));
        }
        let from_address = counts.by_address.entry(address).or_default();
        if *from_address >= self.per_address {
            return Err(Status::new(
                Status::OVERLOADED,
                format!(
                    "limits.sessions_per_address = {} are open from {address}",
                    self.per_address
                ),
            ));
        }
        *from_address += 1;
        counts.all += 1;
        Ok(Ticket {
            admission: self.clone(),
            address,
        })
    }
}

/// A session's place.
pub(super) struct Ticket {
    admission: Arc<Admission>,
    address: IpAddr,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut counts = self.admission.counts.lock();
        counts.all -= 1;
        if let Some(count) = counts.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.by_address.remove(&self.address);
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
        let [a, b] = ["127.0.0.1", "127.0.0.2"].map(|ip| ip.parse().unwrap());
        let first = admission.admit(a).unwrap();
        let _second = admission.admit(a).unwrap();
        let refusal = admission.admit(a).err().unwrap();
        assert!(refusal.text().contains("sessions_per_address = 2"));
        let _third = admission.admit(b).unwrap();
        assert!(
            admission
                .admit(b)
                .err()
                .unwrap()
                .text()
                .contains("limits.sessions = 3")
        );
        drop(first);
        admission.admit(a).unwrap();
    }
}
