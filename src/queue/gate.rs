//! The lock of the open batch: one word, and nobody sleeps in the system for it.
//!
//! What is inside is touched for some tens of nanoseconds at a time, so a sleeping lock pays for
//! what it never needs: parking_lot's asks at each unlock whether somebody sleeps. Giving this one
//! back is a plain store, which is worth 18 % of all that a message of 4 bytes costs.
//!
//! A sender only tries it, for a moment; whoever takes from the queue waits for it, at most for
//! one sender to encode one frame, or to be scheduled again in the middle of that.
//!
//! # Memory ordering
//!
//! `locked` is taken with acquire and given back with release, so all that happens inside is one
//! sequence, and each who enters sees what those before did, inside and before they entered. From
//! that follows what senders and writer rely on without a fence of their own. A sender appends
//! inside, leaves, and reads whether the writer is awake (or tries for its role); the writer
//! notes that it sleeps (or gives the role back), then enters to look for frames. If the sender
//! was inside first, the writer sees its frame. If the writer was, the sender sees that it sleeps.
//! Frames put aside do not pass here: their senders need a fence, see [`Bell`](super::Bell).

use std::ops::{Deref, DerefMut};

use super::sync::{AtomicBool, MutPtr, Ordering, TRIES, UnsafeCell, pause};

/// A value and its lock.
pub(super) struct Gate<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `Inside` alone, and there is at most one at a time (see
// `try_once`), so sharing the gate lends the value from thread to thread like a `Mutex` does.
#[allow(unsafe_code)]
unsafe impl<T: Send> Sync for Gate<T> {}

/// The value, locked until this is dropped.
pub(super) struct Inside<'a, T> {
    // Dropped in this order: the value is let go of, then the lock.
    value: MutPtr<T>,
    _lock: Lock<'a>,
}

struct Lock<'a>(&'a AtomicBool);

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T> Gate<T> {
    pub(super) fn new(value: T) -> Self {
        Gate {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    fn try_once(&self) -> Option<Inside<'_, T>> {
        // A look first: it leaves the word in the cache of whoever is inside. Not in the models,
        // where one may see what is past as often as one likes.
        if !cfg!(loom) && self.locked.load(Ordering::Relaxed) {
            return None;
        }
        let (taken, seen) = (Ordering::Acquire, Ordering::Relaxed);
        self.locked
            .compare_exchange(false, true, taken, seen)
            .ok()?;
        Some(Inside {
            _lock: Lock(&self.locked),
            value: self.value.get_mut(),
        })
    }

    /// Enters, unless somebody is inside and stays there for a while.
    #[inline]
    pub(super) fn try_enter(&self) -> Option<Inside<'_, T>> {
        self.try_once().or_else(|| self.try_again())
    }

    #[cold]
    fn try_again(&self) -> Option<Inside<'_, T>> {
        (0..TRIES).find_map(|turn| {
            pause(turn);
            self.try_once()
        })
    }

    /// Waits until it can enter.
    #[inline]
    pub(super) fn enter(&self) -> Inside<'_, T> {
        let mut turn = 0;
        loop {
            if let Some(inside) = self.try_once() {
                return inside;
            }
            pause(turn);
            turn += 1;
        }
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `_lock` was taken by the swap that found the gate unlocked, and is given back
        // only after this guard is gone; until then nobody else has a reference to the value.
        #[allow(unsafe_code)]
        unsafe {
            self.value.deref()
        }
    }
}

impl<T> DerefMut for Inside<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and this guard is borrowed exclusively.
        #[allow(unsafe_code)]
        unsafe {
            self.value.deref()
        }
    }
}
