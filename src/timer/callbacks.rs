//! The callback thread: user code whose moment came on a thread that must not run it.

use std::thread;

use crossbeam::channel::{Sender, unbounded};
use parking_lot::Mutex;

use crate::error::caught;

/// A piece of user code.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Starts its thread with the first job; dropping it ends the thread after the last.
#[derive(Default)]
pub(super) struct Callbacks {
    jobs: Mutex<Option<Sender<Job>>>,
}

impl Callbacks {
    pub(super) fn run(&self, job: Job) {
        let mut jobs = self.jobs.lock();
        if let Some(sender) = &*jobs {
            let _ = sender.send(job);
            return;
        }
        let (sender, receiver) = unbounded::<Job>();
        let spawned = thread::Builder::new()
            .name("trunkline-calls".into())
            .spawn(move || {
                for job in receiver {
                    // A panic of one callback is its own; the hook has reported it.
                    let _ = caught(job);
                }
            });
        // Without a thread the job, and with it the callback, is dropped, after the lock; the
        // next one tries again.
        if spawned.is_ok() {
            let _ = sender.send(job);
            *jobs = Some(sender);
        }
    }
}
