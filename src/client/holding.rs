//! The pushes that are kept while a client is not connected.

use std::collections::VecDeque;
use std::time::Instant;

use crate::config::Hold;
use crate::connection::PushFrame;
use crate::error::{Error, ErrorKind};
use crate::stats::Count;

/// The held pushes, oldest first.
#[derive(Default)]
pub(super) struct Held {
    pushes: VecDeque<(PushFrame, Instant)>,
    bytes: usize,
    /// Dropped since somebody was told.
    dropped: Count,
}

impl Held {
    pub(super) fn count(&self) -> Count {
        Count {
            messages: self.pushes.len() as u64,
            bytes: self.bytes as u64,
        }
    }

    pub(super) fn add(
        &mut self,
        push: PushFrame,
        limits: &Hold,
        now: Instant,
    ) -> Result<(), Error> {
        let has_room = self.pushes.len() < limits.messages as usize
            && self.bytes + push.len() <= limits.bytes as usize;
        if !has_room {
            return Err(Error::new(
                ErrorKind::QueueFull,
                format!(
                    "the client is not connected and holds all it may: hold.bytes is {}, hold.messages {}",
                    limits.bytes, limits.messages
                ),
            ));
        }
        self.bytes += push.len();
        self.pushes.push_back((push, now));
        Ok(())
    }

    /// The oldest push, and since when it is here.
    pub(super) fn take(&mut self) -> Option<(PushFrame, Instant)> {
        let (push, since) = self.pushes.pop_front()?;
        self.bytes -= push.len();
        Some((push, since))
    }

    /// They were accepted by a session and never written: they are the oldest. What the session
    /// had room for may pass the limits.
    pub(super) fn carry_over(&mut self, pushes: Vec<PushFrame>, now: Instant) {
        for push in pushes.into_iter().rev() {
            self.put_back(push, now);
        }
    }

    /// It could not be sent: it is the oldest again.
    pub(super) fn put_back(&mut self, push: PushFrame, since: Instant) {
        self.bytes += push.len();
        self.pushes.push_front((push, since));
    }

    /// One that was taken is given up.
    pub(super) fn drop_taken(&mut self, push: &PushFrame) {
        self.dropped.add(push.count());
    }

    /// Drops what is older than it may be; the answer is how much that was.
    pub(super) fn drop_old(&mut self, limits: &Hold, now: Instant) -> Count {
        let mut dropped = Count::default();
        while let Some((push, since)) = self.pushes.front() {
            if now.saturating_duration_since(*since) < limits.age {
                break;
            }
            dropped.add(push.count());
            self.take();
        }
        self.dropped.add(dropped);
        dropped
    }

    /// Drops everything; the answer is how much that was.
    pub(super) fn drop_all(&mut self) -> Count {
        let dropped = self.count();
        self.pushes = VecDeque::new();
        self.bytes = 0;
        self.dropped.add(dropped);
        dropped
    }

    /// When the oldest becomes too old.
    pub(super) fn expiry(&self, limits: &Hold) -> Option<Instant> {
        let (_, since) = self.pushes.front()?;
        since.checked_add(limits.age)
    }

    /// What was dropped since this was asked last.
    pub(super) fn take_dropped(&mut self) -> Count {
        std::mem::take(&mut self.dropped)
    }
}
