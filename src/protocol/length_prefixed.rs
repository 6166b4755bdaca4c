//! An `i32` little-endian length, then the payload: the byte messages of NetworkLibrary.
//!
//! No magic, version or handshake, and nothing but pushes: every payload is a push on route 0.

use byteorder::{ByteOrder, LittleEndian};

use super::{Decoded, Protocol, body_too_large, frame_too_large, unsupported};
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, Kind, MessageRef, Route};

const HEADER: usize = 4;

/// An `i32` little-endian length and a payload; see the table in [`protocol`](crate::protocol).
#[derive(Clone, Copy, Debug)]
pub struct LengthPrefixed;

impl Protocol for LengthPrefixed {
    fn name(&self) -> &'static str {
        "length-prefixed"
    }

    fn carries(&self, kind: Kind) -> bool {
        kind == Kind::Push
    }

    fn encode(&self, message: &MessageRef<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        only_bare_push(self, message)?;
        let Ok(length) = i32::try_from(message.body.len()) else {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "a length-prefixed payload has at most 2^31-1 bytes",
            ));
        };
        let mut header = [0; HEADER];
        LittleEndian::write_i32(&mut header, length);
        out.extend_from_slice(&header);
        out.extend_from_slice(message.body);
        Ok(())
    }

    fn decode<'a>(&self, input: &'a [u8], limits: &Limits) -> Result<Decoded<'a>, Error> {
        let Some((header, rest)) = input.split_first_chunk::<HEADER>() else {
            return Ok(Decoded::Incomplete { needed: None });
        };
        let length = LittleEndian::read_i32(header);
        let Ok(length) = u32::try_from(length) else {
            return Err(Error::new(
                ErrorKind::Malformed,
                format!("the peer announced a negative length, {length}"),
            ));
        };
        let size = u64::from(length) + HEADER as u64;
        if size > u64::from(limits.frame_bytes) {
            return Err(frame_too_large(size, limits));
        }
        if length > limits.body_bytes {
            return Err(body_too_large(length as usize, limits));
        }
        let size = size as usize;
        Ok(match rest.get(..length as usize) {
            None => Decoded::Incomplete { needed: Some(size) },
            Some(body) => Decoded::Message {
                message: MessageRef::new(Kind::Push, Route::Number(0), 0, CodecId::BYTES, body),
                size,
            },
        })
    }
}

/// What a framing without headers can say: a body, nothing about it. The codec is left to
/// what the peers have agreed on.
pub(super) fn only_bare_push(
    protocol: &dyn Protocol,
    message: &MessageRef<'_>,
) -> Result<(), Error> {
    if message.kind != Kind::Push {
        return Err(unsupported(protocol, "anything but pushes"));
    }
    if message.route != Route::Number(0) {
        return Err(unsupported(protocol, "a route other than 0"));
    }
    if !message.metadata.is_empty() {
        return Err(unsupported(protocol, "metadata"));
    }
    let is_bare = message.sequence == 0
        && message.status.is_none()
        && message.parent.is_none()
        && message.time_left.is_none();
    if !is_bare {
        return Err(unsupported(
            protocol,
            "status, sequence, parent and time left",
        ));
    }
    Ok(())
}
