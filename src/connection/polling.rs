//! How threads wait for what comes from the peer: asleep, or polling for a while. Between two
//! looks a thread gives its core away: whoever brings what it waits for may need it.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{self, Errno};
use socket2::Socket;

use super::Connection;
use super::pace::Pace;
use super::socket::receive_at_once;
use super::waiter::Waiter;
use crate::config::Wait;

/// How long a thread polls before it sleeps.
const POLL: Duration = Duration::from_micros(200);
/// The same for a reader that is to spin: what comes rarely is no reason to keep a core busy.
const SPIN: Duration = Duration::from_millis(100);

/// Readers of this process that poll.
static POLLING: Cap = Cap::new();

/// Counts who does something that only so many may do at the same time.
struct Cap(AtomicUsize);

/// Leave to do it, given back when dropped.
struct Permit<'c>(&'c Cap);

impl Cap {
    const fn new() -> Self {
        Cap(AtomicUsize::new(0))
    }

    fn take(&self, most: usize) -> Option<Permit<'_>> {
        let one_more = |taken| (taken < most).then_some(taken + 1);
        let took = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        took.ok().map(|_| Permit(self))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Readers that may poll at the same time: half of the cores, so that the other half has
/// something to tell them.
fn most_readers() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        (cores / 2).max(1)
    })
}

/// Looks until something is there or the time is up.
fn poll<T>(until: Option<Instant>, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        let found = look();
        if found.is_some() || until.is_some_and(|until| Instant::now() >= until) {
            return found;
        }
        thread::yield_now();
    }
}

/// How one reader thread waits for its socket.
pub(super) struct Polling {
    wait: Wait,
    pace: Pace,
    /// When the last bytes came.
    came: Cell<Option<Instant>>,
}

impl Polling {
    pub(super) fn new(wait: Wait) -> Self {
        Polling {
            wait,
            pace: Pace::default(),
            came: Cell::new(None),
        }
    }

    /// Reads once, when there is something to read.
    pub(super) fn read(&self, socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
        let polls = match self.wait {
            Wait::Park => None,
            Wait::Adaptive => self.pace.is_quick().then_some(POLL),
            Wait::Spin => Some(SPIN),
        };
        let received = match polls {
            Some(limit) => read_polling(socket, room, limit),
            None => io::read(socket, room),
        };
        if self.wait == Wait::Adaptive {
            self.note_arrival(Instant::now());
        }
        received
    }

    /// From one arrival to the next: what a handler takes counts too, so that polling is a small
    /// part of what a session costs.
    fn note_arrival(&self, now: Instant) {
        if let Some(before) = self.came.replace(Some(now)) {
            self.pace.note(now.saturating_duration_since(before));
        }
    }
}

/// Reads once, and polls before it sleeps, unless enough others do.
fn read_polling(socket: &Socket, room: &mut [u8], limit: Duration) -> io::Result<usize> {
    if let Some(_permit) = POLLING.take(most_readers()) {
        let mut look = || match receive_at_once(socket, room) {
            Err(Errno::WOULDBLOCK) => None,
            received => Some(received),
        };
        // What is there already needs no clock.
        let received = look().or_else(|| poll(Some(Instant::now() + limit), look));
        if let Some(received) = received {
            return received;
        }
    }
    io::read(socket, room)
}

impl Connection {
    /// Waits until the call has ended; `false` if the deadline passed.
    pub(crate) fn wait_filled(&self, waiter: &Waiter, deadline: Option<Instant>) -> bool {
        let is_done = || waiter.is_done().then_some(());
        let wait = self.config.wait;
        if wait == Wait::Park || waiter.is_done() {
            return waiter.sleep(deadline);
        }
        if wait == Wait::Spin {
            return poll(deadline, is_done).is_some();
        }
        let begun = Instant::now();
        if self.pace.is_quick() {
            let limit = begun + POLL;
            let until = deadline.map_or(limit, |deadline| deadline.min(limit));
            poll(Some(until), is_done);
        }
        let is_done = waiter.sleep(deadline);
        self.pace.note(begun.elapsed());
        is_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_cap_poll_and_who_stops_lets_another() {
        let cap = Cap::new();
        let first = cap.take(2);
        let second = cap.take(2);
        assert!(first.is_some() && second.is_some());
        assert!(cap.take(2).is_none());
        drop(first);
        let third = cap.take(2);
        assert!(third.is_some());
        assert!(cap.take(2).is_none());
        drop((second, third));
        assert_eq!(cap.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_cap_holds_among_threads_and_at_least_one_may_poll() {
        assert!(most_readers() >= 1);
        let (cap, most) = (Cap::new(), AtomicUsize::new(0));
        let inside = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        if let Some(_permit) = cap.take(3) {
                            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        assert!((1..=3).contains(&most.into_inner()));
    }

    #[test]
    fn polling_ends_when_the_time_is_up() {
        let mut looks = 0;
        let found = poll(Some(Instant::now()), || {
            looks += 1;
            None::<()>
        });
        assert_eq!((found, looks), (None, 1));
        assert_eq!(poll(None, || Some(7)), Some(7));
    }
}
