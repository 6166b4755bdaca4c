//! The read buffer: grows with what has come, never with what was announced.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use socket2::Socket;

use crate::config::SocketOptions;
use crate::memory::{Cap, Charge};

/// After so many small reads in a row a large buffer is given back.
const PATIENCE: u32 = 64;

/// How large the buffer is.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// An idle connection holds this much.
    small: usize,
    /// One read takes at most this much, unless a larger frame has begun.
    large: usize,
}

impl From<&SocketOptions> for Sizes {
    fn from(options: &SocketOptions) -> Self {
        Sizes {
            small: options.read_buffer_least,
            large: options.read_buffer_most,
        }
    }
}

/// Received bytes of which `start..end` are not used up. The bytes are shared while handlers
/// look at them, and exclusive while the next read fills them.
pub(super) struct ReadBuffer {
    bytes: Arc<Vec<u8>>,
    start: usize,
    end: usize,
    /// When the first byte of an unfinished frame came.
    begun: Option<Instant>,
    /// When the last bytes came; looked at when it first matters.
    came: Option<Instant>,
    small_reads: u32,
    sizes: Sizes,
    /// What it is beyond the size for one read.
    excess: Charge,
}

impl ReadBuffer {
    /// A buffer that begins with what came along with the handshake.
    pub(super) fn new(received: &[u8], sizes: Sizes, excess: Charge) -> Self {
        let mut bytes = received.to_vec();
        bytes.resize(received.len().max(sizes.small), 0);
        ReadBuffer {
            bytes: Arc::new(bytes),
            start: 0,
            end: received.len(),
            begun: None,
            came: None,
            small_reads: 0,
            sizes,
            excess,
        }
    }

    /// The bytes, to be looked at from [`position`](ReadBuffer::position) on.
    pub(super) fn bytes(&self) -> Arc<Vec<u8>> {
        self.bytes.clone()
    }

    /// Where the unused bytes begin and end.
    pub(super) fn position(&self) -> (usize, usize) {
        (self.start, self.end)
    }

    /// Bytes up to here are used up.
    pub(super) fn consume_to(&mut self, start: usize) {
        self.start = start;
        self.begun = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// When the unfinished frame at the front began; `now` if that was not known.
    pub(super) fn frame_begun(&mut self, now: Instant) -> Instant {
        *self.begun.get_or_insert(now)
    }

    /// When the last bytes came: the clock is read once for each read, before the first user
    /// code that it leads to. The second time is there if that was now.
    pub(super) fn came(&mut self) -> (Instant, Option<Instant>) {
        match self.came {
            Some(came) => (came, None),
            None => {
                let now = Instant::now();
                self.came = Some(now);
                (now, Some(now))
            }
        }
    }

    /// Nothing more is read into it: its memory goes, and the charge for that.
    pub(super) fn let_go(&mut self) {
        self.bytes = Arc::default();
        (self.start, self.end) = (0, 0);
        self.excess = self.excess.another();
    }

    /// The unused bytes in a buffer of their own: this one stays with a handler.
    pub(super) fn split_off(&self) -> ReadBuffer {
        let unused = self.bytes.get(self.start..self.end).unwrap_or_default();
        ReadBuffer {
            begun: self.begun,
            came: self.came,
            ..ReadBuffer::new(unused, self.sizes, self.excess.another())
        }
    }

    /// Accounts for what the next read will hold, or names the cap that does not admit it.
    pub(super) fn admit(&mut self, needed: Option<usize>) -> Result<(), Cap> {
        let size = self.size_for(self.end - self.start, needed);
        self.excess.set(size.saturating_sub(self.sizes.large))
    }

    /// Reads once. `needed` is the size of the unfinished frame, if it is known.
    pub(super) fn fill(&mut self, socket: &Socket, needed: Option<usize>) -> io::Result<usize> {
        let unused = self.end - self.start;
        let size = self.size_for(unused, needed);
        if Arc::get_mut(&mut self.bytes).is_none() {
            // A handler that returned elsewhere still holds the bytes.
            self.bytes = self.split_off().bytes;
            self.start = 0;
            self.end = unused;
        }
        let Some(bytes) = Arc::get_mut(&mut self.bytes) else {
            return Err(io::Error::other("the read buffer is shared"));
        };
        if self.start > 0 {
            bytes.copy_within(self.start..self.end, 0);
            self.start = 0;
            self.end = unused;
        }
        if bytes.len() < size {
            bytes.resize(size, 0);
        } else if bytes.len() > size && bytes.len() > self.sizes.large {
            bytes.truncate(size);
            bytes.shrink_to_fit();
        }
        let room = bytes.get_mut(unused..).unwrap_or_default();
        let received = loop {
            match rustix::io::read(socket, &mut *room) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other?,
            }
        };
        self.end += received;
        self.came = None;
        self.adapt(received);
        Ok(received)
    }

    /// How large the buffer is to be for the next read.
    fn size_for(&self, unused: usize, needed: Option<usize>) -> usize {
        let Sizes { small, large } = self.sizes;
        let length = self.bytes.len().clamp(small, large);
        if needed.is_some_and(|needed| needed > large) || unused >= length {
            // Doubling: at most twice what has come.
            let most = needed.unwrap_or(usize::MAX).max(large);
            return (unused * 2).clamp(large, most);
        }
        length
    }

    /// A read that filled the buffer asks for a larger one, many small ones for a smaller.
    fn adapt(&mut self, received: usize) {
        let Sizes { small, large } = self.sizes;
        let length = self.bytes.len();
        if self.end == length && length < large {
            let mut bytes = vec![0; large];
            let unused = self.bytes.get(self.start..self.end).unwrap_or_default();
            if let Some(head) = bytes.get_mut(..unused.len()) {
                head.copy_from_slice(unused);
            }
            self.end = unused.len();
            self.start = 0;
            self.bytes = Arc::new(bytes);
        }
        self.small_reads = match received < small / 2 {
            true => self.small_reads.saturating_add(1),
            false => 0,
        };
        if self.small_reads > PATIENCE && length > small && self.end - self.start <= small / 2 {
            *self = self.split_off();
        }
    }
}
