//! What was read and is not used up: grows with what has come, never with what was announced.

use std::io::{self, Read};

/// What is held between messages, and the most that one read takes then.
const SMALL: usize = 8 << 10;
/// A larger buffer is given back once what it was needed for is used up.
const LARGE: usize = 64 << 10;

/// Received bytes of which `start..end` are not used up.
#[derive(Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Incoming {
    pub(super) fn unused(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Uses up bytes at the front; gives them, and all that came behind them.
    pub(super) fn consume(&mut self, size: usize) -> &[u8] {
        let start = self.start;
        self.start = (start + size).min(self.end);
        self.bytes.get(start..self.end).unwrap_or_default()
    }

    /// Reads once; 0 is the end of the stream. Nothing is lost by an error.
    pub(super) fn fill(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        self.make_room();
        let room = self.bytes.get_mut(self.end..).unwrap_or_default();
        let most = room.len();
        loop {
            match stream.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A stream that says more than it has room for is wrong.
                Ok(received) if received > most => {
                    return Err(io::Error::other("more was read than there was room for"));
                }
                Ok(received) => {
                    self.end += received;
                    return Ok(received);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            self.bytes.resize((self.end * 2).max(SMALL), 0);
        } else if self.end < SMALL && self.bytes.len() > LARGE {
            self.bytes.truncate(SMALL);
            self.bytes.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_is_at_most_twice_what_came_and_is_given_back() {
        let mut incoming = Incoming::default();
        let mut stream = io::repeat(7).take(1 << 20);
        while incoming.fill(&mut stream).unwrap() > 0 {
            let most = (2 * incoming.unused().len()).max(SMALL);
            assert!(incoming.bytes.capacity() <= most);
        }
        assert_eq!(incoming.unused().len(), 1 << 20);
        incoming.consume((1 << 20) - 3);
        incoming.fill(&mut &b"more"[..]).unwrap();
        assert_eq!(incoming.unused(), b"\x07\x07\x07more");
        assert!(incoming.bytes.capacity() < LARGE);
    }
}
