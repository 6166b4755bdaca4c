//! The synchronisation primitives of this module: the real ones, or loom's in its models.

#[cfg(loom)]
pub(super) use self::modelled::*;
#[cfg(not(loom))]
pub(super) use self::real::*;

#[cfg(not(loom))]
mod real {
    use std::time::Instant;

    pub(in crate::queue) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(in crate::queue) use std::sync::atomic::{AtomicUsize, Ordering, fence};

    /// A 64-bit word, also where the machine has no 64-bit atomics.
    pub(in crate::queue) struct Word(crossbeam::atomic::AtomicCell<u64>);

    impl Word {
        pub(in crate::queue) fn new(value: u64) -> Self {
            Word(crossbeam::atomic::AtomicCell::new(value))
        }

        pub(in crate::queue) fn load(&self) -> u64 {
            self.0.load()
        }

        pub(in crate::queue) fn compare_exchange(&self, seen: u64, new: u64) -> Result<u64, u64> {
            self.0.compare_exchange(seen, new)
        }

        pub(in crate::queue) fn fetch_sub(&self, value: u64) -> u64 {
            self.0.fetch_sub(value)
        }

        pub(in crate::queue) fn fetch_or(&self, value: u64) -> u64 {
            self.0.fetch_or(value)
        }
    }

    pub(in crate::queue) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock()
    }

    /// How often a lock is tried: whoever holds it is about to give it back, unless it is
    /// preempted.
    const TRIES: usize = 20;

    /// Tries a lock for a moment, without waiting for its holder.
    pub(in crate::queue) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        for _ in 0..TRIES {
            if let Some(guard) = mutex.try_lock() {
                return Some(guard);
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Waits for a notification; `false` if the deadline passed.
    pub(in crate::queue) fn wait<'a, T>(
        condvar: &Condvar,
        mut guard: MutexGuard<'a, T>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, T>, bool) {
        let notified = match deadline {
            Some(deadline) => !condvar.wait_until(&mut guard, deadline).timed_out(),
            None => {
                condvar.wait(&mut guard);
                true
            }
        };
        (guard, notified)
    }
}

/// Time limits never pass in a model, so a waiter that is never woken shows as a deadlock.
#[cfg(loom)]
mod modelled {
    use std::time::Instant;

    pub(in crate::queue) use loom::sync::atomic::{AtomicUsize, Ordering, fence};
    pub(in crate::queue) use loom::sync::{Condvar, Mutex, MutexGuard};

    /// With the orderings of the real one.
    pub(in crate::queue) struct Word(loom::sync::atomic::AtomicU64);

    impl Word {
        pub(in crate::queue) fn new(value: u64) -> Self {
            Word(loom::sync::atomic::AtomicU64::new(value))
        }

        pub(in crate::queue) fn load(&self) -> u64 {
            self.0.load(Ordering::Acquire)
        }

        pub(in crate::queue) fn compare_exchange(&self, seen: u64, new: u64) -> Result<u64, u64> {
            self.0
                .compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire)
        }

        pub(in crate::queue) fn fetch_sub(&self, value: u64) -> u64 {
            self.0.fetch_sub(value, Ordering::AcqRel)
        }

        pub(in crate::queue) fn fetch_or(&self, value: u64) -> u64 {
            self.0.fetch_or(value, Ordering::AcqRel)
        }
    }

    pub(in crate::queue) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }

    pub(in crate::queue) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        mutex.try_lock().ok()
    }

    pub(in crate::queue) fn wait<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        _: Option<Instant>,
    ) -> (MutexGuard<'a, T>, bool) {
        (condvar.wait(guard).unwrap(), true)
    }
}
