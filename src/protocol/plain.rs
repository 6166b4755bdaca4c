//! What nearly every frame is: a number for its route, a body, and nothing else.

use crate::message::{CodecId, Kind, MessageRef, Route};

/// A push, call or reply that needs no extension. It is small enough to stay in registers on its
/// way; a [`MessageRef`] that was just written is copied slowly, as the processor has to wait for
/// its parts.
pub(crate) struct Plain<'a> {
    pub(crate) kind: Kind,
    pub(crate) route: u32,
    pub(crate) sequence: u32,
    pub(crate) codec: CodecId,
    pub(crate) body: &'a [u8],
}

impl<'a> Plain<'a> {
    /// The message, if it is such a one.
    #[inline(always)]
    pub(crate) fn of(message: &MessageRef<'a>) -> Option<Plain<'a>> {
        let Route::Number(route) = message.route else {
            return None;
        };
        let is_plain = message.kind.is_message()
            && message.status.is_none()
            && message.metadata.is_empty()
            && message.parent.is_none()
            && message.time_left.is_none();
        is_plain.then_some(Plain {
            kind: message.kind,
            route,
            sequence: message.sequence,
            codec: message.codec,
            body: message.body,
        })
    }

    #[inline(always)]
    pub(crate) fn message(&self) -> MessageRef<'a> {
        let route = Route::Number(self.route);
        MessageRef::new(self.kind, route, self.sequence, self.codec, self.body)
    }
}

/// The bytes before the body of a plain message.
pub(crate) struct PlainHeader {
    bytes: [u8; PlainHeader::MOST],
    len: usize,
}

impl PlainHeader {
    /// No protocol has a longer one.
    pub(crate) const MOST: usize = 16;

    #[inline(always)]
    pub(super) fn new<const N: usize>(header: [u8; N]) -> Self {
        let mut bytes = [0; PlainHeader::MOST];
        if let Some(front) = bytes.first_chunk_mut() {
            *front = header;
        }
        PlainHeader { bytes, len: N }
    }

    #[inline(always)]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}
