//! Threads: named, with a stack of known size, and counted against what the system allows.
//!
//! A process aborts when it runs out of memory mappings, of which a thread takes four; so the
//! budget refuses before the system does.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::config::{StartedThread, ThreadOptions, ThreadRole};
use crate::error::{Error, ErrorKind, caught};

/// Stack of a connection's threads, in bytes of address space, unless the builder says more.
pub(crate) const STACK: usize = 512 << 10;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Places in the thread budget; dropping gives them back.
#[derive(Debug)]
pub(crate) struct Places(usize);

impl Places {
    /// Takes places for threads that will be started now or later.
    pub(crate) fn take(count: usize) -> Result<Places, Error> {
        let budget = budget();
        let taken = TAKEN.fetch_add(count, Ordering::Relaxed);
        let places = Places(count);
        if taken + count > budget {
            return Err(Error::new(
                ErrorKind::Overloaded,
                format!("the thread budget of this process, {budget} threads, is used up"),
            ));
        }
        Ok(places)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// How many threads this library may start in this process: three quarters of the tightest
/// limit of the system.
fn budget() -> usize {
    static BUDGET: OnceLock<usize> = OnceLock::new();
    *BUDGET.get_or_init(|| {
        let number = |path: &str| {
            let text = std::fs::read_to_string(path).ok()?;
            text.trim().parse::<usize>().ok()
        };
        let mappings = number("/proc/sys/vm/max_map_count").map(|maps| maps / 4);
        let own = rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
        [
            Some(16_000),
            mappings,
            number("/proc/sys/kernel/threads-max"),
            number("/proc/sys/kernel/pid_max"),
            own.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(16_000)
            / 4
            * 3
    })
}

/// Starts a named thread of a client or server; the hook of its builder runs there first.
pub(crate) fn spawn(
    name: String,
    role: ThreadRole,
    options: &ThreadOptions,
    run: impl FnOnce() + Send + 'static,
) -> Result<(), Error> {
    let hook = options.on_start.clone();
    let stack = options.stack_bytes.filter(|_| role != ThreadRole::Accept);
    start(name, stack, move || {
        if let Some(hook) = hook {
            let thread = thread::current();
            let name = thread.name().unwrap_or_default();
            // The hook's panic is its own; the panic hook has shown it.
            let _ = caught(|| hook(&StartedThread { role, name }));
        }
        run();
    })
}

/// Starts a named thread.
pub(super) fn start(
    name: String,
    stack: Option<usize>,
    run: impl FnOnce() + Send + 'static,
) -> Result<(), Error> {
    thread::Builder::new()
        .name(name)
        .stack_size(stack.unwrap_or(STACK))
        .spawn(run)
        .map(drop)
        .map_err(|source| {
            Error::with_source(ErrorKind::Overloaded, "a thread cannot start", source)
        })
}
