//! Raw bytes: what is pushed is written as it is, and every read is a push on route 0.
//!
//! There are no message boundaries: the peer's handler may see two pushes as one, or one as
//! two. For line-based devices, `nc`, and byte counters.

use super::length_prefixed::only_bare_push;
use super::{Decoded, Protocol};
use crate::config::Limits;
use crate::error::Error;
use crate::message::{CodecId, Kind, MessageRef, Route};

/// Raw bytes without boundaries; see the table in [`protocol`](crate::protocol).
#[derive(Clone, Copy, Debug)]
pub struct Stream;

impl Protocol for Stream {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn carries(&self, kind: Kind) -> bool {
        kind == Kind::Push
    }

    fn encode(&self, message: &MessageRef<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        only_bare_push(self, message)?;
        out.extend_from_slice(message.body);
        Ok(())
    }

    fn decode<'a>(&self, input: &'a [u8], limits: &Limits) -> Result<Decoded<'a>, Error> {
        let most = limits.body_bytes.min(limits.frame_bytes) as usize;
        let body = input.get(..most).unwrap_or(input);
        if body.is_empty() {
            return Ok(Decoded::Incomplete { needed: None });
        }
        Ok(Decoded::Message {
            message: MessageRef::new(Kind::Push, Route::Number(0), 0, CodecId::BYTES, body),
            size: body.len(),
        })
    }
}
