//! What the queue holds: runs of frames in wire format that can be written as they are.

use std::sync::Arc;

use crate::error::Error;
use crate::stats::Count;

/// Marks in `ends` a control frame, which is no message.
const CONTROL: u32 = 1 << 31;

/// Frames one behind the other.
#[derive(Default)]
pub(crate) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// The end of each frame, control frames marked.
    ends: Vec<u32>,
    /// The room that was reserved for them: bytes and frames.
    room: (usize, usize),
    /// The messages among them.
    count: Count,
    /// How many of the frames have given their room back already.
    freed: usize,
}

impl Batch {
    /// The bytes from `start` on are a frame for which room was reserved.
    pub(super) fn end_frame(&mut self, start: usize, is_message: bool) {
        let end = self.bytes.len();
        let size = end - start;
        self.room.0 += size;
        self.room.1 += 1;
        if is_message {
            self.count.messages += 1;
            self.count.bytes += size as u64;
        }
        self.ends
            .push(end as u32 | if is_message { 0 } else { CONTROL });
    }

    /// Adds a control frame of the writer role, which needs no room.
    pub(crate) fn push_control(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        encode(&mut self.bytes)?;
        self.ends.push(self.bytes.len() as u32 | CONTROL);
        Ok(())
    }

    pub(super) fn append(&mut self, other: &Batch) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| end + start));
        self.room.0 += other.room.0;
        self.room.1 += other.room.1;
        self.count.add(other.count);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn has_buffer(&self) -> bool {
        self.bytes.capacity() > 0
    }

    /// Empties it. The bytes are overwritten first: where the two cores are far apart, a sender
    /// fills memory that the writer's core has only read several times slower.
    pub(super) fn clear(&mut self) {
        self.bytes.fill(0);
        self.ends.fill(0);
        self.bytes.clear();
        self.ends.clear();
        self.room = (0, 0);
        self.count = Count::default();
        self.freed = 0;
    }

    /// Takes the room of the frames that lie wholly within the first `written` bytes.
    fn free(&mut self, written: usize) -> (usize, usize) {
        // Control frames of the writer role have none.
        if self.room.1 == 0 {
            return (0, 0);
        }
        let end_of = |end: &u32| (end & !CONTROL) as usize;
        let before = self
            .freed
            .checked_sub(1)
            .and_then(|last| self.ends.get(last));
        let start = before.map_or(0, end_of);
        let rest = self.ends.get(self.freed..).unwrap_or_default();
        let frames = rest.partition_point(|end| end_of(end) <= written);
        let last = frames.checked_sub(1).and_then(|last| rest.get(last));
        let bytes = last.map_or(0, |end| end_of(end) - start);
        self.freed += frames;
        self.room = (self.room.0 - bytes, self.room.1 - frames);
        (bytes, frames)
    }

    /// The messages, and where they end.
    fn messages(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let mut start = 0;
        self.ends.iter().filter_map(move |end| {
            let (is_message, end) = (end & CONTROL == 0, (end & !CONTROL) as usize);
            let frame = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            is_message.then_some((frame, end))
        })
    }
}

/// A piece that is taken as a whole.
pub(crate) enum Chunk {
    /// Small frames together.
    Batch(Batch),
    /// A large message.
    Alone(Vec<u8>),
    /// A message that several queues share.
    Shared(Arc<[u8]>),
}

impl Default for Chunk {
    fn default() -> Self {
        Chunk::Batch(Batch::default())
    }
}

impl Chunk {
    /// The wire bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Chunk::Batch(batch) => &batch.bytes,
            Chunk::Alone(bytes) => bytes,
            Chunk::Shared(bytes) => bytes,
        }
    }

    /// Lets go of the content; a batch keeps its buffers.
    pub(crate) fn clear(&mut self) {
        match self {
            Chunk::Batch(batch) => batch.clear(),
            Chunk::Alone(_) | Chunk::Shared(_) => *self = Chunk::default(),
        }
    }

    /// Takes the room of the frames that lie wholly within the first `written` bytes: the peer
    /// may have them, though the rest is still to be written.
    pub(crate) fn free(&mut self, written: usize) -> (usize, usize) {
        match self {
            Chunk::Batch(batch) => batch.free(written),
            Chunk::Alone(_) | Chunk::Shared(_) => (0, 0),
        }
    }

    /// The room that it still takes in the queue: bytes and frames.
    pub(crate) fn room(&self) -> (usize, usize) {
        match self {
            Chunk::Batch(batch) => batch.room,
            alone => (alone.bytes().len(), 1),
        }
    }

    /// All messages.
    pub(crate) fn messages(&self) -> Count {
        match self {
            Chunk::Batch(batch) => batch.count,
            alone => Count {
                messages: 1,
                bytes: alone.bytes().len() as u64,
            },
        }
    }

    /// The messages that lie wholly within the first `written` bytes, and the others, which
    /// `each` sees.
    pub(crate) fn split(&self, written: usize, mut each: impl FnMut(&[u8])) -> (Count, Count) {
        let (mut whole, mut rest) = (Count::default(), Count::default());
        let mut count = |frame: &[u8], end: usize| {
            let one = Count {
                messages: 1,
                bytes: frame.len() as u64,
            };
            if end <= written {
                whole.add(one);
            } else {
                rest.add(one);
                each(frame);
            }
        };
        match self {
            Chunk::Batch(batch) => batch.messages().for_each(|(frame, end)| count(frame, end)),
            alone => count(alone.bytes(), alone.bytes().len()),
        }
        (whole, rest)
    }
}
