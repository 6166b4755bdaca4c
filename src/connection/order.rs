//! Which thread of a connection reads, which one runs handlers in order, and what is held back
//! meanwhile.
//!
//! One thread reads at a time. When a handler is about to wait, its thread hands the reading to
//! a substitute and is *away*: it alone may run the messages that follow in order. Meanwhile
//! the substitute completes replies, runs at once what descends from an open call, and holds
//! the rest back. When the handler returns, its thread works off what was held and then rests;
//! the substitute is the reader from then on. A push that waits for room in an inbox or pool is like
//! a handler that waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

use super::arrival::Arrival;
use super::buffer::ReadBuffer;
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::memory::Charge;
use crate::message::{Kind, Message, MessageRef};

/// Handlers of one connection that wait at the same time.
const DEPTH: usize = 16;

/// What the reader threads of one connection share.
pub(super) struct Order {
    desk: Mutex<Desk>,
    changed: Condvar,
    /// Whether the thread that runs handlers in order does not read. Written under the desk's
    /// lock, read without it.
    away: AtomicBool,
}

struct Desk {
    /// The buffer on its way to the next reader.
    handed: Option<ReadBuffer>,
    /// Threads at rest, or about to be, that can read.
    resting: usize,
    /// Handlers that wait.
    depth: usize,
    held: VecDeque<(Message, Arrival)>,
    held_bytes: usize,
    /// What is held back; bounded by limits of its own, so it is counted and never refused.
    charge: Charge,
    finished: bool,
}

impl Desk {
    /// Its thread is on its way to [`rest`](Order::rest), so no other needs to be started.
    fn handler_returned(&mut self) {
        self.depth -= 1;
        self.resting += 1;
    }

    fn hold(&mut self, message: Message, arrival: Arrival) {
        self.held_bytes += arrival.wire_bytes;
        self.held.push_back((message, arrival));
        self.charge.follow(self.held_bytes);
    }

    fn next_held(&mut self) -> Option<(Message, Arrival)> {
        let next = self.held.pop_front();
        if let Some((_, arrival)) = &next {
            self.held_bytes -= arrival.wire_bytes;
            self.charge.follow(self.held_bytes);
        }
        next
    }

    fn has_room(&self, size: usize, limits: &Limits) -> bool {
        self.held.is_empty()
            || (self.held_bytes + size <= limits.backlog_bytes as usize
                && self.held.len() < limits.backlog_messages as usize)
    }
}

/// What became of a message that was to be held back.
pub(super) enum Held {
    Yes,
    /// There is no room.
    Full,
    /// The thread that runs handlers in order reads again: it is the caller.
    InOrder,
}

impl Order {
    /// What is held back is counted in the charge.
    pub(super) fn new(charge: Charge) -> Self {
        Order {
            desk: Mutex::new(Desk {
                handed: None,
                resting: 0,
                depth: 0,
                held: VecDeque::new(),
                held_bytes: 0,
                charge,
                finished: false,
            }),
            changed: Condvar::new(),
            away: AtomicBool::new(false),
        }
    }

    pub(super) fn is_away(&self) -> bool {
        self.away.load(Ordering::Acquire)
    }

    /// The calling reader's handler is about to wait: another thread gets the buffer, either
    /// one that rests or one that `start` starts. The answer is whether the caller is the
    /// thread that is away now; otherwise its handler was let past the order.
    pub(super) fn hand_over(
        &self,
        buffer: ReadBuffer,
        start: impl FnOnce(ReadBuffer) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let mut desk = self.desk.lock();
        if desk.depth >= DEPTH {
            return Err(Error::new(
                ErrorKind::WouldDeadlock,
                format!("{DEPTH} handlers of this connection wait already"),
            ));
        }
        // A handler that was let past the order, and whose waiting elder has returned, is the
        // eldest now.
        let becomes_away = !self.away.swap(true, Ordering::AcqRel);
        if desk.resting > 0 {
            desk.handed = Some(buffer);
        } else if let Err(error) = start(buffer) {
            if becomes_away {
                self.away.store(false, Ordering::Release);
            }
            return Err(error);
        }
        desk.depth += 1;
        drop(desk);
        self.changed.notify_all();
        Ok(becomes_away)
    }

    /// Holds a message back for the thread that is away. A push for which there is no room sets
    /// `full`, until something is worked off.
    pub(super) fn hold(
        &self,
        message: &MessageRef<'_>,
        arrival: Arrival,
        limits: &Limits,
        full: &AtomicBool,
    ) -> Held {
        let mut desk = self.desk.lock();
        if !self.is_away() {
            return Held::InOrder;
        }
        let size = arrival.wire_bytes;
        if !desk.has_room(size, limits) {
            if message.kind == Kind::Push {
                full.store(true, Ordering::SeqCst);
            }
            return Held::Full;
        }
        desk.hold(message.to_message(), arrival);
        Held::Yes
    }

    /// Waits until there is room, or nobody is away.
    pub(super) fn wait_for_room(&self, size: usize, limits: &Limits) {
        let mut desk = self.desk.lock();
        while self.is_away() && !desk.has_room(size, limits) {
            self.changed.wait(&mut desk);
        }
    }

    /// The next message that was held back for the thread that is away; with `None` it is away
    /// no more.
    pub(super) fn next_held(&self, full: &AtomicBool) -> Option<(Message, Arrival)> {
        let mut desk = self.desk.lock();
        full.store(false, Ordering::SeqCst);
        let next = desk.next_held();
        if next.is_none() {
            desk.handler_returned();
            self.away.store(false, Ordering::Release);
        }
        drop(desk);
        self.changed.notify_all();
        next
    }

    /// A handler that was let past the order has returned from waiting.
    pub(super) fn nested_returns(&self) {
        self.desk.lock().handler_returned();
        self.changed.notify_all();
    }

    /// Waits for a buffer to read on with; `None` if the connection has ended.
    pub(super) fn rest(&self) -> Option<ReadBuffer> {
        let mut desk = self.desk.lock();
        loop {
            if let Some(buffer) = desk.handed.take() {
                desk.resting -= 1;
                return Some(buffer);
            }
            if desk.finished {
                return None;
            }
            self.changed.wait(&mut desk);
        }
    }

    /// Nothing is read any more: waits for the handlers that wait, and sends those at rest
    /// home.
    pub(super) fn finish(&self) {
        let mut desk = self.desk.lock();
        while self.is_away() || desk.depth > 0 {
            self.changed.wait(&mut desk);
        }
        desk.finished = true;
        drop(desk);
        self.changed.notify_all();
    }
}
