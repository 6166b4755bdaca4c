//! What a sender refuses: a message that its reader would not admit.

use super::native::handshake::PeerLimits;
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::message::{MessageRef, Route};

/// What the peer admits. Where it announces no limit, its own are taken to be like this side's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits<'l> {
    pub(crate) own: &'l Limits,
    pub(crate) peer: PeerLimits,
}

impl SendLimits<'_> {
    /// Appends the frame of a message that the peer admits; on error nothing was appended.
    #[inline]
    pub(crate) fn encode(
        &self,
        message: &MessageRef<'_>,
        out: &mut Vec<u8>,
        encode: impl FnOnce(&MessageRef<'_>, &mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_message(message)?;
        let start = out.len();
        encode(message, out)
            .and_then(|()| self.check_frame(out.len() - start))
            .inspect_err(|_| out.truncate(start))
    }

    #[inline]
    pub(crate) fn check_message(&self, message: &MessageRef<'_>) -> Result<(), Error> {
        self.check_body(message.body.len())?;
        if let Route::Name(name) = message.route {
            let most = self.own.route_name_bytes;
            check(
                "bytes of a route name",
                name.len(),
                "route_name_bytes",
                most,
            )?;
        }
        if !message.metadata.is_empty() {
            let bytes = message.metadata.encoded_len();
            let most = self.peer.metadata_bytes;
            check("bytes of metadata", bytes, "metadata_bytes", most)?;
            let pairs = message.metadata.iter().count();
            let most = self.own.metadata_pairs;
            check("metadata pairs", pairs, "metadata_pairs", most)?;
        }
        Ok(())
    }

    pub(crate) fn check_frame(&self, bytes: usize) -> Result<(), Error> {
        check(
            "bytes of a frame",
            bytes,
            "frame_bytes",
            self.peer.frame_bytes,
        )
    }

    pub(crate) fn check_body(&self, bytes: usize) -> Result<(), Error> {
        check("bytes of a body", bytes, "body_bytes", self.peer.body_bytes)
    }
}

/// A limit, named where it is passed.
#[inline]
fn check(what: &str, size: usize, limit: &str, most: u32) -> Result<(), Error> {
    if size <= most as usize {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::TooLarge,
        format!("{size} {what} pass limits.{limit} = {most} of the peer"),
    ))
}
