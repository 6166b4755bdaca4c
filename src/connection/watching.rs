//! What the timer does for a connection while it lives: it says that this side is there, and
//! looks whether the peer is.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::writing::PING;
use super::{Connection, NEVER};
use crate::link::heartbeat::Schedule;
use crate::message::Kind;

impl Connection {
    /// From now on this side says that it is there, if the protocol has a word for it.
    pub(super) fn begin_heartbeat(&self) {
        if !self.framing.protocol().carries(Kind::Ping) {
            return;
        }
        let now = Instant::now();
        let schedule = Schedule::new(&self.config.heartbeat, self.peer_times.silence, now);
        let next = schedule.next();
        *self.heartbeat.lock() = schedule;
        if let Some(next) = next {
            self.schedule(next);
        }
    }

    /// Sends a ping when it is due.
    ///
    /// The timer's thread writes it by itself: to wake the writer thread would start one for
    /// each idle connection. It does not block: a role that is taken, or a kernel that takes no
    /// more, leaves the ping to whoever writes next.
    pub(super) fn check_heartbeat(&self, now: Instant) -> Option<Instant> {
        let mut schedule = self.heartbeat.lock();
        let is_due = schedule.take_due(now);
        let next = schedule.next();
        drop(schedule);
        if is_due {
            self.owe(PING);
        }
        next
    }

    /// How much later than planned the timer has come.
    pub(super) fn lateness(&self, now: Instant, planned: u64) -> Duration {
        if planned == NEVER {
            return Duration::ZERO;
        }
        let age = now.saturating_duration_since(self.begun);
        age.saturating_sub(Duration::from_millis(planned))
    }

    /// Cuts off a peer that broke a deadline.
    pub(super) fn check_peer(&self, now: Instant, late: Duration) -> Option<Instant> {
        let looked = self.watch.lock().check(now, late, || self.has_unread());
        looked.unwrap_or_else(|error| {
            self.fail(error);
            None
        })
    }

    /// Whether the reader, which waits, is about to come back: with bytes, or with the end.
    fn has_unread(&self) -> bool {
        let Some(socket) = self.socket.lock().clone() else {
            return false;
        };
        let mut fds = [PollFd::new(&*socket, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1..))
    }
}
