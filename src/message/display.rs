//! How messages look in logs: one line, of bounded length, whatever a peer has sent.

use std::fmt::{self, Write};

use super::{CodecId, Kind, Message, MessageRef, Metadata, MetadataIter, MetadataRef};
use super::{OwnedRoute, Route};
use crate::escape::{Escaped, MORE, beginning};
use crate::status::StatusRef;

/// At most so many bytes of a body are shown.
const BODY: usize = 64;
/// At most so many bytes of all metadata together, of a route's name, of a status's text.
const TEXT: usize = 256;

impl fmt::Display for Route<'_> {
    /// The number with a `#`, or the name with its control characters escaped, so that a peer
    /// cannot write lines of its own into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Number(number) => write!(f, "#{number}"),
            Route::Name(name) => Escaped(name).fmt(f),
        }
    }
}

impl fmt::Display for OwnedRoute {
    /// As that of [`Route`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_route().fmt(f)
    }
}

impl fmt::Display for MessageRef<'_> {
    /// One line for logs, such as `call /math/add #7, text, 5 bytes: "hello"`, with at most 64
    /// bytes of the body and 256 of each text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if matches!(self.kind, Kind::Push | Kind::Call) {
            match self.route {
                Route::Number(_) => write!(f, " {}", self.route)?,
                Route::Name(name) => write!(f, " {}", Capped(name))?,
            }
        }
        if self.sequence != 0 {
            write!(f, " #{}", self.sequence)?;
        }
        if let Some(status) = self.status {
            write!(f, ", {}", StatusLine(status))?;
        }
        if let Some(parent) = self.parent {
            write!(f, ", parent #{parent}")?;
        }
        if let Some(time_left) = self.time_left {
            write!(f, ", {time_left:?} left")?;
        }
        let says_all = self.status.is_some() || !self.kind.is_message();
        let payload = Payload {
            metadata: self.metadata,
            codec: self.codec,
            body: self.body,
        };
        match says_all && self.body.is_empty() && self.metadata.is_empty() {
            true => Ok(()),
            false => write!(f, ", {payload}"),
        }
    }
}

impl fmt::Display for Message {
    /// As that of [`MessageRef`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl fmt::Debug for MessageRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(self, "MessageRef", f)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(&self.as_ref(), "Message", f)
    }
}

/// What is not there is not shown.
fn debug(message: &MessageRef<'_>, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut debug = f.debug_struct(name);
    debug
        .field("kind", &message.kind)
        .field("route", &message.route)
        .field("sequence", &message.sequence)
        .field("codec", &message.codec);
    if let Some(status) = message.status {
        debug.field("status", &format_args!("{}", StatusLine(status)));
    }
    if !message.metadata.is_empty() {
        debug.field("metadata", &message.metadata);
    }
    if let Some(parent) = &message.parent {
        debug.field("parent", parent);
    }
    if let Some(time_left) = &message.time_left {
        debug.field("time_left", time_left);
    }
    debug
        .field("body", &BodyBytes(message.codec, message.body))
        .finish()
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pairs(self.iter(), f)
    }
}

impl fmt::Debug for MetadataRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pairs(self.iter(), f)
    }
}

impl fmt::Debug for MetadataIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pairs(self.clone(), f)
    }
}

/// The pairs as long as there is room for them, then how many are left out.
fn pairs(mut pairs: MetadataIter<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut room = TEXT;
    let mut separator = "";
    f.write_char('{')?;
    while room > 0 {
        let Some((key, value)) = pairs.next() else {
            break;
        };
        f.write_str(separator)?;
        separator = ", ";
        quoted(key, &mut room, f)?;
        f.write_str(": ")?;
        quoted(value, &mut room, f)?;
        // Empty pairs take room as well.
        room = room.saturating_sub(1);
    }
    match pairs.count() {
        0 => {}
        left_out => write!(f, ", {MORE} {left_out} more")?,
    }
    f.write_char('}')
}

/// As much of a text as there is room for, which it uses up.
fn quoted(text: &str, room: &mut usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let shown = beginning(text, *room);
    write!(f, "{shown:?}")?;
    if shown.len() == text.len() {
        *room -= text.len();
        return Ok(());
    }
    *room = 0;
    f.write_char(MORE)
}

/// The beginning of an unquoted text.
struct Capped<'a>(&'a str);

impl fmt::Display for Capped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = beginning(self.0, TEXT);
        Escaped(shown).fmt(f)?;
        match shown.len() == self.0.len() {
            true => Ok(()),
            false => f.write_char(MORE),
        }
    }
}

/// A status whose texts are capped.
struct StatusLine<'a>(StatusRef<'a>);

impl fmt::Display for StatusLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {}", self.0.code)?;
        if !self.0.text.is_empty() {
            write!(f, ": {}", Capped(self.0.text))?;
        }
        if !self.0.cause.is_empty() {
            write!(f, " ({})", Capped(self.0.cause))?;
        }
        Ok(())
    }
}

/// What a message carries: `metadata {"trace": "42"}, text, 5 bytes: "hello"`.
pub(crate) struct Payload<'a> {
    pub(crate) metadata: MetadataRef<'a>,
    pub(crate) codec: CodecId,
    pub(crate) body: &'a [u8],
}

impl fmt::Display for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.metadata.is_empty() {
            write!(f, "metadata {:?}, ", self.metadata)?;
        }
        match self.codec {
            CodecId::BYTES => {}
            CodecId::TEXT => f.write_str("text, ")?,
            CodecId(other) => write!(f, "codec {other}, ")?,
        }
        write!(f, "{:?}", BodyBytes(self.codec, self.body))
    }
}

/// The size of a body and its beginning: in quotes if it is text, else in hexadecimal digits.
pub(crate) struct BodyBytes<'a>(pub(crate) CodecId, pub(crate) &'a [u8]);

impl fmt::Debug for BodyBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BodyBytes(codec, body) = *self;
        let plural = if body.len() == 1 { "" } else { "s" };
        write!(f, "{} byte{plural}", body.len())?;
        if body.is_empty() {
            return Ok(());
        }
        f.write_char(':')?;
        let shown = body.get(..BODY).unwrap_or(body);
        let is_cut = shown.len() < body.len();
        if let Some(text) = readable(shown, codec, is_cut) {
            write!(f, " {text:?}")?;
            return match is_cut {
                true => f.write_char(MORE),
                false => Ok(()),
            };
        }
        for byte in shown {
            write!(f, " {byte:02x}")?;
        }
        match is_cut {
            true => write!(f, " {MORE}"),
            false => Ok(()),
        }
    }
}

/// The bytes as text, if they look like it; a character that is cut at the end is left out.
/// Bytes that nobody has called text look like it if they have no control characters but those
/// that shape lines.
fn readable(bytes: &[u8], codec: CodecId, is_cut: bool) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if is_cut && error.error_len().is_none() => {
            let whole = bytes.get(..error.valid_up_to())?;
            std::str::from_utf8(whole).ok()?
        }
        Err(_) => return None,
    };
    let shapes_lines = |sign| matches!(sign, '\n' | '\r' | '\t');
    let is_text = codec == CodecId::TEXT
        || text
            .chars()
            .all(|sign| !sign.is_control() || shapes_lines(sign));
    is_text.then_some(text)
}
