//! What peers make this process hold, counted against a cap of their session and one of the
//! whole server or client.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Of what takes little nothing is counted, so that most sessions never touch an account.
pub(crate) const UNCOUNTED: usize = 16 << 10;
/// What is made up of many messages is counted in steps, and not for each of them.
pub(crate) const STEP: usize = 64 << 10;

/// The most that may be held, under the name of its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cap {
    name: &'static str,
    bytes: usize,
}

impl Cap {
    /// More than this machine can address is no cap.
    pub(crate) fn new(name: &'static str, bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Cap { name, bytes }
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.name, self.bytes)
    }
}

/// Bytes that are held under a cap, and under that of the account above.
#[derive(Debug)]
pub(crate) struct Account {
    cap: Cap,
    above: Option<Arc<Account>>,
    used: AtomicUsize,
}

impl Account {
    pub(crate) fn new(cap: Cap, above: Option<Arc<Account>>) -> Arc<Account> {
        Arc::new(Account {
            cap,
            above,
            used: AtomicUsize::new(0),
        })
    }

    /// Takes so many bytes, or names the cap that does not admit them; then none were taken.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Cap> {
        let within = |used: usize| {
            let used = used.checked_add(bytes)?;
            (used <= self.cap.bytes).then_some(used)
        };
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.used.fetch_update(success, failure, within).is_err() {
            return Err(self.cap);
        }
        match &self.above {
            Some(above) => above.take(bytes).inspect_err(|_| {
                self.used.fetch_sub(bytes, Ordering::Relaxed);
            }),
            None => Ok(()),
        }
    }

    /// Counts what is held already, whether or not the caps admit it.
    pub(crate) fn count(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        if let Some(above) = &self.above {
            above.count(bytes);
        }
    }

    /// Gives back what was taken or counted.
    pub(crate) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(above) = &self.above {
            above.give(bytes);
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Bytes of an account for one thing that grows and shrinks; given back with it.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Arc<Account>,
    bytes: usize,
}

impl Charge {
    /// Of nothing yet.
    pub(crate) fn new(account: Arc<Account>) -> Self {
        Charge { account, bytes: 0 }
    }

    /// Another one, of nothing yet, on the same account.
    pub(crate) fn another(&self) -> Charge {
        Charge::new(self.account.clone())
    }

    /// From now on it is so many bytes; if a cap does not admit that, it stays as it was.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), Cap> {
        if bytes > self.bytes {
            self.account.take(bytes - self.bytes)?;
        } else if bytes < self.bytes {
            self.account.give(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// From now on it is so many bytes, in steps, whether or not the caps admit them.
    pub(crate) fn follow(&mut self, bytes: usize) {
        let bytes = bytes.saturating_sub(UNCOUNTED).next_multiple_of(STEP);
        match bytes.checked_sub(self.bytes) {
            Some(0) => {}
            Some(more) => self.account.count(more),
            None => self.account.give(self.bytes - bytes),
        }
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(bytes: u64, above: Option<&Arc<Account>>) -> Arc<Account> {
        Account::new(Cap::new("limits.some_bytes", bytes), above.cloned())
    }

    #[test]
    fn what_one_cap_does_not_admit_is_taken_under_neither() {
        let whole = account(100, None);
        let (one, other) = (account(60, Some(&whole)), account(60, Some(&whole)));
        one.take(60).unwrap();
        assert_eq!(one.take(1), Err(one.cap));
        assert_eq!(other.take(41), Err(whole.cap));
        assert_eq!(other.take(usize::MAX), Err(other.cap));
        other.take(40).unwrap();
        assert_eq!((one.used(), other.used(), whole.used()), (60, 40, 100));
        one.give(60);
        assert_eq!((one.used(), whole.used()), (0, 40));
        other.take(20).unwrap();
    }

    #[test]
    fn what_is_held_already_is_counted_beyond_the_cap() {
        let whole = account(10, None);
        let one = account(10, Some(&whole));
        one.count(15);
        assert_eq!(one.take(1), Err(one.cap));
        assert_eq!(whole.take(1), Err(whole.cap));
        one.give(15);
        one.take(10).unwrap();
    }

    #[test]
    fn a_charge_follows_what_it_is_for_and_ends_with_it() {
        let account = account(10, None);
        let mut charge = Charge::new(account.clone());
        charge.set(8).unwrap();
        assert!(charge.set(11).is_err());
        assert_eq!(account.used(), 8);
        charge.set(3).unwrap();
        let mut other = charge.another();
        other.set(7).unwrap();
        assert_eq!(account.used(), 10);
        drop(charge);
        assert_eq!(account.used(), 7);
        drop(other);
        assert_eq!(account.used(), 0);
    }

    #[test]
    fn a_charge_for_many_messages_is_counted_in_steps() {
        let account = account(10, None);
        let mut charge = Charge::new(account.clone());
        for (bytes, counted) in [
            (UNCOUNTED, 0),
            (UNCOUNTED + 1, STEP),
            (UNCOUNTED + STEP, STEP),
            (UNCOUNTED + STEP + 1, 2 * STEP),
            (0, 0),
        ] {
            charge.follow(bytes);
            assert_eq!(account.used(), counted);
        }
        charge.follow(STEP);
        drop(charge);
        assert_eq!(account.used(), 0);
    }

    #[test]
    fn a_cap_beyond_the_machine_is_none() {
        let account = account(u64::MAX, None);
        account.take(usize::MAX).unwrap();
    }
}
