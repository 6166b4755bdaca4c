//! A thread that is seen to wait, where a test is about what wakes it.

use std::fs;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use super::{LIMIT, eventually};

/// Starts a thread, and returns once it sleeps in what it does and nothing wakes it for a while.
#[track_caller]
pub(crate) fn asleep<R: Send + 'static>(
    wait: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    let (sender, started) = mpsc::channel();
    let thread = thread::spawn(move || {
        sender.send(fs::read_link("/proc/thread-self")).unwrap();
        wait()
    });
    let own = started.recv().unwrap().unwrap();
    let status = format!("/proc/{}/status", own.display());
    let mut before = None;
    let sleeps = eventually(LIMIT, || {
        let now = switches_if_asleep(&status);
        let is_the_same = now.is_some() && now == before;
        before = now;
        is_the_same
    });
    assert!(sleeps, "the thread does not wait");
    thread
}

/// How often the thread has gone to sleep, if it sleeps now.
fn switches_if_asleep(status: &str) -> Option<String> {
    let status = fs::read_to_string(status).ok()?;
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let sleeps = field("State:")?.trim_start().starts_with('S');
    let switches = field("voluntary_ctxt_switches:")?;
    sleeps.then(|| switches.to_owned())
}
