//! Framing: how messages become bytes and come back. No sockets, no clock, no state.
//!
//! What each protocol carries; what it cannot is refused with `Unsupported` before a byte is
//! written:
//!
//! | protocol | push | call, reply | status | metadata | route | ping, goodbye | handshake |
//! |---|---|---|---|---|---|---|---|
//! | [`Native`] | yes | yes | yes | yes | number or name | yes | yes |
//! | [`LengthPrefixed`] | yes | no | no | no | none: every message is route 0 | no | no |
//! | [`Stream`] | yes | no | no | no | none: every read is route 0 | no | no |

mod framed;
mod length_prefixed;
pub mod native;
mod send_limits;
mod stream;

use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::message::{Kind, MessageRef};
use crate::status::Status;

pub use framed::Framed;
pub use length_prefixed::LengthPrefixed;
pub use native::Native;
pub(crate) use send_limits::SendLimits;
pub use stream::Stream;

/// How messages become bytes and come back.
///
/// Implementations are plain functions over bytes: they block on nothing, keep no clock and
/// never panic on what a peer sent. An implementation of your own is for [`Framed`].
#[doc(alias = "Proto")]
pub trait Protocol: Send + Sync + std::fmt::Debug {
    /// The name for errors and logs.
    fn name(&self) -> &'static str;

    /// Whether messages of this kind can be expressed.
    fn carries(&self, kind: Kind) -> bool;

    /// Appends the frame of `message` to `out`.
    ///
    /// # Errors
    /// `Unsupported` for what the protocol cannot express, `TooLarge` for what its lengths
    /// cannot describe; then nothing was appended.
    fn encode(&self, message: &MessageRef<'_>, out: &mut Vec<u8>) -> Result<(), Error>;

    /// Reads the frame at the front of `input`.
    ///
    /// # Errors
    /// `FrameTooLarge` as soon as a length over the limit is seen, `Malformed` for bytes that
    /// no correct peer sends. After an error the connection cannot go on.
    fn decode<'a>(&self, input: &'a [u8], limits: &Limits) -> Result<Decoded<'a>, Error>;
}

/// What stands at the front of the input.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Decoded<'a> {
    /// A whole frame.
    Message {
        /// What it says.
        message: MessageRef<'a>,
        /// Its bytes, all of which are consumed.
        size: usize,
    },
    /// A whole frame that this side must not guess at.
    Refused {
        /// What it is; only a call is answered.
        kind: Kind,
        /// Its sequence.
        sequence: u32,
        /// Why.
        status: Status,
        /// Its bytes, all of which are consumed.
        size: usize,
    },
    /// A whole frame of a kind that is not known here, to be counted.
    Skipped {
        /// Its bytes, all of which are consumed.
        size: usize,
    },
    /// More bytes are needed: in all `needed`, if that is known yet.
    Incomplete {
        /// The bytes of the whole frame.
        needed: Option<usize>,
    },
}

pub(crate) fn unsupported(protocol: &dyn Protocol, what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("the {} protocol cannot carry {what}", protocol.name()),
    )
}

pub(crate) fn frame_too_large(size: u64, limits: &Limits) -> Error {
    Error::new(
        ErrorKind::FrameTooLarge,
        format!(
            "the peer announced a frame of {size} bytes; limits.frame_bytes is {}",
            limits.frame_bytes
        ),
    )
}

pub(crate) fn body_too_large(size: usize, limits: &Limits) -> Error {
    Error::new(
        ErrorKind::FrameTooLarge,
        format!(
            "the peer sent a body of {size} bytes; limits.body_bytes is {}",
            limits.body_bytes
        ),
    )
}

/// The protocols that a connection can speak, decided once per connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// Trunkline's own: everything.
    #[default]
    Native,
    /// An `i32` length and a payload: pushes only.
    LengthPrefixed,
    /// Raw bytes: pushes only.
    Stream,
}

impl Framing {
    /// Whether a connection begins with preface, hello and welcome.
    pub(crate) fn has_handshake(self) -> bool {
        self == Framing::Native
    }

    /// The name for errors and logs.
    pub fn name(self) -> &'static str {
        self.protocol().name()
    }

    pub(crate) fn protocol(self) -> &'static dyn Protocol {
        match self {
            Framing::Native => &Native,
            Framing::LengthPrefixed => &LengthPrefixed,
            Framing::Stream => &Stream,
        }
    }

    pub(crate) fn encode(self, message: &MessageRef<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Framing::Native => Native.encode(message, out),
            Framing::LengthPrefixed => LengthPrefixed.encode(message, out),
            Framing::Stream => Stream.encode(message, out),
        }
    }

    pub(crate) fn decode<'a>(self, input: &'a [u8], limits: &Limits) -> Result<Decoded<'a>, Error> {
        match self {
            Framing::Native => Native.decode(input, limits),
            Framing::LengthPrefixed => LengthPrefixed.decode(input, limits),
            Framing::Stream => Stream.decode(input, limits),
        }
    }
}
