//! What is inside the gate.

use std::collections::VecDeque;

use super::chunk::{Batch, Chunk};

/// Batches kept for reuse while the queue is busy.
const SPARE: usize = 4;

/// What waits, oldest first: the chunks, then the batch.
#[derive(Default)]
pub(super) struct Open {
    pub(super) chunks: VecDeque<Chunk>,
    pub(super) batch: Batch,
    pub(super) spare: Vec<Batch>,
    pub(super) takes: usize,
}

impl Open {
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.batch.is_empty()
    }

    /// The batch, if there is anything in it, becomes a chunk.
    pub(super) fn end_batch(&mut self) {
        if !self.batch.is_empty() {
            let next = self.spare.pop().unwrap_or_default();
            let batch = std::mem::replace(&mut self.batch, next);
            self.chunks.push_back(Chunk::Batch(batch));
        }
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Batch(small) => self.batch.append(&small),
            large => {
                self.end_batch();
                self.chunks.push_back(large);
            }
        }
    }

    pub(super) fn recycle(&mut self, done: Chunk) {
        if let Chunk::Batch(mut batch) = done {
            if batch.has_buffer() && self.spare.len() < SPARE {
                batch.clear();
                self.spare.push(batch);
            }
        }
    }
}
