//! How the standing writer thread sleeps and is woken: on the edge from nothing to something
//! only, and never missed.

use super::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence, lock, wait};

const AWAKE: usize = 0;
const ASLEEP: usize = 1;

/// One sleeper, many ringers.
pub(crate) struct Bell {
    state: AtomicUsize,
    mutex: Mutex<()>,
    condvar: Condvar,
}

impl Bell {
    /// A bell whose sleeper sleeps (or has not started).
    pub(crate) fn new() -> Self {
        Bell {
            state: AtomicUsize::new(ASLEEP),
            mutex: Mutex::new(()),
            condvar: Condvar::new(),
        }
    }

    /// Whether the sleeper is awake, and so will see what was done before this call.
    ///
    /// The fence pairs with the one in [`sleep`](Bell::sleep): either the sleeper sees the work
    /// that was published before, or the caller sees that it sleeps.
    pub(crate) fn is_awake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.state.load(Ordering::Relaxed) == AWAKE
    }

    /// Wakes the sleeper if it sleeps; `true` if this call did it.
    pub(crate) fn ring(&self) -> bool {
        let woken = !self.is_awake()
            && self
                .state
                .compare_exchange(ASLEEP, AWAKE, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok();
        if !woken {
            return false;
        }
        let _guard = lock(&self.mutex);
        self.condvar.notify_all();
        true
    }

    /// Sleeps until rung, unless there is work already.
    pub(crate) fn sleep(&self, has_work: impl FnOnce() -> bool) {
        self.state.store(ASLEEP, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if has_work() {
            self.state.store(AWAKE, Ordering::SeqCst);
            return;
        }
        let mut guard = lock(&self.mutex);
        while self.state.load(Ordering::SeqCst) == ASLEEP {
            (guard, _) = wait(&self.condvar, guard, None);
        }
    }
}
