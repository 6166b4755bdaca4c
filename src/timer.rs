//! Deadlines: one timer thread per process, started with the first connection and ended with
//! the last.
//!
//! The thread never runs user code and never waits: it asks those whose time has come, and they
//! wake who does, or write what takes no waiting, as heartbeats. Callbacks of calls that ran out
//! of time go to the callback thread.

mod callbacks;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, ErrorKind};

use self::callbacks::Callbacks;
pub(crate) use self::callbacks::Job;

/// Something with deadlines.
pub(crate) trait Timed: Send + Sync {
    /// A time it asked for has come; the answer is when to come back. It must not block.
    fn on_time(&self, now: Instant) -> Option<Instant>;
}

/// The process's timer. The last handle ends its thread.
pub(crate) struct Timer {
    shared: Arc<Shared>,
    callbacks: Callbacks,
}

#[derive(Default)]
struct Shared {
    agenda: Mutex<Agenda>,
    changed: Condvar,
}

/// Who is to be asked when; each has at most one entry.
#[derive(Default)]
struct Agenda {
    entries: BTreeMap<(Instant, Owner), Weak<dyn Timed>>,
    times: HashMap<Owner, Instant>,
    stopped: bool,
}

/// The address of what is timed; its own as long as an entry holds it. Compared, never followed.
type Owner = usize;

fn owner(who: &Weak<dyn Timed>) -> Owner {
    who.as_ptr().cast::<()>().addr()
}

impl Agenda {
    /// Adds an entry, unless its owner has an earlier one.
    fn insert(&mut self, at: Instant, who: Weak<dyn Timed>) {
        let owner = owner(&who);
        match self.times.get(&owner) {
            Some(earlier) if *earlier <= at => return,
            Some(later) => {
                self.entries.remove(&(*later, owner));
            }
            None => {}
        }
        self.times.insert(owner, at);
        self.entries.insert((at, owner), who);
    }

    fn first(&self) -> Option<(Instant, Owner)> {
        self.entries.first_key_value().map(|(key, _)| *key)
    }

    fn remove(&mut self, key: (Instant, Owner)) -> Option<Weak<dyn Timed>> {
        self.times.remove(&key.1);
        self.entries.remove(&key)
    }
}

static CURRENT: Mutex<Weak<Timer>> = Mutex::new(Weak::new());

impl Timer {
    /// The timer of the process, started if there is none.
    pub(crate) fn shared() -> Result<Arc<Timer>, Error> {
        let mut current = CURRENT.lock();
        if let Some(timer) = current.upgrade() {
            return Ok(timer);
        }
        let shared = Arc::new(Shared::default());
        let run = shared.clone();
        thread::Builder::new()
            .name("trunkline-timer".into())
            .stack_size(128 << 10)
            .spawn(move || run.run())
            .map_err(|source| {
                Error::with_source(
                    ErrorKind::Overloaded,
                    "the timer thread cannot start",
                    source,
                )
            })?;
        let timer = Arc::new(Timer {
            shared,
            callbacks: Callbacks::default(),
        });
        *current = Arc::downgrade(&timer);
        Ok(timer)
    }

    /// Comes back to `who` at that time, or at an earlier one that it has asked for before.
    pub(crate) fn schedule(&self, at: Instant, who: Weak<dyn Timed>) {
        let mut agenda = self.shared.agenda.lock();
        let is_first = agenda.first().is_none_or(|(first, _)| at < first);
        agenda.insert(at, who);
        drop(agenda);
        if is_first {
            self.shared.changed.notify_one();
        }
    }

    /// Runs user code on the callback thread.
    pub(crate) fn call_back(&self, job: Job) {
        self.callbacks.run(job);
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.shared.agenda.lock().stopped = true;
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut agenda = self.agenda.lock();
        while !agenda.stopped {
            let Some(key) = agenda.first() else {
                self.changed.wait(&mut agenda);
                continue;
            };
            let now = Instant::now();
            if key.0 > now {
                self.changed.wait_until(&mut agenda, key.0);
                continue;
            }
            let Some(who) = agenda.remove(key) else {
                continue;
            };
            // Dropping what was upgraded may drop the timer itself, which locks the agenda.
            drop(agenda);
            let again = who.upgrade().and_then(|timed| timed.on_time(now));
            agenda = self.agenda.lock();
            if let Some(again) = again {
                agenda.insert(again, who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Probe {
        times: crossbeam::channel::Sender<Instant>,
        again: Option<Duration>,
    }

    impl Timed for Probe {
        fn on_time(&self, now: Instant) -> Option<Instant> {
            self.times.send(now).ok()?;
            self.again.map(|again| now + again)
        }
    }

    #[test]
    fn entries_fire_in_time_order_and_come_back_when_they_ask() {
        let timer = Timer::shared().unwrap();
        let (times, fired) = crossbeam::channel::unbounded();
        let again = Some(Duration::from_millis(5));
        let probe = Arc::new(Probe { times, again });
        let weak: Weak<dyn Timed> = Arc::downgrade(&probe) as Weak<dyn Timed>;
        let start = Instant::now();
        timer.schedule(start + Duration::from_secs(600), weak.clone());
        timer.schedule(start + Duration::from_millis(20), weak.clone());
        timer.schedule(start + Duration::from_secs(300), weak);
        let first = fired.recv_timeout(Duration::from_secs(10)).unwrap();
        let second = fired.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(first >= start + Duration::from_millis(20));
        assert!(second >= first + Duration::from_millis(5));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let timer = Timer::shared().unwrap();
        let (times, fired) = crossbeam::channel::unbounded();
        let probe = Arc::new(Probe { times, again: None });
        let weak: Weak<dyn Timed> = Arc::downgrade(&probe) as Weak<dyn Timed>;
        timer.schedule(Instant::now(), weak.clone());
        fired.recv_timeout(Duration::from_secs(10)).unwrap();
        drop(probe);
        timer.schedule(Instant::now(), weak);
        assert!(fired.recv_timeout(Duration::from_secs(10)).is_err());
    }
}
