//! The part of a queue's room that is leased from the memory account, in steps.

use std::sync::Arc;

use super::sync::{AtomicUsize, Mutex, Ordering, lock};
use crate::memory::{Account, Cap, STEP};

pub(super) struct Lease {
    account: Arc<Account>,
    /// This much room needs no lease.
    free: usize,
    /// What may be in use: the free room and the leased one. Written under the lock only.
    room: AtomicUsize,
    changing: Mutex<()>,
}

impl Lease {
    pub(super) fn new(account: Arc<Account>, free: usize) -> Self {
        Lease {
            account,
            free,
            room: AtomicUsize::new(free),
            changing: Mutex::new(()),
        }
    }

    pub(super) fn covers(&self, used: usize) -> bool {
        used <= self.room.load(Ordering::Relaxed)
    }

    pub(super) fn is_held(&self) -> bool {
        self.room.load(Ordering::Relaxed) > self.free
    }

    /// Leases room for so many bytes in use, a step at a time while there is as much.
    pub(super) fn extend(&self, used: usize) -> Result<(), Cap> {
        let _changing = lock(&self.changing);
        let room = self.room.load(Ordering::Relaxed);
        let Some(missing) = used.checked_sub(room).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let step = missing.next_multiple_of(STEP);
        let taken = match self.account.take(step) {
            Ok(()) => step,
            Err(_) => self.account.take(missing).map(|()| missing)?,
        };
        self.room.store(room + taken, Ordering::Relaxed);
        Ok(())
    }

    /// So many bytes are in use already: they are counted even if there is no room for them.
    pub(super) fn follow(&self, used: usize) {
        let _changing = lock(&self.changing);
        let room = self.room.load(Ordering::Relaxed);
        if used > room {
            self.account.count(used - room);
            self.room.store(used, Ordering::Relaxed);
        }
    }

    /// Gives everything back, unless room turns out to be in use. `is_unused` must be one step
    /// in the order of all reservations: those before it are seen, those after it see that the
    /// lease is gone.
    pub(super) fn end(&self, is_unused: impl FnOnce() -> bool) {
        let _changing = lock(&self.changing);
        let room = self.room.load(Ordering::Relaxed);
        self.room.store(self.free, Ordering::Relaxed);
        match is_unused() {
            true => self.account.give(room - self.free),
            false => self.room.store(room, Ordering::Relaxed),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end(|| true);
    }
}
