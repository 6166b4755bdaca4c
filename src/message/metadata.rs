//! Ordered key and value pairs, kept as the native format writes them.
//!
//! A pair is an extension item: type `0x02`, length `u16` of what follows, key length `u16`,
//! key, value; all little-endian. Keeping the encoded form makes sending a copy and reading
//! free of allocations.

use byteorder::{ByteOrder, LittleEndian};

use crate::error::{Error, ErrorKind};

/// The type of an extension item that holds a metadata pair.
pub(crate) const PAIR: u8 = 0x02;

/// Ordered key and value pairs that travel with a message; keys may repeat.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    encoded: Vec<u8>,
    pairs: usize,
}

impl Metadata {
    /// No pairs.
    pub fn new() -> Self {
        Metadata::default()
    }

    /// Appends a pair.
    ///
    /// # Errors
    /// `TooLarge` if key and value together pass 65,533 bytes.
    pub fn push(&mut self, key: &str, value: &str) -> Result<(), Error> {
        let payload = 2 + key.len() + value.len();
        let Ok(payload) = u16::try_from(payload) else {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("a metadata pair of {payload} bytes passes the format's 65,535"),
            ));
        };
        let mut head = [PAIR, 0, 0, 0, 0];
        LittleEndian::write_u16(&mut head[1..3], payload);
        LittleEndian::write_u16(&mut head[3..5], key.len() as u16);
        self.encoded.extend_from_slice(&head);
        self.encoded.extend_from_slice(key.as_bytes());
        self.encoded.extend_from_slice(value.as_bytes());
        self.pairs += 1;
        Ok(())
    }

    /// The first value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.as_ref().get(key)
    }

    /// The pairs in their order.
    pub fn iter(&self) -> MetadataIter<'_> {
        self.as_ref().iter()
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.pairs
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.pairs == 0
    }

    /// A view of the pairs.
    pub fn as_ref(&self) -> MetadataRef<'_> {
        MetadataRef {
            encoded: &self.encoded,
        }
    }
}

impl<'a> IntoIterator for &'a Metadata {
    type Item = (&'a str, &'a str);
    type IntoIter = MetadataIter<'a>;

    fn into_iter(self) -> MetadataIter<'a> {
        self.iter()
    }
}

/// Metadata that borrows from the frame it came in.
#[derive(Clone, Copy, Default)]
pub struct MetadataRef<'a> {
    /// Extension items, among which those of type [`PAIR`] are the pairs.
    encoded: &'a [u8],
}

impl<'a> MetadataRef<'a> {
    /// No pairs.
    pub const EMPTY: MetadataRef<'static> = MetadataRef { encoded: &[] };

    /// The pairs in a block of extension items.
    pub(crate) fn from_items(encoded: &'a [u8]) -> Self {
        MetadataRef { encoded }
    }

    /// The first value of a key.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.iter().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    /// The pairs in their order.
    pub fn iter(&self) -> MetadataIter<'a> {
        MetadataIter {
            items: Items::new(self.encoded),
        }
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// An owned copy of the pairs.
    pub fn to_metadata(self) -> Metadata {
        let mut metadata = Metadata::new();
        for (key, value) in self.iter() {
            // A pair that came in a frame fits its own format.
            let _ = metadata.push(key, value);
        }
        metadata
    }

    /// The bytes the pairs take in a frame.
    #[inline]
    pub(crate) fn encoded_len(&self) -> usize {
        if self.encoded.is_empty() {
            return 0;
        }
        self.iter().map(|(k, v)| 5 + k.len() + v.len()).sum()
    }
}

/// The pairs of a [`Metadata`] in their order.
#[derive(Clone)]
pub struct MetadataIter<'a> {
    items: Items<'a>,
}

impl<'a> Iterator for MetadataIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (kind, payload) = self.items.next()?;
            if kind == PAIR {
                return pair(payload);
            }
        }
    }
}

/// Reads the payload of a [`PAIR`] item; `None` if it is malformed.
pub(crate) fn pair(payload: &[u8]) -> Option<(&str, &str)> {
    let (head, rest) = payload.split_first_chunk::<2>()?;
    let (key, value) = rest.split_at_checked(usize::from(u16::from_le_bytes(*head)))?;
    Some((
        std::str::from_utf8(key).ok()?,
        std::str::from_utf8(value).ok()?,
    ))
}

/// Walks extension items: type `u8`, length `u16`, payload. Stops at the first that is cut.
#[derive(Clone)]
pub(crate) struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Items<'a> {
    pub(crate) fn new(block: &'a [u8]) -> Self {
        Items { rest: block }
    }

    /// What no whole item covers; empty after the last item of a well-formed block.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.rest.split_first_chunk::<3>()?;
        let [kind, low, high] = *head;
        let (payload, rest) =
            rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
        self.rest = rest;
        Some((kind, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_their_order_and_may_repeat() {
        let mut metadata = Metadata::new();
        metadata.push("a", "1").unwrap();
        metadata.push("b", "").unwrap();
        metadata.push("a", "2").unwrap();
        let pairs: Vec<_> = metadata.iter().collect();
        assert_eq!(pairs, [("a", "1"), ("b", ""), ("a", "2")]);
        assert_eq!(metadata.get("a"), Some("1"));
        assert_eq!(metadata.as_ref().to_metadata(), metadata);
    }

    #[test]
    fn a_pair_that_cannot_be_described_is_refused() {
        let long = "x".repeat(65_534);
        let error = Metadata::new().push("", &long).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
    }
}
