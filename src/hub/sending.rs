//! One message to many sessions: encoded once, never waiting.

use std::sync::Arc;

use super::Hub;
use crate::codec::IntoBody;
use crate::error::Error;
use crate::message::{Kind, MessageRef, Route};
use crate::protocol::Framing;
use crate::queue::scratch;
use crate::session::Session;

/// How a message to many went: each session it was meant for is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// Sessions that have it in their queue.
    pub queued: usize,
    /// Sessions whose queue was full, or whose peer does not admit it. Those with
    /// [`SlowPeer::Disconnect`](crate::SlowPeer::Disconnect) have ended if the queue was full.
    pub full: usize,
    /// Sessions that were closed.
    pub closed: usize,
}

/// To many: the message is encoded once, and no call waits. A session whose queue is full does
/// not get it, and is counted.
impl Hub {
    /// Pushes to all sessions.
    ///
    /// # Errors
    /// Those of encoding; then nobody got it.
    #[doc(alias = "pub")]
    #[doc(alias = "publish")]
    #[doc(alias = "publisher")]
    pub fn broadcast<'r>(
        &self,
        route: impl Into<Route<'r>>,
        body: impl IntoBody,
    ) -> Result<Sent, Error> {
        let push = Push::encode(self.shared.framing, route.into(), &body)?;
        Ok(push.send(self.sessions()))
    }

    /// Pushes to all sessions for which `is_meant` says so: all but one, say.
    ///
    /// # Errors
    /// Those of encoding; then nobody got it.
    pub fn broadcast_if<'r>(
        &self,
        route: impl Into<Route<'r>>,
        body: impl IntoBody,
        mut is_meant: impl FnMut(&Session) -> bool,
    ) -> Result<Sent, Error> {
        let push = Push::encode(self.shared.framing, route.into(), &body)?;
        let sessions = self.sessions().into_iter();
        Ok(push.send(sessions.filter(|session| is_meant(session))))
    }

    /// Pushes to the sessions of a group; to nobody, if there is no such group.
    ///
    /// # Errors
    /// Those of encoding; then nobody got it.
    pub fn push_to_group<'r>(
        &self,
        group: &str,
        route: impl Into<Route<'r>>,
        body: impl IntoBody,
    ) -> Result<Sent, Error> {
        let push = Push::encode(self.shared.framing, route.into(), &body)?;
        Ok(push.send(self.group(group)))
    }
}

/// A push as all its receivers get it.
struct Push {
    frame: Arc<[u8]>,
    body_bytes: usize,
}

impl Push {
    fn encode(framing: Framing, route: Route<'_>, body: &impl IntoBody) -> Result<Push, Error> {
        scratch::with(|buffer| {
            let codec = body.codec();
            let bytes = body.bytes(buffer)?;
            let message = MessageRef::new(Kind::Push, route, 0, codec, bytes);
            let mut frame = Vec::new();
            framing.encode(&message, &mut frame)?;
            Ok(Push {
                frame: frame.into(),
                body_bytes: bytes.len(),
            })
        })
    }

    fn send(&self, sessions: impl IntoIterator<Item = Session>) -> Sent {
        let mut sent = Sent::default();
        for session in sessions {
            match session.connection.send_shared(&self.frame, self.body_bytes) {
                Ok(()) => sent.queued += 1,
                Err(error) if error.is_closed() => sent.closed += 1,
                Err(_) => sent.full += 1,
            }
        }
        sent
    }
}
