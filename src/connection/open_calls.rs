//! The calls of this side that wait for replies, and what belongs to each.

use std::time::Instant;

use super::cancelling::NestedGuard;
use super::waiter::Caller;
use crate::config::Limits;
use crate::link::calls::{Allowance, Calls};
use crate::protocol::native::handshake::PeerLimits;

/// Who waits for a call to end, and what to end with it.
pub(super) struct OpenCall {
    pub(super) caller: Caller,
    /// If it was made by the handler of another call.
    pub(super) nested: Option<Box<NestedGuard>>,
}

/// The calls that wait for replies, and how many callers wait to open one.
pub(super) struct OpenCalls {
    pub(super) calls: Calls<OpenCall>,
    pub(super) waiting: usize,
    /// When the timer looks for calls whose time has passed.
    pub(super) watched: Option<Instant>,
}

impl OpenCalls {
    pub(super) fn new(limits: &Limits, peer: &PeerLimits) -> Self {
        OpenCalls {
            calls: Calls::new(Allowance {
                calls: limits.pending_calls.min(peer.calls) as usize,
                bytes: peer.call_bytes as usize,
            }),
            waiting: 0,
            watched: None,
        }
    }

    pub(super) fn open_calls(&self) -> usize {
        self.calls.open_calls()
    }

    pub(super) fn peak(&self) -> usize {
        self.calls.peak()
    }

    /// Nobody waits for a call with this deadline: the timer is to end it. The answer is the
    /// time that it has to be told.
    pub(super) fn watch(&mut self, deadline: Option<Instant>) -> Option<Instant> {
        let earlier = deadline.filter(|new| self.watched.is_none_or(|watched| *new < watched))?;
        self.watched = Some(earlier);
        Some(earlier)
    }
}
