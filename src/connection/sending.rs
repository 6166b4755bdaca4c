//! Messages on their way out: framed once, into the queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Connection;
use super::seat;
use super::writing::Company;
use crate::config::{Limits, deadline};
use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, Kind, MessageRef, MetadataRef, Route};
use crate::protocol::unsupported;
use crate::queue::{Admission, Class, NotAppended, Refusal};
use crate::status::{Status, StatusRef};

/// A message with a larger body is not copied into the batch of small ones.
const ALONE: usize = 64 << 10;
/// What a frame needs beside its body, as a rule.
const HEADERS: usize = 1024;

/// Whether a sender waits for room in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    No,
    /// From now on; the clock is read only if there is no room.
    For(Duration),
    Until(Option<Instant>),
}

/// Why a message is not in the queue.
enum NotPut {
    /// There is no room for so many bytes; a large frame comes along, encoded.
    Full(usize, Option<Vec<u8>>),
    Refused(Error),
}

impl Connection {
    /// Sends a push or call.
    ///
    /// On success it is queued; on error nothing was sent.
    pub(crate) fn send(
        &self,
        message: &MessageRef<'_>,
        wait: Wait,
        company: Company,
    ) -> Result<(), Error> {
        let waiting = match self.put(message, Class::Request) {
            Ok(waiting) => waiting,
            Err(NotPut::Full(bytes, frame)) => {
                let deadline = match wait {
                    Wait::No | Wait::For(Duration::ZERO) => return Err(self.full()),
                    Wait::For(limit) => deadline(Instant::now(), limit),
                    Wait::Until(deadline) => deadline,
                };
                self.wait_for_room(bytes, deadline)?;
                self.put_reserved(message, bytes, frame)?
            }
            Err(NotPut::Refused(error)) => return Err(error),
        };
        self.appended(message.kind, company, waiting);
        Ok(())
    }

    /// Puts a message into the queue; the answer is how many bytes wait there.
    fn put(&self, message: &MessageRef<'_>, class: Class) -> Result<usize, NotPut> {
        if message.body.len() > ALONE {
            return self.put_alone(message, class);
        }
        let admission = Admission::Within(class);
        let encode = |bytes: &mut Vec<u8>| self.encode(message, bytes);
        self.queue
            .append(admission, true, encode)
            .map_err(|refusal| match refusal {
                NotAppended::Full { bytes } => NotPut::Full(bytes, None),
                NotAppended::Closed => NotPut::Refused(self.closed_error()),
                NotAppended::Encoding(error) => NotPut::Refused(error),
            })
    }

    /// A large message gets a buffer of its own, from which it is written.
    fn put_alone(&self, message: &MessageRef<'_>, class: Class) -> Result<usize, NotPut> {
        let mut frame = Vec::with_capacity(message.body.len() + HEADERS);
        self.encode(message, &mut frame).map_err(NotPut::Refused)?;
        let bytes = frame.len();
        match self.queue.reserve(bytes, class) {
            Ok(()) => self.queue.append_alone(frame),
            Err(Refusal::Full) => return Err(NotPut::Full(bytes, Some(frame))),
            Err(Refusal::Closed) => return Err(NotPut::Refused(self.closed_error())),
        }
        Ok(bytes)
    }

    /// Puts a message for which room was waited for.
    fn put_reserved(
        &self,
        message: &MessageRef<'_>,
        bytes: usize,
        frame: Option<Vec<u8>>,
    ) -> Result<usize, Error> {
        if let Some(frame) = frame {
            self.queue.append_alone(frame);
            return Ok(bytes);
        }
        let encode = |bytes: &mut Vec<u8>| self.encode(message, bytes);
        match self.queue.append(Admission::Reserved, true, encode) {
            Ok(waiting) => Ok(waiting),
            Err(NotAppended::Encoding(error)) => {
                self.queue.release(bytes, 1);
                Err(error)
            }
            Err(NotAppended::Full { .. } | NotAppended::Closed) => Err(self.closed_error()),
        }
    }

    /// Reserves room for a push or call, waiting for it.
    fn wait_for_room(&self, bytes: usize, deadline: Option<Instant>) -> Result<(), Error> {
        seat::before_wait()?;
        match self.queue.reserve_by(bytes, deadline) {
            Ok(()) => Ok(()),
            Err(Refusal::Full) => Err(Error::with_source(
                ErrorKind::Timeout,
                "no room in the send queue within the time limit (timeouts.push)",
                self.full(),
            )),
            Err(Refusal::Closed) => Err(self.closed_error()),
        }
    }

    fn full(&self) -> Error {
        let bound = self.queue.bound();
        Error::new(
            ErrorKind::QueueFull,
            format!(
                "the send queue is full: limits.queued_bytes is {}, limits.queued_messages {}",
                bound.bytes, bound.messages
            ),
        )
    }

    /// Sends a frame of a push that several connections share.
    pub(crate) fn send_shared(&self, frame: &Arc<[u8]>) -> Result<(), Error> {
        if frame.len() > self.peer_limits.frame_bytes as usize {
            return Err(self.too_large(frame.len()));
        }
        match self.queue.reserve(frame.len(), Class::Request) {
            Ok(()) => self.queue.append_shared(frame.clone()),
            Err(Refusal::Full) => return Err(self.full()),
            Err(Refusal::Closed) => return Err(self.closed_error()),
        }
        self.appended(Kind::Push, Company::Alone, frame.len());
        Ok(())
    }

    /// Answers a call of the peer. What does not fit is replaced by a status, for which there
    /// is always room.
    pub(crate) fn reply(
        &self,
        sequence: u32,
        status: Option<StatusRef<'_>>,
        metadata: MetadataRef<'_>,
        codec: CodecId,
        body: &[u8],
    ) {
        let mut reply = MessageRef::new(Kind::Reply, Route::Number(0), sequence, codec, body);
        reply.status = status;
        reply.metadata = metadata;
        match self.send_reply(&reply, Class::Reply) {
            Ok(()) => {}
            Err(error) if error.is_closed() => {}
            Err(error) => {
                let code = match error.kind() {
                    ErrorKind::QueueFull => Status::OVERLOADED,
                    _ => Status::TOO_LARGE,
                };
                let text = error.to_string();
                let mut short =
                    MessageRef::new(Kind::Reply, Route::Number(0), sequence, codec, &[]);
                short.status = Some(StatusRef {
                    code,
                    text: &text,
                    cause: "",
                });
                if let Err(error) = self.send_reply(&short, Class::Control) {
                    if error.kind() == ErrorKind::QueueFull {
                        self.fail(too_many_calls(&self.config.limits));
                    }
                }
            }
        }
        self.incoming_answered();
    }

    fn send_reply(&self, reply: &MessageRef<'_>, class: Class) -> Result<(), Error> {
        match self.put(reply, class) {
            Ok(waiting) => {
                self.appended(Kind::Reply, Company::Alone, waiting);
                Ok(())
            }
            Err(NotPut::Full(..)) => Err(self.full()),
            Err(NotPut::Refused(error)) => Err(error),
        }
    }

    /// Puts the end of the handshake before everything that will ever be sent.
    pub(crate) fn begin_with(&self, opening: &[u8]) {
        self.put_control(|bytes| {
            bytes.extend_from_slice(opening);
            Ok(())
        });
    }

    /// Tells the peer that nobody waits for the reply any more.
    pub(crate) fn send_cancel(&self, sequence: u32) {
        if self.framing.protocol().carries(Kind::Cancel) {
            let cancel = MessageRef::control(Kind::Cancel, sequence, &[]);
            let waiting = self.put_control(|bytes| self.framing.encode(&cancel, bytes));
            self.appended(Kind::Cancel, Company::Alone, waiting);
        }
    }

    /// Puts a control frame into the queue; one that a closed queue refuses is not missed.
    fn put_control(&self, encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> usize {
        let admission = Admission::Within(Class::Control);
        self.queue.append(admission, false, encode).unwrap_or(0)
    }

    /// Appends the frame of a message that the peer admits; on error nothing was appended.
    pub(super) fn encode(
        &self,
        message: &MessageRef<'_>,
        frame: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if message.body.len() > self.peer_limits.body_bytes as usize {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "a body of {} bytes passes the limits.body_bytes = {} that the peer announced",
                    message.body.len(),
                    self.peer_limits.body_bytes
                ),
            ));
        }
        let metadata = message.metadata.encoded_len();
        if metadata > self.peer_limits.metadata_bytes as usize {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "{metadata} bytes of metadata pass the limits.metadata_bytes = {} that the peer announced",
                    self.peer_limits.metadata_bytes
                ),
            ));
        }
        let start = frame.len();
        self.framing.encode(message, frame)?;
        let size = frame.len() - start;
        if size > self.peer_limits.frame_bytes as usize {
            frame.truncate(start);
            return Err(self.too_large(size));
        }
        Ok(())
    }

    fn too_large(&self, bytes: usize) -> Error {
        Error::new(
            ErrorKind::TooLarge,
            format!(
                "a frame of {bytes} bytes passes the limits.frame_bytes = {} that the peer announced",
                self.peer_limits.frame_bytes
            ),
        )
    }

    /// Whether the protocol can say it; a clear error before anything is done.
    pub(crate) fn check_carries(&self, kind: Kind) -> Result<(), Error> {
        let protocol = self.framing.protocol();
        match protocol.carries(kind) {
            true => Ok(()),
            false => Err(unsupported(protocol, "calls")),
        }
    }
}

fn too_many_calls(limits: &Limits) -> Error {
    Error::new(
        ErrorKind::ProtocolAbuse,
        format!(
            "the peer calls without reading the replies: limits.incoming_calls is {}",
            limits.incoming_calls
        ),
    )
}
