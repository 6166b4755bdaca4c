//! When a message came, how long its caller waits from then on, and whether it still does.

use std::time::{Duration, Instant};

use super::Connection;
use crate::config;
use crate::message::{Kind, MessageRef};
use crate::status::{Status, StatusRef};

/// How a push or call came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The bytes that it took on the wire.
    pub(crate) wire_bytes: usize,
    /// When the read that brought its last byte was over.
    pub(crate) at: Instant,
}

const EXPIRED: StatusRef<'static> = StatusRef {
    code: Status::DEADLINE_EXCEEDED,
    text: "the time limit of the call passed before a handler was free",
    cause: "",
};

const CANCELLED: StatusRef<'static> = StatusRef {
    code: Status::CANCELLED,
    text: "the caller gave up before a handler was free",
    cause: "",
};

impl Connection {
    /// When the caller of this message gives up: by its own word, or by the limit that the peer
    /// told for all its calls. `None` for a push, and if no limit is known.
    pub(crate) fn deadline_of(
        &self,
        message: &MessageRef<'_>,
        arrived: Instant,
    ) -> Option<Instant> {
        if message.kind != Kind::Call {
            return None;
        }
        let limit = match (message.time_left, self.peer_times.call) {
            (Some(limit), _) => limit,
            (None, 0) => return None,
            (None, told) => Duration::from_millis(told.into()),
        };
        config::deadline(arrived, limit)
    }

    /// Whether a call that waited for its handler is not worth running any more: the status to
    /// answer it with, which the caller of this function does. It is counted here. The end of
    /// the session alone is no reason: what was read before it is handled.
    pub(crate) fn stale(
        &self,
        message: &MessageRef<'_>,
        arrived: Instant,
    ) -> Option<StatusRef<'static>> {
        if message.kind != Kind::Call {
            return None;
        }
        let deadline = self.deadline_of(message, arrived);
        let status = if self.is_given_up(message.sequence) {
            CANCELLED
        } else if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            EXPIRED
        } else {
            return None;
        };
        self.counters.others.calls_expired.fetch_add(1);
        Some(status)
    }
}
