//! Frames, and how they are read in place.
use std::io::Read;

pub const H: usize = 8;

#[inline(always)]
pub fn push_frame(out: &mut Vec<u8>, id: u32, body: &[u8]) {
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(body);
}

/// Frame length and id if a whole frame starts at `b`.
#[inline(always)]
pub fn frame(b: &[u8]) -> Option<(usize, u32)> {
    if b.len() < H {
        return None;
    }
    let n = u32::from_le_bytes(b[..4].try_into().unwrap()) as usize;
    if b.len() < H + n {
        return None;
    }
    Some((n, u32::from_le_bytes(b[4..8].try_into().unwrap())))
}

/// Reads frames in place; calls `f(id, body)` for each and `end()` per batch.
pub struct Reader {
    buf: Vec<u8>,
    from: usize,
    to: usize,
    max: usize,
}
impl Reader {
    pub fn new(cap: usize, max: usize) -> Self {
        Reader {
            buf: vec![0; cap],
            from: 0,
            to: 0,
            max,
        }
    }
    /// One read(2), then every whole frame. false at EOF.
    #[inline]
    pub fn pump(&mut self, s: &mut impl Read, mut f: impl FnMut(u32, &[u8])) -> bool {
        if self.from == self.to {
            self.from = 0;
            self.to = 0;
        } else if self.from > 0 {
            self.buf.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        if self.to == self.buf.len() {
            let n = self.buf.len() * 2;
            self.buf.resize(n, 0);
        }
        let n = match s.read(&mut self.buf[self.to..]) {
            Ok(0) | Err(_) => return false,
            Ok(n) => n,
        };
        self.to += n;
        let full = self.to == self.buf.len();
        while let Some((n, id)) = frame(&self.buf[self.from..self.to]) {
            f(id, &self.buf[self.from + H..self.from + H + n]);
            self.from += H + n;
        }
        if full && self.buf.len() < self.max {
            let n = (self.buf.len() * 4).min(self.max);
            self.buf.resize(n, 0);
        }
        true
    }
}
