//! The send queue: senders append frames in wire format, the writer role takes them.
//!
//! The contract is small, so that the inside can be replaced: [`reserve`](SendQueue::reserve)
//! room, [`append`](SendQueue::append), [`take`](SendQueue::take), [`release`](SendQueue::release)
//! what was written, [`close`](SendQueue::close). Appending is lock-free: crossbeam's
//! many-to-many list underneath, with small frames inside its slots. A sender that was
//! preempted between its reservation and its append delays those behind it, nothing else. No
//! user code runs in between.

mod bell;
mod frame;
mod list;
mod room;
mod sync;

use std::time::Instant;

use crate::error::Error;

pub(crate) use bell::Bell;
pub(crate) use frame::Frame;
pub(crate) use room::{Bound, Class};

use self::list::List;
use self::room::Room;

/// A queue of frames, bounded in bytes and messages.
pub(crate) struct SendQueue {
    frames: List<Frame>,
    room: Room,
}

impl SendQueue {
    pub(crate) fn new(bound: Bound) -> Self {
        SendQueue {
            frames: List::new(),
            room: Room::new(bound),
        }
    }

    /// Reserves room for one frame, without waiting.
    pub(crate) fn reserve(&self, bytes: usize, class: Class) -> Result<(), Error> {
        self.room.reserve(bytes, class)
    }

    /// Reserves room for one frame of a push or call, waiting for it until the deadline.
    pub(crate) fn reserve_by(&self, bytes: usize, deadline: Option<Instant>) -> Result<(), Error> {
        self.room.reserve_by(bytes, deadline)
    }

    /// Appends a frame, or several gathered ones, for which room was reserved.
    pub(crate) fn append(&self, frame: Frame) {
        self.frames.push(frame);
    }

    /// Takes the oldest frame.
    pub(crate) fn take(&self) -> Option<Frame> {
        self.frames.pop()
    }

    /// Whether there is nothing to take.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Gives back the room of frames that were written.
    pub(crate) fn release(&self, bytes: usize, messages: usize) {
        self.room.release(bytes, messages);
    }

    /// From now on only replies and control frames find room.
    pub(crate) fn close_to_requests(&self) {
        self.room.close_to_requests();
    }

    /// From now on nothing finds room; all who wait return.
    pub(crate) fn close(&self) {
        self.room.close();
    }

    /// Whether everything that ever found room has been released.
    pub(crate) fn is_settled(&self) -> bool {
        self.room.used() == 0
    }

    /// Waits until [`is_settled`](SendQueue::is_settled), at most until the deadline.
    pub(crate) fn wait_settled(&self, deadline: Option<Instant>) -> bool {
        self.room.wait_settled(deadline)
    }

    /// Bytes that wait or are being written.
    pub(crate) fn used_bytes(&self) -> usize {
        self.room.used()
    }
}

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;
