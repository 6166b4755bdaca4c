//! Closing: the handshake of goodbyes driven, from both sides, and flushing before it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::serving;
use super::writing::{FINAL, GOODBYE};
use super::{CloseReason, Connection};
use crate::error::{Error, ErrorKind};
use crate::link::closing::Open;
use crate::message::Kind;
use crate::status::{Status, StatusRef};

impl Connection {
    /// Begins the close handshake, which ends by itself, at the latest after the limit; whether
    /// it was this call that began it.
    pub(crate) fn begin_close(&self, limit: Duration) -> bool {
        self.begin_close_with(limit, None)
    }

    /// As [`begin_close`](Self::begin_close); the peer is told the reason, if it is this call
    /// that begins it.
    pub(crate) fn begin_close_with(&self, limit: Duration, reason: Option<&Status>) -> bool {
        let mut closing = self.closing.lock();
        let begins = closing.begin(Instant::now(), limit, reason);
        let deadline = closing.deadline();
        drop(closing);
        self.is_closing.store(true, Ordering::SeqCst);
        self.wake_at_inlets();
        if let Some(deadline) = deadline {
            self.schedule(deadline);
        }
        if begins {
            self.queue.close_to_requests();
            self.owe(GOODBYE);
        }
        begins
    }

    /// For the last handle of a client: writes what the kernel takes, never blocks.
    pub(crate) fn leave(&self) {
        if self.is_over() {
            return;
        }
        let is_last = !self.is_closing() && self.begin_close(self.config.timeouts.close);
        // A close that had begun goes on by itself, but the process may end before.
        self.write_at_once(is_last);
    }

    /// The goodbye is on its way.
    pub(super) fn goodbye_written(&self) {
        self.closing.lock().goodbye_sent();
        // The role is held here: what follows is written in the same turn or by its holder.
        if self.final_is_due() {
            self.due.fetch_or(FINAL, Ordering::SeqCst);
        }
    }

    /// The peer has said goodbye.
    pub(super) fn goodbye_received(&self, reason: Option<StatusRef<'_>>) {
        self.closing.lock().goodbye_received(reason);
        self.close_too();
        self.update_closing();
    }

    /// What the peer has said with its goodbye.
    pub(super) fn farewell(&self) -> Option<Status> {
        self.closing.lock().farewell().cloned()
    }

    /// What this side says with its goodbye.
    pub(super) fn dismissal(&self) -> Option<Status> {
        self.closing.lock().dismissal().cloned()
    }

    /// The peer closes. A close of this side that runs already keeps its own limit.
    pub(super) fn close_too(&self) {
        if !self.is_closing() {
            self.begin_close(self.config.timeouts.close);
        }
    }

    /// Calls of the peer that are not answered.
    pub(super) fn incoming(&self) -> usize {
        // Loaded first, so that a call answered in between does not make it negative.
        let answered = self.answered.load(Ordering::SeqCst);
        self.asked.load(Ordering::SeqCst).wrapping_sub(answered)
    }

    /// A call of the peer was answered.
    pub(super) fn incoming_answered(&self, sequence: u32) {
        self.answered.fetch_add(1, Ordering::SeqCst);
        self.forget_cancel(sequence);
        serving::answered(self, sequence);
        self.one_less_open();
    }

    /// A push is held back no more.
    pub(super) fn let_go(&self, kind: Kind) {
        if kind == Kind::Push {
            self.held.fetch_sub(1, Ordering::SeqCst);
            self.one_less_open();
        }
    }

    fn one_less_open(&self) {
        if self.is_closing() {
            self.update_closing();
        }
    }

    /// Something that the closing waits for has come.
    pub(super) fn update_closing(&self) {
        if self.final_is_due() {
            self.owe(FINAL);
        }
    }

    fn final_is_due(&self) -> bool {
        let open = Open {
            outgoing: self.calls.lock().open_calls(),
            incoming: self.incoming() + self.held.load(Ordering::SeqCst),
        };
        self.closing.lock().final_is_due(open)
    }

    pub(super) fn check_closing(&self, now: Instant) -> Option<Instant> {
        let deadline = self.closing.lock().deadline()?;
        if now < deadline {
            return Some(deadline);
        }
        self.fail(close_timeout());
        None
    }

    /// Whether everything that was queued has been handed to the kernel by the deadline.
    pub(crate) fn flush(&self, deadline: Option<Instant>) -> Result<(), Error> {
        super::before_wait()?;
        self.drain_inline();
        let is_settled = self.queue.wait_settled(deadline);
        // What was given up at the end of the connection is settled, too.
        match &self.ending.lock().reason {
            Some((CloseReason::Clean, _)) | None if is_settled => Ok(()),
            Some((_, reason)) => Err(Error::disconnected(reason, false)),
            None => Err(Error::new(
                ErrorKind::Timeout,
                "the send queue did not drain within the time limit of the flush",
            )),
        }
    }
}

pub(super) fn close_timeout() -> Error {
    Error::new(
        ErrorKind::Timeout,
        "the session did not close within its time limit (timeouts.close, or the caller's)",
    )
}
