//! What the writer role has taken from the queue and works on: a batch, or one large frame.

use std::sync::Arc;

use socket2::Socket;

use crate::queue::Frame;
use crate::stats::Count;

/// Marks in `ends` a control frame, which is no message.
const CONTROL: u32 = 1 << 31;

/// What the role holder works on.
pub(super) struct WriteHalf {
    pub(super) socket: Option<Arc<Socket>>,
    pub(super) batch: Vec<u8>,
    /// The end of each frame in `batch`, control frames marked.
    ends: Vec<u32>,
    /// A large frame that is written by itself, instead of `batch`.
    pub(super) alone: Option<Frame>,
    /// A large frame that waits until `batch` is written.
    pub(super) held: Option<Frame>,
    /// How much of `batch` or `alone` is written.
    pub(super) written: usize,
    /// The room that `batch` or `alone` takes in the queue: bytes and frames.
    pub(super) room: (usize, usize),
    /// Close the writing half once everything is written.
    pub(super) half_close: bool,
    pub(super) finished: bool,
}

impl WriteHalf {
    pub(super) fn new(socket: Arc<Socket>) -> Self {
        WriteHalf {
            socket: Some(socket),
            batch: Vec::new(),
            ends: Vec::new(),
            alone: None,
            held: None,
            written: 0,
            room: (0, 0),
            half_close: false,
            finished: false,
        }
    }

    pub(super) fn output(&self) -> &[u8] {
        let output = match &self.alone {
            Some(frame) => frame.bytes(),
            None => &self.batch,
        };
        output.get(self.written..).unwrap_or_default()
    }

    pub(super) fn push_control(&mut self, frame: &[u8]) {
        self.batch.extend_from_slice(frame);
        self.ends.push(self.batch.len() as u32 | CONTROL);
    }

    /// Adds a frame to the batch; the buffers of gathered ones come back for further use.
    pub(super) fn push(&mut self, frame: Frame) -> Option<(Vec<u8>, Vec<u32>)> {
        self.room.0 += frame.bytes().len();
        match frame {
            Frame::Gathered { bytes, ends } => {
                self.room.1 += ends.len();
                if self.batch.is_empty() && self.batch.capacity() <= bytes.capacity() {
                    let batch = std::mem::replace(&mut self.batch, bytes);
                    let own_ends = std::mem::replace(&mut self.ends, ends);
                    return Some((batch, own_ends));
                }
                let start = self.batch.len() as u32;
                self.batch.extend_from_slice(&bytes);
                self.ends.extend(ends.iter().map(|end| start + end));
                Some((bytes, ends))
            }
            frame => {
                self.room.1 += 1;
                self.batch.extend_from_slice(frame.bytes());
                let mark = if frame.messages() == 0 { CONTROL } else { 0 };
                self.ends.push(self.batch.len() as u32 | mark);
                None
            }
        }
    }

    /// The messages that are written as a whole.
    pub(super) fn whole_messages(&self) -> Count {
        let mut count = Count::default();
        if let Some(frame) = &self.alone {
            if self.written == frame.bytes().len() {
                count.messages = frame.messages() as u64;
                count.bytes = self.written as u64;
            }
            return count;
        }
        let mut start = 0;
        for end in &self.ends {
            let is_message = end & CONTROL == 0;
            let end = end & !CONTROL;
            if end as usize > self.written {
                break;
            }
            if is_message {
                count.messages += 1;
                count.bytes += u64::from(end - start);
            }
            start = end;
        }
        count
    }

    /// What was written or given up is done with.
    pub(super) fn clear(&mut self) {
        self.batch.clear();
        self.ends.clear();
        self.alone = None;
        self.written = 0;
        self.room = (0, 0);
    }

    /// Lets go of everything, the socket too; `each` sees the messages of which something was
    /// not written, and the answer is what they hold.
    pub(super) fn give_up(&mut self, each: &mut impl FnMut(&[u8])) -> Count {
        let mut lost = Count::default();
        let mut start = 0;
        for end in &self.ends {
            let (is_message, end) = (end & CONTROL == 0, end & !CONTROL);
            if is_message && end as usize > self.written {
                lost.messages += 1;
                lost.bytes += u64::from(end - start);
                each(
                    self.batch
                        .get(start as usize..end as usize)
                        .unwrap_or_default(),
                );
            }
            start = end;
        }
        if let Some(frame) = &self.alone {
            if self.written < frame.bytes().len() {
                lost.messages += frame.messages() as u64;
                lost.bytes += frame.bytes().len() as u64;
                each(frame.bytes());
            }
        }
        self.clear();
        self.batch = Vec::new();
        self.socket = None;
        self.finished = true;
        lost
    }

    /// Lets go of a large buffer that is not in use.
    pub(super) fn shrink(&mut self, most: usize) {
        if self.batch.is_empty() && self.batch.capacity() > most {
            self.batch = Vec::new();
            self.ends = Vec::new();
        }
    }
}
