//! What became of the messages: counts that both sides agree on.

use byteorder::{ByteOrder, LittleEndian};

use crate::stats::Count;

fn most(a: Count, b: Count) -> Count {
    Count {
        messages: a.messages.max(b.messages),
        bytes: a.bytes.max(b.bytes),
    }
}

fn least(a: Count, b: Count) -> Count {
    Count {
        messages: a.messages.min(b.messages),
        bytes: a.bytes.min(b.bytes),
    }
}

/// The body of a pong or goodbye.
pub(crate) fn encode_count(count: Count) -> [u8; 16] {
    let mut body = [0; 16];
    LittleEndian::write_u64(&mut body[..8], count.messages);
    LittleEndian::write_u64(&mut body[8..], count.bytes);
    body
}

/// Reads the body of a pong or goodbye; bytes beyond the counts are for later versions.
pub(crate) fn decode_count(body: &[u8]) -> Option<Count> {
    let counts = body.first_chunk::<16>()?;
    Some(Count {
        messages: LittleEndian::read_u64(&counts[..8]),
        bytes: LittleEndian::read_u64(&counts[8..]),
    })
}

/// What the peer has confirmed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivery {
    confirmed: Count,
}

impl Delivery {
    /// The peer says how much it has received.
    pub(crate) fn confirm(&mut self, received: Count) {
        self.confirmed = most(self.confirmed, received);
    }

    /// What is certain of `written`: a peer cannot confirm more than was written.
    pub(crate) fn confirmed(&self, written: Count) -> Count {
        least(self.confirmed, written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(messages: u64, bytes: u64) -> Count {
        Count { messages, bytes }
    }

    #[test]
    fn confirmations_only_grow_and_never_pass_what_was_written() {
        let mut delivery = Delivery::default();
        delivery.confirm(count(5, 500));
        delivery.confirm(count(3, 300));
        assert_eq!(delivery.confirmed(count(10, 1000)), count(5, 500));
        assert_eq!(delivery.confirmed(count(4, 400)), count(4, 400));
    }

    #[test]
    fn a_count_survives_its_encoding() {
        let sent = count(u64::MAX, 7);
        assert_eq!(decode_count(&encode_count(sent)), Some(sent));
        assert_eq!(decode_count(&[0; 15]), None);
    }
}
