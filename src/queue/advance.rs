//! Room that senders have taken ahead, for the frames to come: so that a run of small pushes
//! counts in the shared word once for hundreds of them.

use super::room::Bound;
use super::sync::{AtomicUsize, Ordering};

/// So much is taken ahead at once: where the bound is small, one such part of it.
const BYTES: usize = 16 << 10;
const FRAMES: usize = 1024;
const SHARE: usize = if cfg!(loom) { 4 } else { 32 };

/// What of the reserved room no frame has yet. It changes only inside the gate, and is nothing
/// whenever the queue holds nothing.
pub(super) struct Advance {
    bytes: AtomicUsize,
    frames: AtomicUsize,
    /// The bytes and frames that are taken at once.
    pub(super) step: (usize, usize),
}

impl Advance {
    pub(super) fn new(bound: &Bound) -> Self {
        Advance {
            bytes: AtomicUsize::new(0),
            frames: AtomicUsize::new(0),
            step: (
                BYTES.min(bound.bytes / SHARE),
                FRAMES.min(bound.messages / SHARE),
            ),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn frames(&self) -> usize {
        self.frames.load(Ordering::Relaxed)
    }

    /// Uses it for one frame; `false` if it is not enough.
    pub(super) fn spend(&self, bytes: usize) -> bool {
        let left = self.bytes().checked_sub(bytes);
        let (Some(bytes), Some(frames)) = (left, self.frames().checked_sub(1)) else {
            return false;
        };
        self.set(bytes, frames);
        true
    }

    /// A whole step is there again.
    pub(super) fn begin_step(&self) {
        let (bytes, frames) = self.step;
        self.set(bytes, frames);
    }

    /// Takes all of it, to be given back.
    pub(super) fn take(&self) -> (usize, usize) {
        let all = (self.bytes(), self.frames());
        self.set(0, 0);
        all
    }

    fn set(&self, bytes: usize, frames: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.frames.store(frames, Ordering::Relaxed);
    }
}
