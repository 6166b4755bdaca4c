//! What the reader does beside running handlers: counts, answers by itself, control frames.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Connection;
use super::buffer::ReadBuffer;
use super::writing::PONG;
use crate::error::{Error, ErrorKind, caught};
use crate::link::delivery::decode_count;
use crate::link::watch::Unfinished;
use crate::message::{Kind, MessageRef, MetadataRef};
use crate::stats::bump;
use crate::status::{Status, StatusRef};

impl Connection {
    pub(super) fn before_read(&self, buffer: &mut ReadBuffer, needed: Option<usize>) {
        let now = Instant::now();
        let unfinished = (!buffer.is_empty()).then(|| Unfinished {
            begun: buffer.frame_begun(now),
            needed,
        });
        let mut watch = self.watch.lock();
        watch.reader_waits(now, unfinished);
        let deadline = watch.deadline();
        drop(watch);
        if let Some(deadline) = deadline {
            self.schedule(deadline);
        }
    }

    pub(super) fn after_read(&self) {
        self.watch.lock().reader_came_back();
        bump(&self.counters.reader.reads, 1);
    }

    /// A message of this size is handed on. While a handler's thread is away it and its
    /// substitute may count at once.
    pub(super) fn count_received(&self, size: usize, is_away: bool) {
        let counters = &self.counters.reader;
        if is_away {
            counters.received_messages.fetch_add(1);
            counters.received_bytes.fetch_add(size as u64);
        } else {
            bump(&counters.received_messages, 1);
            bump(&counters.received_bytes, size as u64);
        }
    }

    pub(super) fn control(&self, message: &MessageRef<'_>) -> Result<(), Error> {
        self.counters.reader.control_frames.fetch_add(1);
        if message.kind != Kind::Cancel || !self.cancels_a_call() {
            self.spend_budget()?;
        }
        match message.kind {
            Kind::Ping => self.owe(PONG),
            Kind::Pong => self.confirm(message.body)?,
            Kind::Goodbye => {
                self.confirm(message.body)?;
                self.goodbye_received(message.status);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a cancel can belong to a call: its peer has paid for it then, however many calls
    /// it gives up at once.
    fn cancels_a_call(&self) -> bool {
        bump(&self.counters.reader.cancels_received, 1);
        self.counters.reader.cancels_received.load() <= self.counters.reader.calls_received.load()
    }

    fn confirm(&self, body: &[u8]) -> Result<(), Error> {
        let Some(count) = decode_count(body) else {
            return Err(Error::new(
                ErrorKind::Malformed,
                "a pong or goodbye without its counts",
            ));
        };
        self.delivery.lock().confirm(count);
        Ok(())
    }

    /// A call that is to be answered; the answer is how many are open beside it.
    pub(super) fn call_came(&self) -> usize {
        // One thread reads at a time, so this is no addition that could be lost.
        let asked = self.asked.load(Ordering::Relaxed).wrapping_add(1);
        self.asked.store(asked, Ordering::Release);
        bump(&self.counters.reader.calls_received, 1);
        asked.wrapping_sub(self.answered.load(Ordering::Relaxed)) - 1
    }

    /// One more frame that costs the peer nothing.
    pub(super) fn spend_budget(&self) -> Result<(), Error> {
        self.budget.lock().spend(Instant::now())
    }

    /// A push or call that must not be guessed at.
    pub(super) fn refuse(&self, kind: Kind, sequence: u32, status: &Status, size: usize) {
        if !kind.is_message() {
            return;
        }
        self.count_received(size, true);
        if kind == Kind::Call {
            self.call_came();
            self.answer_status(sequence, status.as_ref());
        } else {
            self.counters.reader.dropped_pushes.fetch_add(1);
        }
    }

    pub(crate) fn answer_going_away(&self, sequence: u32) {
        self.answer_status(
            sequence,
            StatusRef {
                code: Status::GOING_AWAY,
                text: "the session is closing",
                cause: "",
            },
        );
    }

    pub(super) fn answer_overloaded(&self, sequence: u32) {
        self.counters.others.calls_overloaded.fetch_add(1);
        self.answer_status(
            sequence,
            StatusRef {
                code: Status::OVERLOADED,
                text: "too many calls are in progress, or a handler waits and the backlog is full",
                cause: "",
            },
        );
    }

    fn answer_status(&self, sequence: u32, status: StatusRef<'_>) {
        self.reply_status(sequence, status, MetadataRef::EMPTY);
    }

    /// Runs user code; a panic is counted and goes no further.
    pub(crate) fn guard(&self, run: impl FnOnce()) {
        if caught(run).is_none() {
            self.count_panic();
        }
    }

    pub(crate) fn count_panic(&self) {
        self.counters.others.panics.fetch_add(1);
    }
}
