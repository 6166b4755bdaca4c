//! Messages on any stream of bytes, without threads.

mod incoming;
mod outgoing;

use std::fmt;
use std::io::{self, Read, Write};

use self::incoming::Incoming;
use self::outgoing::Outgoing;
use super::native::handshake::PeerLimits;
use super::{Decoded, Protocol, SendLimits};
use crate::codec::IntoBody;
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::message::{Kind, MessageRef, Route};

/// Reads and writes the messages of a [`Protocol`] on anything that reads and writes bytes: a
/// serial line, a pipe, a Unix stream.
///
/// This is framing alone: no preface and hello, no heartbeat, no pairing of calls with replies.
/// What control frames a protocol has are messages like all others here. A server or client of
/// the same [`Framing`](super::Framing) understands it, unless that begins with a handshake.
///
/// Reading and writing block as the stream does. Where the stream has a time limit, or never
/// blocks, `Timeout` says that it has passed; nothing is lost, and the next call goes on.
///
/// Reading holds at most twice the bytes that have come of one message, and at least 8 KiB; of
/// what a large message needed it gives back all beyond 64 KiB after it.
///
/// ```
/// use std::os::unix::net::UnixStream;
/// use trunkline::protocol::LengthPrefixed;
/// use trunkline::{Framed, Limits};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (here, there) = UnixStream::pair()?;
/// let mut here = Framed::new(here, LengthPrefixed, Limits::default());
/// let mut there = Framed::new(there, LengthPrefixed, Limits::default());
///
/// here.push(0, "hello")?;
/// drop(here);
/// while let Some(message) = there.read()? {
///     assert_eq!(message.body, b"hello");
/// }
/// # Ok(())
/// # }
/// ```
pub struct Framed<S, P> {
    stream: S,
    protocol: P,
    limits: Limits,
    incoming: Incoming,
    outgoing: Outgoing,
    skipped: u64,
}

impl<S, P> Framed<S, P> {
    /// Messages of `protocol` on `stream`.
    ///
    /// Of the limits those of frames, bodies, metadata and route names hold in both directions,
    /// and `queued_bytes` for what a slow stream leaves unwritten. The peer's are taken to be
    /// the same.
    pub fn new(stream: S, protocol: P, limits: Limits) -> Self {
        Framed {
            stream,
            protocol,
            limits,
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            skipped: 0,
        }
    }

    /// How many frames of kinds that the protocol does not know were passed over.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Bytes that came and belong to messages that were not read yet.
    pub fn unread(&self) -> &[u8] {
        self.incoming.unused()
    }

    /// Bytes of written messages that the stream has not taken yet.
    pub fn unwritten(&self) -> &[u8] {
        self.outgoing.unwritten()
    }

    /// The stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The stream, to set its options; reading or writing it here puts it out of step.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream alone. What is [`unread`](Framed::unread) and
    /// [`unwritten`](Framed::unwritten) is dropped.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Read, P: Protocol> Framed<S, P> {
    /// The next message; `None` when the stream ended between two messages.
    ///
    /// # Errors
    /// - `Timeout`: the stream's time limit passed; reading again goes on where it stopped.
    /// - `Unsupported`: a message that this side must not guess at was passed over;
    ///   [`status`](Error::status) says why, and reading may go on.
    /// - `FrameTooLarge`, `Malformed` and whatever else the protocol says: the stream is out of
    ///   step, and every later read fails with the same error.
    /// - `Disconnected`: the stream ended inside a message, or was reset.
    /// - `InvalidInput`: a protocol of your own says that a frame is empty, or longer than what
    ///   it was given.
    /// - `Io`: reading failed otherwise.
    pub fn read(&mut self) -> Result<Option<MessageRef<'_>>, Error> {
        let Some(size) = self.find_message()? else {
            return Ok(None);
        };
        // Decoded again: what a loop has borrowed it cannot return.
        let input = self.incoming.consume(size);
        match self.protocol.decode(input, &self.limits)? {
            Decoded::Message { message, .. } => Ok(Some(message)),
            _ => Err(inconsistent(&self.protocol)),
        }
    }

    /// Reads until a whole message stands at the front; its size.
    fn find_message(&mut self) -> Result<Option<usize>, Error> {
        loop {
            let unused = self.incoming.unused();
            let found = match unused.is_empty() {
                true => Found::Nothing,
                // What is wrong stays at the front, so that every later read fails as well.
                false => find(&self.protocol, unused, &self.limits)?,
            };
            match found {
                Found::Message(size) => return Ok(Some(size)),
                Found::Refused(size, error) => {
                    self.incoming.consume(size);
                    return Err(error);
                }
                Found::Skipped(size) => {
                    self.incoming.consume(size);
                    self.skipped += 1;
                }
                Found::Nothing => {
                    let received = self.incoming.fill(&mut self.stream);
                    if received.map_err(read_error)? == 0 {
                        return self.at_end().map(|()| None);
                    }
                }
            }
        }
    }

    fn at_end(&self) -> Result<(), Error> {
        match self.unread().len() {
            0 => Ok(()),
            bytes => Err(Error::new(
                ErrorKind::Disconnected,
                format!("the stream ended inside a message, of which {bytes} bytes had come"),
            )),
        }
    }
}

impl<S: Write, P: Protocol> Framed<S, P> {
    /// Writes a message, after what earlier ones have left.
    ///
    /// On `Timeout` the message is accepted all the same: what the stream did not take goes
    /// first with the next `write` or [`flush`](Framed::flush), so it must not be written again;
    /// [`maybe_executed`](Error::maybe_executed) says so too.
    ///
    /// # Errors
    /// - `TooLarge`, `Unsupported`, `InvalidInput`: it passes a limit, which is named, or the
    ///   protocol cannot express it; nothing of it was written.
    /// - `QueueFull`: the stream does not take what earlier messages have left, and there would
    ///   be more than `limits.queued_bytes`; nothing of this one was written.
    /// - `Timeout`: see above.
    /// - `Disconnected`, `Io`: the stream is closed, or writing failed otherwise.
    pub fn write(&mut self, message: &MessageRef<'_>) -> Result<(), Error> {
        let earlier = self.write_out();
        if let Err(error) = &earlier {
            if error.kind() != ErrorKind::Timeout {
                return earlier;
            }
        }
        let limits = SendLimits {
            own: &self.limits,
            peer: PeerLimits::announced(&self.limits),
        };
        let out = self.outgoing.end();
        let left = out.len();
        limits.encode(message, out, |message, out| {
            self.protocol.encode(message, out)
        })?;
        if left > 0 && out.len() > self.limits.queued_bytes as usize {
            out.truncate(left);
            return Err(Error::new(
                ErrorKind::QueueFull,
                format!(
                    "the stream has not taken {left} bytes yet: limits.queued_bytes is {}",
                    self.limits.queued_bytes
                ),
            ));
        }
        // Its time limit has passed already if something is left.
        earlier.and_then(|()| self.write_out())
    }

    /// Writes a push. A stream that buffers, such as standard output, needs a
    /// [`flush`](Framed::flush) as well.
    ///
    /// # Errors
    /// As [`write`](Framed::write), and those of the body's codec.
    pub fn push<'r>(
        &mut self,
        route: impl Into<Route<'r>>,
        body: impl IntoBody,
    ) -> Result<(), Error> {
        let mut scratch = Vec::new();
        let codec = body.codec();
        let body = body.bytes(&mut scratch)?;
        self.write(&MessageRef::new(Kind::Push, route.into(), 0, codec, body))
    }

    /// Writes what is left of earlier messages, and flushes the stream.
    ///
    /// # Errors
    /// `Timeout`, `Disconnected` and `Io` as for [`write`](Framed::write).
    pub fn flush(&mut self) -> Result<(), Error> {
        self.write_out()?;
        loop {
            match self.stream.flush() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map_err(write_error),
            }
        }
    }

    fn write_out(&mut self) -> Result<(), Error> {
        self.outgoing
            .write_to(&mut self.stream)
            .map_err(write_error)
    }
}

/// What stands at the front of the input, and its size.
enum Found {
    Message(usize),
    Refused(usize, Error),
    Skipped(usize),
    Nothing,
}

fn find(protocol: &impl Protocol, input: &[u8], limits: &Limits) -> Result<Found, Error> {
    let (found, size) = match protocol.decode(input, limits)? {
        Decoded::Message { size, .. } => (Found::Message(size), size),
        Decoded::Skipped { size } => (Found::Skipped(size), size),
        Decoded::Refused {
            kind,
            sequence,
            status,
            size,
        } => {
            let what = format!("{kind} #{sequence} was passed over");
            let error = Error::with_status(ErrorKind::Unsupported, &what, status);
            (Found::Refused(size, error), size)
        }
        Decoded::Incomplete { .. } if input.len() < limits.frame_bytes as usize => {
            return Ok(Found::Nothing);
        }
        Decoded::Incomplete { .. } => {
            return Err(Error::new(
                ErrorKind::FrameTooLarge,
                format!(
                    "{} bytes of one message have come, and it is not whole; limits.frame_bytes \
                     is {}",
                    input.len(),
                    limits.frame_bytes
                ),
            ));
        }
    };
    match (1..=input.len()).contains(&size) {
        true => Ok(found),
        false => Err(inconsistent(protocol)),
    }
}

fn inconsistent(protocol: &impl Protocol) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        format!(
            "the {} protocol does not take its input as frames",
            protocol.name()
        ),
    )
}

fn read_error(source: io::Error) -> Error {
    match is_timeout(&source) {
        true => Error::with_source(
            ErrorKind::Timeout,
            "no whole message came within the stream's time limit; read again to go on",
            source,
        ),
        false => stream_error(source, "reading the stream failed"),
    }
}

fn write_error(source: io::Error) -> Error {
    match is_timeout(&source) {
        true => Error::after_sending(
            ErrorKind::Timeout,
            "the stream did not take all within its time limit; the rest is kept",
        ),
        false => stream_error(source, "writing to the stream failed"),
    }
}

/// Its time limit passed, or it never waits.
fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn stream_error(source: io::Error, message: &'static str) -> Error {
    use io::ErrorKind as Io;
    let kind = match source.kind() {
        Io::ConnectionReset
        | Io::ConnectionAborted
        | Io::NotConnected
        | Io::BrokenPipe
        | Io::UnexpectedEof
        | Io::WriteZero => ErrorKind::Disconnected,
        _ => ErrorKind::Io,
    };
    Error::with_source(kind, message, source)
}

impl<S, P: fmt::Debug> fmt::Debug for Framed<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framed")
            .field("protocol", &self.protocol)
            .field("unread", &self.unread().len())
            .field("unwritten", &self.unwritten().len())
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}
