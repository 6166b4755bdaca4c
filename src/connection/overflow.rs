//! What becomes of a push for which there is no room: the policy for slow peers.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use super::Connection;
use crate::config::SlowPeer;
use crate::error::{Error, ErrorKind};
use crate::queue::Shortage;
use crate::records::{Limit, Topic};

/// The policy of one session.
pub(super) struct Overflow {
    policy: AtomicU8,
    /// At most one dropped push a second is recorded.
    records: Limit,
}

impl Overflow {
    pub(super) fn new(policy: SlowPeer) -> Self {
        Overflow {
            policy: AtomicU8::new(policy as u8),
            records: Limit::new(1),
        }
    }
}

impl Connection {
    pub(crate) fn slow_peer(&self) -> SlowPeer {
        let policy = self.overflow.policy.load(Ordering::Relaxed);
        let found = SlowPeer::ALL.into_iter().find(|one| *one as u8 == policy);
        found.unwrap_or_default()
    }

    pub(crate) fn set_slow_peer(&self, policy: SlowPeer) {
        let policy = policy as u8;
        self.overflow.policy.store(policy, Ordering::Relaxed);
    }

    /// Drops a push, unless the session is over: then nobody would count it any more.
    pub(super) fn drop_push(&self, bytes: usize) -> Result<(), Error> {
        if !self.note_dropped(bytes) {
            return Err(self.closed_error());
        }
        self.counters.others.slow_peer_drops.fetch_add(1);
        self.owner.records.write_limited(
            Topic::Dropped,
            Some(&self.overflow.records),
            Instant::now(),
            format_args!(
                "session {} with {} reads too slowly: a push was dropped (SlowPeer::DropNewest)",
                self.id, self.peer
            ),
        );
        Ok(())
    }

    /// Ends the session of a peer that reads too slowly.
    pub(super) fn disconnect_slow(&self, shortage: Shortage) -> Error {
        let error = Error::with_source(
            ErrorKind::SlowPeer,
            "the peer reads too slowly, and the policy is to end its session \
             (SlowPeer::Disconnect)",
            self.full(shortage),
        );
        self.fail(error.clone());
        error
    }

    /// The error of a full queue.
    pub(super) fn full(&self, shortage: Shortage) -> Error {
        let text = match shortage {
            Shortage::Queue => {
                let bound = self.queue.bound();
                format!(
                    "the send queue is full: limits.queued_bytes is {}, limits.queued_messages {}",
                    bound.bytes, bound.messages
                )
            }
            Shortage::Memory(cap) => {
                format!("the send queue gets no more memory: {cap}, and used up")
            }
        };
        Error::new(ErrorKind::QueueFull, text)
    }
}
