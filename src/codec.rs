//! Bodies: how values become bytes and come back.
//!
//! [`IntoBody`] is what may be sent, [`FromBody`] what a received [`Body`] can be decoded as.
//! Bytes and text need no wrapper; formats are wrapper types that choose the codec at compile
//! time. Your own format is an implementation of the two traits with a codec id from 128 on.

use std::fmt;
use std::ops::Deref;

use crate::error::{Error, ErrorKind};
use crate::message::{BodyBytes, CodecId, MetadataRef, Payload};

/// A value that can be the body of a push, a call or a reply.
pub trait IntoBody {
    /// The format that [`bytes`](IntoBody::bytes) writes.
    fn codec(&self) -> CodecId;

    /// The encoded value: either bytes that the value already holds, or what it appended to
    /// `scratch`, which is empty.
    ///
    /// # Errors
    /// The codec's own, as `InvalidInput`.
    fn bytes<'a>(&'a self, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], Error>;
}

/// A value that can be read from a received body, borrowing from it where the format allows.
pub trait FromBody<'a>: Sized {
    /// Whether this type reads the format.
    fn accepts(codec: CodecId) -> bool;

    /// Decodes the bytes.
    ///
    /// # Errors
    /// `BadBody` if they are not what the type expects.
    fn from_body(bytes: &'a [u8]) -> Result<Self, Error>;
}

/// A received body: bytes borrowed from the read buffer, and their format.
///
/// `Display` and `Debug` are for logs: they show at most 64 bytes, and escape control characters.
/// [`decode`](Body::decode) gives the text itself.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    bytes: &'a [u8],
    codec: CodecId,
}

impl<'a> Body<'a> {
    pub(crate) fn new(bytes: &'a [u8], codec: CodecId) -> Self {
        Body { bytes, codec }
    }

    /// The bytes, for as long as the handler runs.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The format.
    pub fn codec(&self) -> CodecId {
        self.codec
    }

    /// Reads the body as a value.
    ///
    /// # Errors
    /// `Unsupported` if the type does not read this format, `BadBody` if it does not decode.
    pub fn decode<T: FromBody<'a>>(&self) -> Result<T, Error> {
        decode(self.bytes, self.codec)
    }
}

/// Reads bytes of a known format as a value.
pub(crate) fn decode<'a, T: FromBody<'a>>(bytes: &'a [u8], codec: CodecId) -> Result<T, Error> {
    if !T::accepts(codec) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("a body of codec {} is not what is expected here", codec.0),
        ));
    }
    T::from_body(bytes)
}

impl fmt::Display for Body<'_> {
    /// One line for logs, such as `text, 5 bytes: "hello"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = Payload {
            metadata: MetadataRef::EMPTY,
            codec: self.codec,
            body: self.bytes,
        };
        payload.fmt(f)
    }
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("codec", &self.codec)
            .field("bytes", &BodyBytes(self.codec, self.bytes))
            .finish()
    }
}

impl Deref for Body<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl AsRef<[u8]> for Body<'_> {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

macro_rules! plain_body {
    ($($type:ty, $codec:ident, $bytes:ident;)*) => {$(
        impl IntoBody for $type {
            fn codec(&self) -> CodecId {
                CodecId::$codec
            }

            fn bytes<'a>(&'a self, _: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
                Ok(self.$bytes())
            }
        }
    )*};
}

plain_body! {
    [u8], BYTES, as_ref;
    Vec<u8>, BYTES, as_slice;
    Box<[u8]>, BYTES, as_ref;
    str, TEXT, as_bytes;
    String, TEXT, as_bytes;
}

impl IntoBody for Body<'_> {
    fn codec(&self) -> CodecId {
        self.codec
    }

    fn bytes<'a>(&'a self, _: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        Ok(self.bytes)
    }
}

impl<const N: usize> IntoBody for [u8; N] {
    fn codec(&self) -> CodecId {
        CodecId::BYTES
    }

    fn bytes<'a>(&'a self, _: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        Ok(self)
    }
}

impl<T: IntoBody + ?Sized> IntoBody for &T {
    fn codec(&self) -> CodecId {
        (**self).codec()
    }

    fn bytes<'a>(&'a self, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        (**self).bytes(scratch)
    }
}

impl IntoBody for () {
    fn codec(&self) -> CodecId {
        CodecId::BYTES
    }

    fn bytes<'a>(&'a self, _: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        Ok(&[])
    }
}

impl<'a> FromBody<'a> for &'a [u8] {
    fn accepts(_: CodecId) -> bool {
        true
    }

    fn from_body(bytes: &'a [u8]) -> Result<Self, Error> {
        Ok(bytes)
    }
}

impl<const N: usize> FromBody<'_> for [u8; N] {
    fn accepts(_: CodecId) -> bool {
        true
    }

    fn from_body(bytes: &[u8]) -> Result<Self, Error> {
        bytes.try_into().map_err(|_| {
            Error::new(
                ErrorKind::BadBody,
                format!("a body of {} bytes where {N} are expected", bytes.len()),
            )
        })
    }
}

impl FromBody<'_> for Vec<u8> {
    fn accepts(_: CodecId) -> bool {
        true
    }

    fn from_body(bytes: &[u8]) -> Result<Self, Error> {
        Ok(bytes.to_vec())
    }
}

impl<'a> FromBody<'a> for &'a str {
    fn accepts(codec: CodecId) -> bool {
        matches!(codec, CodecId::BYTES | CodecId::TEXT)
    }

    fn from_body(bytes: &'a [u8]) -> Result<Self, Error> {
        std::str::from_utf8(bytes).map_err(|source| {
            Error::with_source(ErrorKind::BadBody, "the body is not UTF-8 text", source)
        })
    }
}

impl FromBody<'_> for String {
    fn accepts(codec: CodecId) -> bool {
        <&str>::accepts(codec)
    }

    fn from_body(bytes: &[u8]) -> Result<Self, Error> {
        <&str>::from_body(bytes).map(str::to_owned)
    }
}
