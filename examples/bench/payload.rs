//! Bodies that show what became of them: a stamp at either end, and who checks it.
//!
//! The first four bytes are the producer (3 bits) and its sequence (29 bits); the last four,
//! where there are eight or more, are the same word once more, turned by a constant.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use trunkline::{CodecId, Error, IntoBody};

const TURN: u32 = 0xA5A5_5A5A;
const SEQUENCE_BITS: u32 = 29;
const SEQUENCES: u32 = 1 << SEQUENCE_BITS;
/// As many as the stamp can tell apart.
pub(crate) const PRODUCERS: usize = 8;

/// A body without a stamp.
pub(crate) fn template(size: usize) -> Vec<u8> {
    (0..size).map(|place| (place * 31 + 7) as u8).collect()
}

fn word(producer: usize, sequence: u64) -> u32 {
    ((producer as u32) << SEQUENCE_BITS) | (sequence as u32 % SEQUENCES)
}

/// Writes the stamp of one message into a body.
#[inline]
pub(crate) fn stamp(body: &mut [u8], producer: usize, sequence: u64) {
    let word = word(producer, sequence);
    let is_long = body.len() >= 8;
    if let Some(first) = body.first_chunk_mut() {
        *first = word.to_le_bytes();
    }
    if let Some(last) = body.last_chunk_mut().filter(|_| is_long) {
        *last = (word ^ TURN).to_le_bytes();
    }
}

/// The stamp's word, if the stamp is whole.
#[inline]
fn read(body: &[u8]) -> Option<u32> {
    let word = u32::from_le_bytes(*body.first_chunk()?);
    if body.len() < 8 {
        return Some(word);
    }
    let last = u32::from_le_bytes(*body.last_chunk()?);
    (last == word ^ TURN).then_some(word)
}

/// Whether this is the body of this message of producer 0.
#[inline]
pub(crate) fn is_intact(body: &[u8], size: usize, sequence: u64) -> bool {
    body.len() == size && read(body) == Some(word(0, sequence))
}

/// A body of producer 0 that is stamped when it is encoded, so that no thread keeps a copy.
pub(crate) struct Stamped<'a> {
    pub(crate) template: &'a [u8],
    pub(crate) sequence: u64,
}

impl IntoBody for Stamped<'_> {
    fn codec(&self) -> CodecId {
        CodecId::BYTES
    }

    fn bytes<'a>(&'a self, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        scratch.extend_from_slice(self.template);
        stamp(scratch, 0, self.sequence);
        Ok(scratch)
    }
}

/// Checks the messages of one connection, whose handlers run one after the other: loads and
/// stores are enough.
pub(crate) struct Checker {
    size: usize,
    next: [AtomicU32; PRODUCERS],
    count: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

impl Checker {
    pub(crate) fn new(size: usize) -> Self {
        Checker {
            size,
            next: Default::default(),
            count: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        }
    }

    /// Checks a message; the answer is how many there were.
    #[inline]
    pub(crate) fn check(&self, body: &[u8]) -> u64 {
        let count = add(&self.count, 1);
        add(&self.bytes, body.len() as u64);
        if body.len() != self.size || !self.is_next(body) {
            add(&self.errors, 1);
        }
        count
    }

    fn is_next(&self, body: &[u8]) -> bool {
        let Some(word) = read(body) else {
            return false;
        };
        let Some(next) = self.next.get((word >> SEQUENCE_BITS) as usize) else {
            return false;
        };
        let sequence = word % SEQUENCES;
        let expected = next.load(Relaxed);
        next.store((sequence + 1) % SEQUENCES, Relaxed);
        sequence == expected
    }

    /// What the sender is told: count, bytes and errors.
    pub(crate) fn acknowledgement(&self) -> [u8; 24] {
        let mut body = [0; 24];
        let figures = [&self.count, &self.bytes, &self.errors];
        for (place, figure) in body.chunks_exact_mut(8).zip(figures) {
            place.copy_from_slice(&figure.load(Relaxed).to_le_bytes());
        }
        body
    }
}

#[inline]
fn add(figure: &AtomicU64, more: u64) -> u64 {
    let sum = figure.load(Relaxed) + more;
    figure.store(sum, Relaxed);
    sum
}

/// The errors that an acknowledgement shows: those that it counts, and a wrong count or size.
pub(crate) fn errors_shown(acknowledgement: &[u8], count: u64, size: usize) -> u64 {
    let mut figures = acknowledgement
        .chunks_exact(8)
        .filter_map(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?)));
    match (figures.next(), figures.next(), figures.next()) {
        (Some(messages), Some(bytes), Some(errors)) => {
            errors + u64::from((messages, bytes) != (count, count * size as u64))
        }
        _ => 1,
    }
}
