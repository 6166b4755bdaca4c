//! Messages on their way out: framed once, into the queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Connection;
use super::seat;
use super::writing::Company;
use crate::config::{Limits, SlowPeer, deadline};
use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, Kind, MessageRef, MetadataRef, Route};
use crate::protocol::{SendLimits, unsupported};
use crate::queue::{Admission, Class, NotAppended, Refusal, Shortage};
use crate::status::{Status, StatusRef};

/// A message with a larger body is not copied into the batch of small ones.
const ALONE: usize = 64 << 10;
/// What a frame needs beside its body, as a rule.
const HEADERS: usize = 1024;

/// Whether a sender waits for room in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    No,
    /// From now on, if the policy for slow peers is to wait; the clock is read only if there is
    /// no room.
    For(Duration),
    Until(Option<Instant>),
}

/// Why a message is not in the queue.
enum NotPut {
    Full(Full),
    Refused(Error),
}

/// There is no room for so many bytes; a large frame comes along, encoded.
struct Full {
    bytes: usize,
    shortage: Shortage,
    frame: Option<Vec<u8>>,
}

impl Connection {
    /// Sends a push or call.
    ///
    /// On success it is queued, or dropped by the policy for slow peers; on error nothing was
    /// sent.
    pub(crate) fn send(
        &self,
        message: &MessageRef<'_>,
        wait: Wait,
        company: Company,
    ) -> Result<(), Error> {
        let waiting = match self.put(message, Class::Request) {
            Ok(waiting) => waiting,
            Err(NotPut::Full(full)) => match self.make_room(&full, wait)? {
                true => self.put_reserved(message, full)?,
                false => return Ok(()),
            },
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
                NotAppended::Full { bytes, shortage } => NotPut::Full(Full {
                    bytes,
                    shortage,
                    frame: None,
                }),
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
            Err(Refusal::Full(shortage)) => {
                return Err(NotPut::Full(Full {
                    bytes,
                    shortage,
                    frame: Some(frame),
                }));
            }
            Err(Refusal::Closed) => return Err(NotPut::Refused(self.closed_error())),
        }
        Ok(bytes)
    }

    /// Puts a message for which room was waited for.
    fn put_reserved(&self, message: &MessageRef<'_>, full: Full) -> Result<usize, Error> {
        let bytes = full.bytes;
        if let Some(frame) = full.frame {
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

    /// Reserves room for what found none; `false` if it was dropped instead.
    fn make_room(&self, full: &Full, wait: Wait) -> Result<bool, Error> {
        let deadline = match wait {
            Wait::No => return Err(self.refused_full(full.shortage)),
            Wait::Until(deadline) => deadline,
            Wait::For(limit) => match self.slow_peer() {
                SlowPeer::Block if limit.is_zero() => {
                    return Err(self.refused_full(full.shortage));
                }
                SlowPeer::Block => deadline(Instant::now(), limit),
                policy => return self.make_room_or(policy, full.bytes),
            },
        };
        self.wait_for_room(full.bytes, deadline).map(|()| true)
    }

    /// Reserves room for a push if the system takes what is queued; otherwise drops the push or
    /// ends the session.
    fn make_room_or(&self, policy: SlowPeer, bytes: usize) -> Result<bool, Error> {
        // What was only gathered is no fault of the peer.
        self.drain_inline();
        match self.queue.reserve(bytes, Class::Request) {
            Ok(()) => Ok(true),
            Err(Refusal::Closed) => Err(self.closed_error()),
            Err(Refusal::Full(shortage)) if policy == SlowPeer::Disconnect => {
                self.counters.others.queue_full.fetch_add(1);
                Err(self.disconnect_slow(shortage))
            }
            Err(Refusal::Full(_)) => self.drop_push(bytes).map(|()| false),
        }
    }

    /// Reserves room for a push or call, waiting for it.
    pub(super) fn wait_for_room(
        &self,
        bytes: usize,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        seat::before_wait()?;
        match self.queue.reserve_by(bytes, deadline) {
            Ok(()) => Ok(()),
            Err(Refusal::Full(shortage)) => Err(Error::with_source(
                ErrorKind::Timeout,
                "no room in the send queue within the time limit (timeouts.push)",
                self.refused_full(shortage),
            )),
            Err(Refusal::Closed) => Err(self.closed_error()),
        }
    }

    /// A push or call is not sent.
    pub(super) fn refused_full(&self, shortage: Shortage) -> Error {
        self.counters.others.queue_full.fetch_add(1);
        self.full(shortage)
    }

    /// Sends a frame of a push that several connections share, with a body of this size.
    pub(crate) fn send_shared(&self, frame: &Arc<[u8]>, body_bytes: usize) -> Result<(), Error> {
        self.send_limits().check_body(body_bytes)?;
        self.send_limits().check_frame(frame.len())?;
        let disconnects = || self.slow_peer() == SlowPeer::Disconnect;
        let put = match self.put_shared(frame) {
            Err(Refusal::Full(_)) if disconnects() => {
                self.drain_inline();
                self.put_shared(frame)
            }
            put => put,
        };
        match put {
            Ok(waiting) => {
                self.appended(Kind::Push, Company::Alone, waiting);
                Ok(())
            }
            Err(_) if self.is_over() || self.is_closing() => Err(self.closed_error()),
            Err(Refusal::Closed) => Err(self.closed_error()),
            Err(Refusal::Full(shortage)) => {
                if disconnects() {
                    self.disconnect_slow(shortage);
                }
                Err(self.refused_full(shortage))
            }
        }
    }

    fn put_shared(&self, frame: &Arc<[u8]>) -> Result<usize, Refusal> {
        if frame.len() > ALONE {
            self.queue.reserve(frame.len(), Class::Request)?;
            self.queue.append_shared(frame.clone());
            return Ok(frame.len());
        }
        // A small one is combined with others.
        let copy = |bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(frame);
            Ok(())
        };
        let admission = Admission::Within(Class::Request);
        self.queue
            .append(admission, true, copy)
            .map_err(|refusal| match refusal {
                NotAppended::Full { shortage, .. } => Refusal::Full(shortage),
                NotAppended::Closed | NotAppended::Encoding(_) => Refusal::Closed,
            })
    }

    /// Answers a call of the peer. What does not fit is replaced by a status, for which there
    /// is always room. The answer is the status code that it came to.
    pub(crate) fn reply(
        &self,
        sequence: u32,
        status: Option<StatusRef<'_>>,
        metadata: MetadataRef<'_>,
        codec: CodecId,
        body: &[u8],
    ) -> i32 {
        let mut answered = status.map_or(Status::OK, |status| status.code);
        let mut reply = MessageRef::new(Kind::Reply, Route::Number(0), sequence, codec, body);
        reply.status = status;
        reply.metadata = metadata;
        match self.send_reply(&reply, Class::Reply) {
            Ok(()) => {}
            Err(error) if error.is_closed() => {}
            Err(error) => {
                let code = match error.kind() {
                    ErrorKind::QueueFull => {
                        self.counters.others.calls_overloaded.fetch_add(1);
                        Status::OVERLOADED
                    }
                    _ => Status::TOO_LARGE,
                };
                answered = code;
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
        self.incoming_answered(sequence);
        answered
    }

    /// Answers a call of the peer with an error status.
    pub(crate) fn reply_status(
        &self,
        sequence: u32,
        status: StatusRef<'_>,
        metadata: MetadataRef<'_>,
    ) -> i32 {
        self.reply(sequence, Some(status), metadata, CodecId::BYTES, &[])
    }

    fn send_reply(&self, reply: &MessageRef<'_>, class: Class) -> Result<(), Error> {
        match self.put(reply, class) {
            Ok(waiting) => {
                self.appended(Kind::Reply, Company::Alone, waiting);
                Ok(())
            }
            Err(NotPut::Full(full)) => Err(self.full(full.shortage)),
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
        let waiting = self.put_cancel(sequence);
        self.appended(Kind::Cancel, Company::Alone, waiting);
    }

    /// Puts a cancel into the queue, for somebody else to write.
    pub(super) fn put_cancel(&self, sequence: u32) -> usize {
        if !self.framing.protocol().carries(Kind::Cancel) {
            return 0;
        }
        let cancel = MessageRef::control(Kind::Cancel, sequence, &[]);
        self.put_control(|bytes| self.framing.encode(&cancel, bytes))
    }

    /// Puts a control frame into the queue; one that a closed queue refuses is not missed.
    fn put_control(&self, encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> usize {
        let admission = Admission::Within(Class::Control);
        self.queue.append(admission, false, encode).unwrap_or(0)
    }

    pub(super) fn send_limits(&self) -> SendLimits<'_> {
        SendLimits {
            own: &self.config.limits,
            peer: self.peer_limits,
        }
    }

    /// Appends the frame of a message that the peer admits; on error nothing was appended.
    pub(super) fn encode(
        &self,
        message: &MessageRef<'_>,
        frame: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let encode =
            |message: &MessageRef<'_>, out: &mut Vec<u8>| self.framing.encode(message, out);
        self.send_limits().encode(message, frame, encode)
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
