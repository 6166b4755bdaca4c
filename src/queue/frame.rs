//! What the queue holds: frames in wire format.

use std::sync::Arc;

/// Frames up to this size lie inside the list's slots; beyond it an allocation is made.
const SMALL: usize = 104;

/// One frame in wire format, or a run of gathered ones.
pub(crate) enum Frame {
    /// A frame that fits the list's slot.
    Small {
        length: u8,
        is_message: bool,
        bytes: [u8; SMALL],
    },
    /// A frame of its own allocation.
    Large { bytes: Box<[u8]>, is_message: bool },
    /// A frame that several queues share: a broadcast.
    Shared { bytes: Arc<[u8]> },
    /// Messages that a reader gathered; `ends` are their ends in `bytes`.
    Gathered { bytes: Vec<u8>, ends: Vec<u32> },
}

impl Frame {
    /// Copies one encoded frame.
    pub(crate) fn copy(encoded: &[u8], is_message: bool) -> Self {
        let mut bytes = [0; SMALL];
        match bytes.get_mut(..encoded.len()) {
            Some(slot) => {
                slot.copy_from_slice(encoded);
                Frame::Small {
                    length: encoded.len() as u8,
                    is_message,
                    bytes,
                }
            }
            None => Frame::Large {
                bytes: encoded.into(),
                is_message,
            },
        }
    }

    /// The wire bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Frame::Small { length, bytes, .. } => {
                bytes.get(..usize::from(*length)).unwrap_or_default()
            }
            Frame::Large { bytes, .. } => bytes,
            Frame::Shared { bytes } => bytes,
            Frame::Gathered { bytes, .. } => bytes,
        }
    }

    /// How many messages it holds; control frames are none.
    pub(crate) fn messages(&self) -> usize {
        match self {
            Frame::Small { is_message, .. } | Frame::Large { is_message, .. } => {
                usize::from(*is_message)
            }
            Frame::Shared { .. } => 1,
            Frame::Gathered { ends, .. } => ends.len(),
        }
    }
}
