//! Pushes that are framed before it is known which connection takes them.

use super::{Company, Connection, Wait};
use crate::config::{Config, deadline};
use crate::error::Error;
use crate::message::{Kind, MessageRef};
use crate::protocol::native::handshake::PeerLimits;
use crate::protocol::{Decoded, Framing, SendLimits};
use crate::queue::{Admission, Class, NotAppended, Refusal};
use crate::stats::Count;

/// A message with a larger frame is not copied into the batch of small ones.
const ALONE: usize = 64 << 10;

/// The frame of a push.
#[derive(Debug)]
pub(crate) struct PushFrame(Vec<u8>);

impl PushFrame {
    /// Frames a push that keeps this side's own limits; the peer's are not known yet.
    pub(crate) fn new(
        message: &MessageRef<'_>,
        framing: Framing,
        config: &Config,
    ) -> Result<PushFrame, Error> {
        let limits = SendLimits {
            own: &config.limits,
            peer: PeerLimits::announced(&config.limits),
        };
        let mut bytes = Vec::new();
        limits.encode(message, &mut bytes, |message, out| {
            framing.encode(message, out)
        })?;
        bytes.shrink_to_fit();
        Ok(PushFrame(bytes))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn count(&self) -> Count {
        Count {
            messages: 1,
            bytes: self.0.len() as u64,
        }
    }
}

/// How many pushes these are, with their bytes.
pub(super) fn counted(pushes: &[PushFrame]) -> Count {
    let mut count = Count::default();
    for push in pushes {
        count.add(push.count());
    }
    count
}

impl Connection {
    /// Whether the pushes that are not written at the end are kept for another connection.
    pub(crate) fn keep_pushes(&self, keeps: bool) {
        // The peer of a protocol without messages has a use for parts of one.
        self.ending.lock().keeps_pushes = keeps && self.framing != Framing::Stream;
    }

    /// Those that were kept, oldest first.
    pub(crate) fn take_kept(&self) -> Vec<PushFrame> {
        std::mem::take(&mut self.ending.lock().kept)
    }

    /// Keeps the pushes among frames of which none was written as a whole.
    pub(super) fn keep_pushes_of(&self, mut frames: &[u8], kept: &mut Vec<PushFrame>) {
        while let Ok(Decoded::Message { message, size }) =
            self.framing.decode(frames, &self.config.limits)
        {
            let (frame, rest) = frames.split_at_checked(size).unwrap_or((frames, &[]));
            if message.kind == Kind::Push {
                kept.push(PushFrame(frame.to_vec()));
            }
            frames = rest;
        }
    }

    /// Sends a push that was framed before. On error nothing was sent.
    pub(crate) fn send_framed(&self, push: &PushFrame, wait: Wait) -> Result<(), Error> {
        if let Decoded::Message { message, .. } =
            self.framing.decode(&push.0, &self.config.limits)?
        {
            self.send_limits().check_message(&message)?;
        }
        self.send_limits().check_frame(push.len())?;
        let size = push.len();
        if size == 0 {
            return Ok(());
        }
        if let Err(refusal) = self.queue.reserve(size, Class::Request) {
            let deadline = match (refusal, wait) {
                (Refusal::Closed, _) => return Err(self.closed_error()),
                (Refusal::Full(shortage), Wait::No) => return Err(self.refused_full(shortage)),
                (Refusal::Full(_), Wait::For(limit)) => deadline(std::time::Instant::now(), limit),
                (Refusal::Full(_), Wait::Until(deadline)) => deadline,
            };
            self.wait_for_room(size, deadline)?;
        }
        let waiting = if size > ALONE {
            self.queue.append_alone(push.0.clone());
            size
        } else {
            let copy = |out: &mut Vec<u8>| {
                out.extend_from_slice(&push.0);
                Ok(())
            };
            match self.queue.append(Admission::Reserved, true, copy) {
                Ok(waiting) => waiting,
                Err(NotAppended::Encoding(error)) => return Err(error),
                Err(NotAppended::Full { .. } | NotAppended::Closed) => {
                    return Err(self.closed_error());
                }
            }
        };
        self.appended(Kind::Push, Company::Alone, waiting);
        Ok(())
    }
}
