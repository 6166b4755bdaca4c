//! What was encoded and the stream has not taken yet.

use std::io::{self, Write};

/// A larger buffer is given back once it is written.
const KEEP: usize = 64 << 10;

/// Frames one behind the other, of which the first `written` bytes are gone.
#[derive(Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    written: usize,
}

impl Outgoing {
    pub(super) fn unwritten(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    /// The bytes, for a frame to be appended.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        if self.written > 0 {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        &mut self.bytes
    }

    /// Writes until nothing is left; what an error leaves goes first the next time.
    pub(super) fn write_to(&mut self, stream: &mut impl Write) -> io::Result<()> {
        while !self.unwritten().is_empty() {
            match stream.write(self.unwritten()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => self.written += taken,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.written = 0;
        self.bytes.clear();
        if self.bytes.capacity() > KEEP {
            self.bytes = Vec::new();
        }
        Ok(())
    }
}
