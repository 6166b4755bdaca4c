//! Worker threads, on which handlers run in place of the readers.
//!
//! Each session has a [`Lane`] of messages that wait. The lanes that have any take turns: they
//! queue for the workers, each once, so that no busy session keeps the others from running.

mod lane;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam::channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;

use crate::config::{Config, Pool, ThreadOptions, ThreadRole};
use crate::connection::inlet::Room;
use crate::connection::sampling::Sampling;
use crate::connection::threads::{self, Places};
use crate::error::Error;

pub(super) use lane::Lane;

/// The workers of a client or server. They end when it is dropped: with the last lane, and with
/// the server.
pub(crate) struct Workers {
    pool: Pool,
    room: Arc<Room>,
    options: ThreadOptions,
    /// Lanes that queue for a turn.
    queue: Sender<Arc<Lane>>,
    turns: Receiver<Arc<Lane>>,
    /// Lanes in the queue, and turns that run.
    demand: AtomicUsize,
    /// Threads that run; written with the lock.
    started: AtomicUsize,
    starting: Mutex<()>,
}

impl Workers {
    /// No thread is started yet.
    pub(super) fn new(pool: Pool, config: &Config) -> Arc<Self> {
        let (queue, turns) = unbounded();
        Arc::new(Workers {
            room: Room::new(pool.messages, config.limits.pool_bytes),
            pool,
            options: config.threads.clone(),
            queue,
            turns,
            demand: AtomicUsize::new(0),
            started: AtomicUsize::new(0),
            starting: Mutex::default(),
        })
    }

    /// Where pushes wait for a thread.
    pub(crate) fn room(&self) -> Arc<Room> {
        self.room.clone()
    }

    /// Whether there is a thread, or one can be started.
    fn is_staffed(&self) -> bool {
        let is_started = || self.started.load(Ordering::Acquire) > 0;
        is_started() || self.start_thread().is_ok() || is_started()
    }

    fn start_thread(&self) -> Result<(), Error> {
        let _starting = self.starting.lock();
        let number = self.started.load(Ordering::Relaxed) + 1;
        if number > self.pool.threads {
            return Ok(());
        }
        let places = Places::take(1)?;
        let (turns, room) = (self.turns.clone(), self.room.clone());
        let name = format!("tl-pool-{number}");
        threads::spawn(name, ThreadRole::Pool, &self.options, move || {
            work(&turns, &room);
            drop(places);
        })?;
        self.started.store(number, Ordering::Release);
        Ok(())
    }

    /// A lane wants one more turn.
    fn announce(&self, lane: Arc<Lane>) {
        let demand = self.demand.fetch_add(1, Ordering::Relaxed) + 1;
        let started = self.started.load(Ordering::Relaxed);
        if demand > started && started < self.pool.threads {
            // If no other can be had, those that run take it in time.
            let _ = self.start_thread();
        }
        self.put_in_queue(lane);
    }

    fn put_in_queue(&self, lane: Arc<Lane>) {
        // It cannot fail: there is a receiver here.
        let _ = self.queue.send(lane);
    }

    /// The lane of a turn that ran does not queue in its place.
    fn turn_ended(&self) {
        self.demand.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a worker thread does.
fn work(turns: &Receiver<Arc<Lane>>, room: &Arc<Room>) {
    room.received_here();
    let sampling = Sampling::default();
    loop {
        let next = turns.try_recv().or_else(|_| {
            sampling.begin_anew();
            turns.recv()
        });
        match next {
            Ok(lane) => lane.take_turn(&sampling),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_for_which_no_thread_can_be_had_says_so() {
        let config = |stack_bytes| Config {
            threads: ThreadOptions {
                stack_bytes,
                on_start: None,
            },
            ..Config::default()
        };
        let none = Workers::new(Pool::default(), &config(Some(usize::MAX - (1 << 20))));
        assert!(!none.is_staffed());
        let some = Workers::new(Pool::default(), &config(None));
        assert!(some.is_staffed() && some.is_staffed());
        assert_eq!(some.started.load(Ordering::Relaxed), 1);
    }
}
