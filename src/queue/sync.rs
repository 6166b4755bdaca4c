//! The synchronisation primitives of this module: the real ones, or loom's in its models.

#[cfg(loom)]
pub(super) use self::modelled::*;
#[cfg(not(loom))]
pub(super) use self::real::*;

#[cfg(not(loom))]
mod real {
    use std::time::Instant;

    use std::thread;
    use std::time::Duration;

    pub(in super::super) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(in super::super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

    /// How often a sender tries the gate again before it puts its frame aside.
    pub(in super::super) const TRIES: usize = 8;

    /// The longer it has been tried in vain, the longer the pause: a few instructions, then one's
    /// turn on the core, which the one inside may need, then, where it has no such luck, some time.
    pub(in super::super) fn pause(turn: usize) {
        match turn {
            0..5 => (0..1 << turn).for_each(|_| std::hint::spin_loop()),
            5..64 => thread::yield_now(),
            _ => thread::sleep(Duration::from_micros(50)),
        }
    }

    /// Loom's way to write [`std::cell::UnsafeCell`].
    pub(in super::super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(in super::super) fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        pub(in super::super) fn get_mut(&self) -> MutPtr<T> {
            MutPtr(self.0.get())
        }
    }

    pub(in super::super) struct MutPtr<T>(*mut T);

    impl<T> MutPtr<T> {
        /// # Safety
        /// While the reference lives there is no other to the same value, and the cell lives.
        #[allow(unsafe_code, clippy::mut_from_ref)]
        pub(in super::super) unsafe fn deref(&self) -> &mut T {
            // SAFETY: it points into a cell, and the caller promises the rest.
            unsafe { &mut *self.0 }
        }
    }

    /// A 64-bit word, also where the machine has no 64-bit atomics.
    pub(in super::super) struct Word(crossbeam::atomic::AtomicCell<u64>);

    impl Word {
        pub(in super::super) fn new(value: u64) -> Self {
            Word(crossbeam::atomic::AtomicCell::new(value))
        }

        pub(in super::super) fn load(&self) -> u64 {
            self.0.load()
        }

        pub(in super::super) fn compare_exchange(&self, seen: u64, new: u64) -> Result<u64, u64> {
            self.0.compare_exchange(seen, new)
        }

        pub(in super::super) fn fetch_sub(&self, value: u64) -> u64 {
            self.0.fetch_sub(value)
        }

        pub(in super::super) fn fetch_or(&self, value: u64) -> u64 {
            self.0.fetch_or(value)
        }
    }

    pub(in super::super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock()
    }

    /// Waits for a notification; `false` if the deadline passed.
    pub(in super::super) fn wait<'a, T>(
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

    pub(in super::super) use loom::cell::{MutPtr, UnsafeCell};
    pub(in super::super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
    pub(in super::super) use loom::sync::{Condvar, Mutex, MutexGuard};

    /// Once more is as good as often.
    pub(in super::super) const TRIES: usize = 0;

    pub(in super::super) fn pause(_: usize) {
        loom::thread::yield_now();
    }

    /// With the orderings of the real one.
    pub(in super::super) struct Word(loom::sync::atomic::AtomicU64);

    impl Word {
        pub(in super::super) fn new(value: u64) -> Self {
            Word(loom::sync::atomic::AtomicU64::new(value))
        }

        pub(in super::super) fn load(&self) -> u64 {
            self.0.load(Ordering::Acquire)
        }

        pub(in super::super) fn compare_exchange(&self, seen: u64, new: u64) -> Result<u64, u64> {
            self.0
                .compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire)
        }

        pub(in super::super) fn fetch_sub(&self, value: u64) -> u64 {
            self.0.fetch_sub(value, Ordering::AcqRel)
        }

        pub(in super::super) fn fetch_or(&self, value: u64) -> u64 {
            self.0.fetch_or(value, Ordering::AcqRel)
        }
    }

    pub(in super::super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }

    pub(in super::super) fn wait<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        _: Option<Instant>,
    ) -> (MutexGuard<'a, T>, bool) {
        (condvar.wait(guard).unwrap(), true)
    }
}
