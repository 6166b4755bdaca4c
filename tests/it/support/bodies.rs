//! Numbers from a fixed seed, and bodies that can be told from any other.

/// A reproducible row of numbers (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A size up to `most`, small ones as likely as large ones.
    pub(crate) fn size(&mut self, most: usize) -> usize {
        let bits = u64::from(most.max(1).ilog2());
        let end = 1 << (self.below(bits + 1) + 1);
        (self.below(end) as usize).min(most)
    }
}

/// The body that this author gives this message; every byte follows from the three numbers.
pub(crate) fn body(author: u32, number: u32, size: usize) -> Vec<u8> {
    let seed = u64::from(author) << 32 | u64::from(number);
    let mut random = Random::new(seed ^ (size as u64) << 17);
    let mut body = vec![0; size];
    for word in body.chunks_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
    }
    body
}

pub(crate) fn number(body: &[u8]) -> u32 {
    u32::from_le_bytes(body[..4].try_into().unwrap())
}
