//! What user code holds: a session with one peer, its requests, pending calls and responders.

mod call_bytes;
mod callee;
mod calling;
mod clock;
mod data;
mod inbox;
mod interceptor;
mod membership;
mod pending;
mod received;
mod request;
mod responder;
mod snapshot;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::codec::IntoBody;
use crate::config::{SlowPeer, deadline};
use crate::connection::{
    CloseReport, Connection, OpenSocket, before_wait, is_handler_of, last_steps,
};
use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, SessionId};
use crate::queue::scratch;
use crate::stats::Stats;
use crate::status::Status;

pub(crate) use self::callee::{Callee, Current, Standing, push};
pub(crate) use self::calling::calling_methods;
use self::data::Data;
use self::membership::Membership;
pub(crate) use call_bytes::CallBytes;
pub use inbox::Inbox;
pub(crate) use inbox::Source;
pub use interceptor::{Direction, Exchange, Interceptor, Outcome};
pub(crate) use interceptor::{Interceptors, Watched};
pub use pending::{Pending, Reply};
pub use received::Received;
pub use request::Request;
pub(crate) use responder::answer;
pub use responder::{Deferred, Responder};
pub use snapshot::SessionSnapshot;

/// One peer: push to it and call it. Both ends have the same powers.
///
/// It is a cheap handle: clone it, send it to other threads. A server's sessions are owned by
/// its [`Hub`](crate::Hub), a client's by its [`Client`](crate::Client); a handle keeps nothing
/// alive but memory. Handles are equal if they are of one session.
#[derive(Clone)]
#[doc(alias = "pair")]
#[doc(alias = "peer")]
#[doc(alias = "pipe")]
#[doc(alias = "socket")]
pub struct Session {
    pub(crate) connection: Arc<Connection>,
    attached: Arc<Attached>,
}

/// What belongs to a session and not to its connection.
struct Attached {
    interceptors: Interceptors,
    data: Data,
    membership: Membership,
    /// Bytes of calls that came to the inbox and are not answered, or wait in the pool.
    held_calls: AtomicUsize,
}

impl Session {
    /// The session over a connection; its other handles are clones of it.
    pub(crate) fn new(connection: Arc<Connection>, interceptors: Interceptors) -> Self {
        Session {
            connection,
            attached: Arc::new(Attached {
                interceptors,
                data: Data::default(),
                membership: Membership::default(),
                held_calls: AtomicUsize::new(0),
            }),
        }
    }

    /// The session's number: given by the server, and the same at both ends. 0 at a client
    /// whose protocol has no handshake.
    pub fn id(&self) -> SessionId {
        self.connection.id
    }

    /// The peer's address.
    pub fn peer_address(&self) -> &Address {
        &self.connection.peer
    }

    /// This side's address.
    pub fn local_address(&self) -> &Address {
        &self.connection.local
    }

    /// Whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.connection.is_over() || self.connection.is_closing()
    }

    calling_methods!();

    fn callee(&self) -> &Session {
        self
    }

    /// Begins to close and returns at once: what is queued is sent, goodbyes are exchanged,
    /// what the peer still sends is delivered. After `timeouts.close` the rest is cut off.
    pub fn close(&self) {
        self.connection
            .begin_close(self.connection.config.timeouts.close);
    }

    /// Begins to close as [`close`](Session::close) does, and tells the peer why: it finds the
    /// status in [`CloseReport::farewell`] and in the errors of what it still tries.
    ///
    /// The texts are cut after 512 characters each. A session that closes already goes on as it
    /// was, without the reason. Protocols without a goodbye (see [`protocol`](crate::protocol))
    /// close without telling it; this side's report has it all the same.
    #[doc(alias = "kick")]
    #[doc(alias = "disconnect")]
    pub fn close_with(&self, reason: Status) {
        self.begin_close_with(&reason);
    }

    /// Whether it was this call that began it.
    pub(crate) fn begin_close_with(&self, reason: &Status) -> bool {
        let limit = self.connection.config.timeouts.close;
        self.connection.begin_close_with(limit, Some(reason))
    }

    /// Closes and waits for the end, at most `limit`; then cuts the rest off.
    ///
    /// # Errors
    /// `WouldDeadlock` in a handler of this very session, which closes once the handler has
    /// returned; `WouldDeadlock` or `Overloaded` in another handler that cannot hand its reading
    /// over. Closing has begun all the same.
    #[doc(alias = "linger")]
    pub fn shutdown(&self, limit: Duration) -> Result<CloseReport, Error> {
        self.connection.begin_close(limit);
        if is_handler_of(&self.connection) {
            return Err(Error::new(
                ErrorKind::WouldDeadlock,
                "a handler cannot wait for the end of its own session; closing has begun",
            ));
        }
        before_wait()?;
        let limit_end = deadline(Instant::now(), limit);
        let ended = self.connection.wait_ended(limit_end);
        let until = last_steps(limit_end);
        let report = ended.unwrap_or_else(|| self.connection.cut(until));
        self.connection.wait_threads(until);
        Ok(report)
    }

    /// Waits until the session has ended, whoever ends it, at most `limit`; then `None`.
    ///
    /// In a handler of this very session, which cannot end before it returns, it does not wait.
    pub fn wait_closed(&self, limit: Duration) -> Option<CloseReport> {
        let until = match is_handler_of(&self.connection) || before_wait().is_err() {
            true => Some(Instant::now()),
            false => deadline(Instant::now(), limit),
        };
        self.connection.wait_ended(until)
    }

    /// Ends the session at once; what was not written is lost.
    pub fn abort(&self) {
        self.connection.abort();
    }

    /// The socket underneath; `None` once the session has ended.
    pub fn socket(&self) -> Option<OpenSocket> {
        self.connection.open_socket()
    }

    /// What happens to a push when the send queue is full.
    pub fn slow_peer(&self) -> SlowPeer {
        self.connection.slow_peer()
    }

    /// Sets what happens to a push when the send queue is full, in place of what the builder was
    /// given. It holds for pushes that find the queue full from now on; those that wait for room
    /// go on waiting.
    pub fn set_slow_peer(&self, policy: SlowPeer) {
        self.connection.set_slow_peer(policy);
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        self.connection.stats(Instant::now())
    }
}

/// Runs `send` with the encoded body.
fn with_bytes<R>(
    body: &impl IntoBody,
    send: impl FnOnce(CodecId, &[u8]) -> Result<R, Error>,
) -> Result<R, Error> {
    scratch::with(|buffer| send(body.codec(), body.bytes(buffer)?))
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id().0)
            .field("peer", &self.peer_address())
            .finish_non_exhaustive()
    }
}

impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.connection, &other.connection)
    }
}

impl Eq for Session {}
