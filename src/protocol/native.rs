//! The native wire format, version 1. All integers are little-endian.
//!
//! Each side begins with an 8-byte [preface](self::handshake), then the client sends a
//! [hello](self::handshake) and the server a welcome; only then messages flow. Every frame,
//! hello and welcome too, has this header:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | length of all that follows this field |
//! | 4 | 1 | kind (low 4 bits), flags (high 4 bits, 0) |
//! | 5 | 1 | codec id |
//! | 6 | 2 | extension length, 0 = none |
//! | 8 | 4 | route number; `0xFFFFFFFF` = the name is in the extension |
//! | 12 | 4 | sequence; 0 in a push |
//! | 16 | | extension block, then the body |
//!
//! | kind | name | body |
//! |---|---|---|
//! | 1 | push | the payload |
//! | 2 | call | the payload |
//! | 3 | reply | the payload; route 0 |
//! | 4 | hello | see [`handshake`] |
//! | 5 | welcome | see [`handshake`] |
//! | 6, 7 | challenge, proof | reserved |
//! | 8 | ping | empty |
//! | 9 | pong | `u64` messages and `u64` bytes received, see below |
//! | 10 | goodbye | the same two counts; its status item, if it has one, is the reason |
//! | 11 | cancel | empty; the sequence is the canceller's own |
//! | 12 to 15 | chunk, window, reset, ack | reserved |
//!
//! Other kinds, and reserved ones that were not agreed on, are skipped and counted.
//! The counts of pong and goodbye cover pushes, calls and replies, whole frames, since the
//! connection began.
//!
//! A side that announces how long it lets its peer be silent (`times` in the [`handshake`]) ends
//! the connection after that: its peer sends something at least every third of that time, a
//! ping if there is nothing else, but no more than one ping in 100 ms. One pong may answer several
//! pings.
//!
//! The extension block is a row of items: type `u8` (bit 7 set = must be understood), length
//! `u16`, then that many bytes:
//!
//! | type | name | bytes |
//! |---|---|---|
//! | `0x01` | status | code `i32`, text length `u16`, text, cause |
//! | `0x02` | metadata pair | key length `u16`, key, value |
//! | `0x83` | filters | ids, in the order of application |
//! | `0x84` | route name | UTF-8 |
//! | `0x05` | time left | `u32` milliseconds, `0xFFFFFFFF` = no limit |
//! | `0x06` | parent | `u32` sequence of the call whose handler made this call |
//!
//! An item that must be understood and is not: the call is answered with status
//! [`UNSUPPORTED`](Status::UNSUPPORTED), the push is dropped and counted, the connection
//! lives.

mod extension;
pub mod handshake;

use byteorder::{ByteOrder, LittleEndian};

use self::extension::Extension;
use super::{Decoded, Protocol, body_too_large, frame_too_large};
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, Kind, MessageRef, Route};
use crate::status::Status;

/// Bytes of a frame's header.
pub const HEADER: usize = 16;
/// The route number that says: the name is in the extension block.
pub(crate) const NAMED: u32 = u32::MAX;

/// Trunkline's own protocol; see the [module](self) for its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Protocol for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn carries(&self, _: Kind) -> bool {
        true
    }

    fn encode(&self, message: &MessageRef<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let extension = extension::encoded_len(message)?;
        let length = HEADER - 4 + usize::from(extension) + message.body.len();
        let Ok(length) = u32::try_from(length) else {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "a frame has at most 2^32-1 bytes",
            ));
        };
        let route = match message.route {
            Route::Number(NAMED) => {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    "route number 4294967295 is reserved",
                ));
            }
            Route::Number(number) => number,
            Route::Name("") => {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    "the name of a route is not empty",
                ));
            }
            Route::Name(_) => NAMED,
        };
        let mut header = [0; HEADER];
        LittleEndian::write_u32(&mut header[0..4], length);
        header[4] = message.kind as u8;
        header[5] = message.codec.0;
        LittleEndian::write_u16(&mut header[6..8], extension);
        LittleEndian::write_u32(&mut header[8..12], route);
        LittleEndian::write_u32(&mut header[12..16], message.sequence);
        out.reserve(4 + length as usize);
        out.extend_from_slice(&header);
        if extension > 0 {
            extension::encode(message, out);
        }
        out.extend_from_slice(message.body);
        Ok(())
    }

    fn decode<'a>(&self, input: &'a [u8], limits: &Limits) -> Result<Decoded<'a>, Error> {
        let Some(header) = Header::read(input)? else {
            return Ok(Decoded::Incomplete { needed: None });
        };
        header.check(limits)?;
        let size = header.size as usize;
        let Some(payload) = input.get(HEADER..size) else {
            return Ok(Decoded::Incomplete { needed: Some(size) });
        };
        let Some(kind) = header.kind else {
            return Ok(Decoded::Skipped { size });
        };
        let Some((block, body)) = payload.split_at_checked(usize::from(header.extension)) else {
            return Err(malformed("the extension block is longer than its frame"));
        };
        let mut message = MessageRef::new(
            kind,
            Route::Number(header.route),
            header.sequence,
            header.codec,
            body,
        );
        if !block.is_empty() {
            match extension::decode(block, &mut message, limits)? {
                Extension::Understood => {}
                Extension::Unknown(item) => {
                    return Ok(Decoded::Refused {
                        kind,
                        sequence: header.sequence,
                        status: Status::new(
                            Status::UNSUPPORTED,
                            format!("extension item {item:#04x} is not supported here"),
                        ),
                        size,
                    });
                }
            }
        }
        if message.route == Route::Number(NAMED) {
            return Err(malformed("the route's name is missing"));
        }
        Ok(Decoded::Message { message, size })
    }
}

/// A frame's header.
struct Header {
    /// It may be more than the machine can address, until it is checked.
    size: u64,
    /// The rest is known only once the whole header has come.
    kind: Option<Kind>,
    flags: u8,
    codec: CodecId,
    extension: u16,
    route: u32,
    sequence: u32,
    is_whole: bool,
}

impl Header {
    /// Reads the header at the front of `input`, or as much of it as tells the frame's size;
    /// `None` if not even that has come.
    #[inline]
    fn read(input: &[u8]) -> Result<Option<Header>, Error> {
        let Some(length) = input.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = LittleEndian::read_u32(length);
        if (length as usize) < HEADER - 4 {
            return Err(malformed("a frame is shorter than its header"));
        }
        let whole = input.first_chunk::<HEADER>();
        let header = whole.unwrap_or(&[0; HEADER]);
        Ok(Some(Header {
            size: u64::from(length) + 4,
            kind: kind(header[4] & 0x0F),
            flags: header[4] >> 4,
            codec: CodecId(header[5]),
            extension: LittleEndian::read_u16(&header[6..8]),
            route: LittleEndian::read_u32(&header[8..12]),
            sequence: LittleEndian::read_u32(&header[12..16]),
            is_whole: whole.is_some(),
        }))
    }

    /// Refuses what the header alone shows to be wrong, before a byte of the body is read.
    #[inline]
    fn check(&self, limits: &Limits) -> Result<(), Error> {
        if self.size > u64::from(limits.frame_bytes) {
            return Err(frame_too_large(self.size, limits));
        }
        if !self.is_whole || self.kind.is_none() {
            return Ok(());
        }
        if self.flags != 0 {
            return Err(malformed("reserved flags are set"));
        }
        let Some(body) = (self.size as usize - HEADER).checked_sub(usize::from(self.extension))
        else {
            return Err(malformed("the extension block is longer than its frame"));
        };
        if body > limits.body_bytes as usize {
            return Err(body_too_large(body, limits));
        }
        Ok(())
    }
}

fn kind(number: u8) -> Option<Kind> {
    Some(match number {
        1 => Kind::Push,
        2 => Kind::Call,
        3 => Kind::Reply,
        8 => Kind::Ping,
        9 => Kind::Pong,
        10 => Kind::Goodbye,
        11 => Kind::Cancel,
        _ => return None,
    })
}

fn malformed(what: &'static str) -> Error {
    Error::new(ErrorKind::Malformed, what)
}
