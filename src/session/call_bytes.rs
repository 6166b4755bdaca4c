//! What the calls of one session take, together, while they wait to be answered or handled.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Attached, Session};
use crate::connection::calling::OVERHEAD;
use crate::message::MessageRef;

/// What a call takes of the allowance of its session, until it is dropped.
pub(crate) struct CallBytes {
    attached: Arc<Attached>,
    bytes: usize,
}

impl CallBytes {
    /// `None` if the session's other calls leave no room.
    pub(crate) fn take(
        session: &Session,
        call: &MessageRef<'_>,
        wire_bytes: usize,
    ) -> Option<CallBytes> {
        // At least what its caller counts, and the metadata that is held with it.
        let bytes = wire_bytes.max(call.body.len() + OVERHEAD);
        let most = session.connection.config.limits.incoming_call_bytes as usize;
        let attached = session.attached.clone();
        let others = attached.held_calls.fetch_add(bytes, Ordering::AcqRel);
        let taken = CallBytes { attached, bytes };
        (others == 0 || others + bytes <= most).then_some(taken)
    }
}

impl Drop for CallBytes {
    fn drop(&mut self) {
        self.attached
            .held_calls
            .fetch_sub(self.bytes, Ordering::AcqRel);
    }
}
