//! What the reader does beside running handlers: counts, answers by itself, control frames.

use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam::atomic::AtomicCell;

use super::buffer::ReadBuffer;
use super::writing::PONG;
use super::{Arrival, Connection};
use crate::error::{Error, ErrorKind, caught};
use crate::link::delivery::decode_count;
use crate::link::heartbeat::most_pings;
use crate::link::watch::Unfinished;
use crate::message::{Kind, MessageRef, MetadataRef};
use crate::stats::bump;
use crate::status::{Status, StatusRef};

impl Connection {
    /// The next read is for so many bytes of an unfinished frame, if that is known.
    ///
    /// # Errors
    /// `Overloaded` if there is no memory for it.
    pub(super) fn before_read(
        &self,
        buffer: &mut ReadBuffer,
        needed: Option<usize>,
    ) -> Result<(), Error> {
        buffer.admit(needed).map_err(|cap| {
            Error::new(
                ErrorKind::Overloaded,
                format!("a large message of the peer gets no more memory: {cap}, and used up"),
            )
        })?;
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
            // One that has passed is looked at now, and the timer is not late then.
            self.schedule(deadline.max(now));
        }
        Ok(())
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
        if !self.is_expected(message.kind) {
            self.spend_budget()?;
        }
        match message.kind {
            Kind::Ping => self.owe(PONG),
            Kind::Pong => self.confirm(message.body)?,
            Kind::Cancel => self.call_cancelled(message.sequence),
            Kind::Goodbye => {
                self.confirm(message.body)?;
                self.goodbye_received(message.status);
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts a control frame. An honest peer may have sent so many of its kind, and as a busy
    /// side reads them all at once, they cost nothing of the budget.
    fn is_expected(&self, kind: Kind) -> bool {
        let reader = &self.counters.reader;
        let count = |counter: &AtomicCell<u64>| {
            bump(counter, 1);
            counter.load()
        };
        match kind {
            // Its peer has paid for the call that it gives up.
            Kind::Cancel => count(&reader.cancels_received) <= reader.calls_received.load(),
            Kind::Ping => {
                u128::from(count(&reader.pings_received)) <= most_pings(self.begun.elapsed())
            }
            Kind::Pong => count(&reader.pongs_received) <= self.counters.writer.pings_sent.load(),
            _ => false,
        }
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
    pub(super) fn call_came(&self, sequence: u32) -> usize {
        self.number_comes(sequence);
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
            self.call_came(sequence);
            self.answer_status(sequence, status.as_ref());
        } else {
            self.counters.reader.dropped_pushes.fetch_add(1);
        }
    }

    /// A call that was held back is not worth running any more.
    pub(super) fn refuse_held(
        &self,
        message: &MessageRef<'_>,
        arrival: Arrival,
        status: StatusRef<'_>,
    ) {
        self.count_received(arrival.wire_bytes, true);
        self.answer_status(message.sequence, status);
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
