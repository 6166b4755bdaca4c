//! Messages on their way out: framed once, and put into the queue or into what the reader
//! gathers.

use std::sync::Arc;
use std::time::Instant;

use super::gathering::Gathered;
use super::seat;
use super::writing::Company;
use super::{Connection, scratch};
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, Kind, MessageRef, MetadataRef, Route};
use crate::protocol::unsupported;
use crate::queue::{Class, Frame};
use crate::status::{Status, StatusRef};

/// Whether a sender waits for room in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    No,
    Until(Option<Instant>),
}

impl Connection {
    /// Sends a push or call.
    ///
    /// On success it is queued or gathered; on error nothing was sent.
    pub(crate) fn send(
        &self,
        message: &MessageRef<'_>,
        wait: Wait,
        company: Company,
    ) -> Result<(), Error> {
        if seat::gathers(self) {
            match self.gather(message, Class::Request) {
                Gathered::Yes => {
                    // The handler goes on: it may take its time.
                    self.watch_gathered();
                    return Ok(());
                }
                Gathered::Refused(error) => return Err(error),
                // It may wait for room, or is too large to be gathered.
                Gathered::No => {}
            }
        }
        scratch::with(|frame| {
            self.encode(message, frame)?;
            self.reserve(frame.len(), wait)?;
            self.append(Frame::copy(frame, true), message.kind, company);
            Ok(())
        })
    }

    /// Sends a frame of a push that several connections share.
    pub(crate) fn send_shared(&self, frame: &Arc<[u8]>) -> Result<(), Error> {
        if frame.len() > self.peer_limits.frame_bytes as usize {
            return Err(self.too_large(frame.len()));
        }
        self.queue.reserve(frame.len(), Class::Request)?;
        let bytes = frame.clone();
        self.append(Frame::Shared { bytes }, Kind::Push, Company::Alone);
        Ok(())
    }

    /// Appends a frame for which room is reserved, behind what this thread has gathered.
    fn append(&self, frame: Frame, kind: Kind, company: Company) {
        if seat::gathers(self) {
            self.flush_gathered();
        }
        self.queue.append(frame);
        self.appended(kind, company);
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
            Err(error) if error.kind() == ErrorKind::Closed => {}
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
        if seat::gathers(self) {
            match self.gather(reply, class) {
                Gathered::Yes => return Ok(()),
                Gathered::Refused(error) => return Err(error),
                Gathered::No => {}
            }
        }
        scratch::with(|frame| {
            self.encode(reply, frame)?;
            self.queue.reserve(frame.len(), class)?;
            self.append(Frame::copy(frame, true), Kind::Reply, Company::Alone);
            Ok(())
        })
    }

    /// Puts the end of the handshake before everything that will ever be sent.
    pub(crate) fn begin_with(&self, opening: &[u8]) {
        if !opening.is_empty() && self.queue.reserve(opening.len(), Class::Control).is_ok() {
            self.queue.append(Frame::copy(opening, false));
        }
    }

    /// Tells the peer that nobody waits for the reply any more.
    pub(crate) fn send_cancel(&self, sequence: u32) {
        if !self.framing.protocol().carries(Kind::Cancel) {
            return;
        }
        scratch::with(|frame| {
            let cancel = MessageRef::control(Kind::Cancel, sequence, &[]);
            if self.framing.encode(&cancel, frame).is_ok()
                && self.queue.reserve(frame.len(), Class::Control).is_ok()
            {
                self.append(Frame::copy(frame, false), Kind::Cancel, Company::Alone);
            }
        });
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

    /// Reserves room for a push or call, waiting for it if `wait` says so.
    fn reserve(&self, bytes: usize, wait: Wait) -> Result<(), Error> {
        let full = match self.queue.reserve(bytes, Class::Request) {
            Ok(()) => return Ok(()),
            Err(full) if full.kind() == ErrorKind::QueueFull => full,
            Err(_) => return Err(self.closed_error()),
        };
        let Wait::Until(deadline) = wait else {
            return Err(full);
        };
        seat::before_wait()?;
        match self.queue.reserve_by(bytes, deadline) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::QueueFull => Err(Error::with_source(
                ErrorKind::Timeout,
                "no room in the send queue within the time limit (timeouts.push)",
                error,
            )),
            Err(_) => Err(self.closed_error()),
        }
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
