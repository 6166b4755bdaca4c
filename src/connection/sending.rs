//! Messages on their way out: framed once, put into the queue, or gathered by the reader.
//!
//! What a handler sends on its own connection is gathered and goes out in one piece: when no
//! complete frame is left to read, before the thread waits, at 64 KiB, and at the latest after
//! a millisecond. The room in the queue is reserved at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::seat;
use super::writing::{Company, GATHERED};
use super::{Connection, scratch};
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, Kind, MessageRef, MetadataRef, Route};
use crate::protocol::unsupported;
use crate::queue::{Class, Frame};
use crate::status::{Status, StatusRef};

/// Gathered output is sent on when it reaches this size.
const GATHER: usize = 64 << 10;
/// Twice in a millisecond the timer looks for output that was left gathered.
const GATHER_CHECK: Duration = Duration::from_micros(500);

/// Whether a sender waits for room in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    No,
    Until(Option<Instant>),
}

/// Output of handlers that has not been appended to the queue.
#[derive(Default)]
pub(super) struct Gather {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Counts the times that gathered output was appended.
    epoch: u32,
    /// The epoch at the timer's last look.
    seen: u32,
    /// Whether the timer looks.
    watched: bool,
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
        scratch::with(|frame| {
            self.encode(message, frame)?;
            if self.reserve(frame.len(), wait)? && self.gather(frame) {
                return Ok(());
            }
            self.queue.append(Frame::copy(frame, true));
            self.appended(message.kind, company);
            Ok(())
        })
    }

    /// Sends a frame of a push that several connections share.
    pub(crate) fn send_shared(&self, frame: &Arc<[u8]>) -> Result<(), Error> {
        if frame.len() > self.peer_limits.frame_bytes as usize {
            return Err(self.too_large(frame.len()));
        }
        self.queue.reserve(frame.len(), Class::Request)?;
        if seat::gathers(self) && self.gather(frame) {
            return Ok(());
        }
        self.queue.append(Frame::Shared {
            bytes: frame.clone(),
        });
        self.appended(Kind::Push, Company::Alone);
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
        self.counters.calls_answered.fetch_add(1);
        self.incoming_answered();
    }

    fn send_reply(&self, reply: &MessageRef<'_>, class: Class) -> Result<(), Error> {
        scratch::with(|frame| {
            self.encode(reply, frame)?;
            self.queue.reserve(frame.len(), class)?;
            if seat::gathers(self) && self.gather(frame) {
                return Ok(());
            }
            self.queue.append(Frame::copy(frame, true));
            self.appended(Kind::Reply, Company::Alone);
            Ok(())
        })
    }

    /// Tells the peer that nobody waits for the reply any more.
    pub(crate) fn send_cancel(&self, sequence: u32) {
        if !self.framing.protocol().carries(Kind::Cancel) {
            return;
        }
        self.flush_gathered();
        scratch::with(|frame| {
            let cancel = MessageRef::control(Kind::Cancel, sequence, &[]);
            if self.framing.encode(&cancel, frame).is_ok()
                && self.queue.reserve(frame.len(), Class::Control).is_ok()
            {
                self.queue.append(Frame::copy(frame, false));
                self.appended(Kind::Cancel, Company::Alone);
            }
        });
    }

    fn encode(&self, message: &MessageRef<'_>, frame: &mut Vec<u8>) -> Result<(), Error> {
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
        self.framing.encode(message, frame)?;
        if frame.len() > self.peer_limits.frame_bytes as usize {
            return Err(self.too_large(frame.len()));
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

    /// Reserves room; `true` if the frame may be gathered.
    fn reserve(&self, bytes: usize, wait: Wait) -> Result<bool, Error> {
        let full = match self.queue.reserve(bytes, Class::Request) {
            Ok(()) => return Ok(seat::gathers(self)),
            Err(full) if full.kind() == ErrorKind::QueueFull => full,
            Err(error) => return Err(self.refusal(error)),
        };
        let Wait::Until(deadline) = wait else {
            return Err(full);
        };
        seat::before_wait()?;
        match self.queue.reserve_by(bytes, deadline) {
            Ok(()) => Ok(false),
            Err(error) if error.kind() == ErrorKind::QueueFull => Err(Error::with_source(
                ErrorKind::Timeout,
                "no room in the send queue within the time limit (timeouts.push)",
                error,
            )),
            Err(error) => Err(self.refusal(error)),
        }
    }

    /// The refusal of a connection that closes, or what ended it.
    fn refusal(&self, closed: Error) -> Error {
        self.end_reason().map_or(closed, |reason| {
            Error::with_source(ErrorKind::Disconnected, "the connection has ended", reason)
        })
    }

    /// Adds a frame to what the reader gathers; `false` if it must go into the queue itself.
    fn gather(&self, frame: &[u8]) -> bool {
        let mut gather = self.gather.lock();
        if frame.len() > GATHER {
            drop(gather);
            self.flush_gathered();
            return false;
        }
        gather.bytes.extend_from_slice(frame);
        let end = gather.bytes.len();
        gather.ends.push(end as u32);
        drop(gather);
        if end >= GATHER {
            self.flush_gathered();
            self.drain_inline();
        }
        true
    }

    /// Appends what was gathered to the queue; `true` if there was anything.
    pub(super) fn flush_gathered(&self) -> bool {
        let mut gather = self.gather.lock();
        if gather.bytes.is_empty() {
            return false;
        }
        gather.epoch = gather.epoch.wrapping_add(1);
        let bytes = std::mem::take(&mut gather.bytes);
        let ends = std::mem::take(&mut gather.ends);
        // Appended under the lock, or two flushes could change places.
        self.queue.append(Frame::Gathered { bytes, ends });
        true
    }

    /// Takes a buffer back into use.
    pub(super) fn recycle(&self, mut bytes: Vec<u8>, mut ends: Vec<u32>) {
        bytes.clear();
        ends.clear();
        let mut gather = self.gather.lock();
        if gather.bytes.capacity() == 0 {
            gather.bytes = bytes;
            gather.ends = ends;
        }
    }

    /// Lets go of an idle connection's buffers.
    pub(super) fn shrink_gathered(&self) {
        let mut gather = self.gather.lock();
        if gather.bytes.is_empty() && gather.bytes.capacity() > 4 << 10 {
            gather.bytes = Vec::new();
            gather.ends = Vec::new();
        }
    }

    /// Before a handler runs: if output of an earlier one is still gathered, the timer sees to
    /// it that it does not wait for the end of a slow handler.
    pub(super) fn watch_gathered(&self) {
        let mut gather = self.gather.lock();
        if gather.bytes.is_empty() || gather.watched {
            return;
        }
        gather.watched = true;
        gather.seen = gather.epoch;
        drop(gather);
        self.schedule(Instant::now() + GATHER_CHECK);
    }

    pub(super) fn check_gathered(&self, now: Instant) -> Option<Instant> {
        let mut gather = self.gather.lock();
        if !gather.watched {
            return None;
        }
        if gather.epoch != gather.seen {
            gather.seen = gather.epoch;
            return Some(now + GATHER_CHECK);
        }
        gather.watched = false;
        if !gather.bytes.is_empty() {
            drop(gather);
            self.due.fetch_or(GATHERED, Ordering::SeqCst);
            self.wake_writer();
        }
        None
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
