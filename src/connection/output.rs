//! What the writer role works on: the chunk that it has taken from the queue.

use std::sync::Arc;

use socket2::Socket;

use crate::error::Error;
use crate::queue::{Batch, Chunk};

/// What belongs to whoever holds the role.
pub(super) struct WriteHalf {
    pub(super) socket: Option<Arc<Socket>>,
    pub(super) chunk: Chunk,
    /// How much of the chunk is written.
    pub(super) written: usize,
    /// Close the writing half once the chunk is written.
    pub(super) half_close: bool,
    pub(super) finished: bool,
}

impl WriteHalf {
    pub(super) fn new(socket: Arc<Socket>) -> Self {
        WriteHalf {
            socket: Some(socket),
            chunk: Chunk::default(),
            written: 0,
            half_close: false,
            finished: false,
        }
    }

    /// What is left to write.
    pub(super) fn output(&self) -> &[u8] {
        self.chunk.bytes().get(self.written..).unwrap_or_default()
    }

    /// Puts a control frame into an empty chunk.
    pub(super) fn begin_control(&mut self, encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) {
        let mut batch = Batch::default();
        // A control frame can always be described; otherwise there is nothing to write.
        let _ = batch.push_control(encode);
        self.chunk = Chunk::Batch(batch);
        self.written = 0;
    }

    /// The chunk is written; its buffer stays, for the queue to use again.
    pub(super) fn end_chunk(&mut self) {
        self.written = 0;
        self.chunk.clear();
    }

    /// Takes the chunk out.
    pub(super) fn take_chunk(&mut self) -> Chunk {
        self.written = 0;
        std::mem::take(&mut self.chunk)
    }

    /// Lets go of the buffer of a chunk that is written.
    pub(super) fn shrink(&mut self) {
        if self.output().is_empty() {
            self.take_chunk();
        }
    }

    /// Lets go of everything, the socket too.
    pub(super) fn give_up(&mut self) {
        self.take_chunk();
        self.socket = None;
        self.finished = true;
    }
}
