//! The client: the session that this side has dialled, and perhaps those that follow it.
//!
//! - `builder`: what it is made of, and its first session; `setup`, how one address is dialled
//! - `line`: what its handles and its thread share; `carrying`, messages on their way; `holding`,
//!   those that wait for a session
//! - `dialling`: the thread; `dispatch`, what the sessions tell
//! - `state`, `totals`: what is told of it

mod builder;
mod carrying;
mod dialling;
mod dispatch;
mod holding;
mod line;
mod setup;
mod state;
mod totals;

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::config::deadline;
use crate::connection::{CloseReport, OpenSocket, before_wait, last_steps};
use crate::error::{Error, ErrorKind};
use crate::message::SessionId;
use crate::session::{Inbox, Session, calling_methods};
use crate::stats::{Count, Stats};
use crate::status::Status;

pub use self::builder::ClientBuilder;
use self::line::{Line, closed};
pub use self::state::{ClientState, StateChange};
pub use self::totals::Totals;

/// A peer that this side has dialled: push to it and call it.
///
/// It is over with its session, unless it [reconnects](ClientBuilder::reconnect): then it
/// follows from one [`Session`] to the next, and what is sent goes to the one that there is.
///
/// It is a cheap handle, and clones are the same client. Dropping the last one writes what the
/// system takes at once, says goodbye and closes the writing half, without waiting;
/// [`shutdown`](Client::shutdown) waits.
#[derive(Clone)]
#[doc(alias = "SingleConnection")]
#[doc(alias = "req")]
#[doc(alias = "dealer")]
#[doc(alias = "dialer")]
pub struct Client {
    handle: Arc<Handle>,
}

struct Handle {
    line: Arc<Line>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The calls in it are answered with that, while anything can be said.
        let inbox = self.line.desk.lock().inbox.take();
        drop(inbox);
        for session in self.line.close() {
            session.connection.leave();
        }
    }
}

impl Client {
    /// Connects with all defaults and no handlers; see [`ClientBuilder::connect`].
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub fn connect(address: impl ToString) -> Result<Client, Error> {
        Client::builder().connect(address)
    }

    /// Connects over a stream that was opened elsewhere, with all defaults and no handlers; see
    /// [`ClientBuilder::from_stream`].
    ///
    /// # Errors
    /// As [`ClientBuilder::from_stream`].
    pub fn from_stream(stream: impl Into<OwnedFd>) -> Result<Client, Error> {
        Client::builder().from_stream(stream)
    }

    /// Sets handlers, limits and options before connecting.
    #[doc(alias = "NewPeer")]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    #[inline]
    fn callee(&self) -> &Line {
        &self.handle.line
    }

    calling_methods!();

    /// The session by itself: a handle that does not keep it open, and stays with it. While a
    /// client that reconnects is not connected, it is the one that was lost last; before the
    /// first one, a session with number 0 that has ended.
    ///
    /// Closing it does not close such a client, which then dials again.
    pub fn session(&self) -> Session {
        self.callee().session()
    }

    /// The number of the [session](Client::session).
    pub fn id(&self) -> SessionId {
        self.callee().current.load().session.id()
    }

    /// The address of the [session's](Client::session) peer.
    pub fn peer_address(&self) -> Address {
        self.session().peer_address().clone()
    }

    /// This side's address in the [session](Client::session).
    pub fn local_address(&self) -> Address {
        self.session().local_address().clone()
    }

    /// Whether nothing can be sent any more: of a client that reconnects, once it was closed or
    /// has stopped.
    pub fn is_closed(&self) -> bool {
        let line = self.callee();
        match line.reconnects() {
            true => {
                let desk = line.desk.lock();
                desk.closed || desk.state == ClientState::Stopped
            }
            false => self.session().is_closed(),
        }
    }

    /// Where it stands. A client that does not reconnect is `Connected`, and at the end `Stopped`.
    pub fn state(&self) -> ClientState {
        self.callee().desk.lock().state
    }

    /// Waits until there is a session to use, at most `limit`.
    ///
    /// # Errors
    /// `Timeout`, or `Closed` if the client was closed or has stopped: with the reason as source.
    /// Of a client that does not reconnect, whatever has ended its session.
    /// `WouldDeadlock` where the next session would wait for this very thread: in a handler or
    /// hook of this client; `WouldDeadlock` or `Overloaded` in another handler that cannot hand
    /// its reading over.
    pub fn wait_connected(&self, limit: Duration) -> Result<Session, Error> {
        let line = self.callee();
        let until = deadline(Instant::now(), limit);
        loop {
            let standing = line.current.load_full();
            let is_up = standing.down.is_none();
            if is_up && !standing.session.is_closed() {
                return Ok(standing.session.clone());
            }
            if self.is_closed() {
                return Err(match &standing.down {
                    Some(error) => error.clone(),
                    None => standing.session.connection.closed_error(),
                });
            }
            if line.is_behind_this_thread() {
                return Err(Error::new(
                    ErrorKind::WouldDeadlock,
                    "the next session of the client waits for this thread",
                ));
            }
            before_wait()?;
            let has_changed = line.wait(until, |desk| {
                let now = line.current.load();
                desk.closed || desk.state == ClientState::Stopped || !Arc::ptr_eq(&now, &standing)
            });
            if !has_changed {
                let message = "the client was not connected within the time limit";
                return Err(match line.desk.lock().reason.clone() {
                    Some(reason) => Error::with_source(ErrorKind::Timeout, message, reason),
                    None => Error::new(ErrorKind::Timeout, message),
                });
            }
        }
    }

    /// Dials at once, if the client waits before its next attempt; begins anew, if it has
    /// stopped. A client that is connected goes on.
    ///
    /// # Errors
    /// `Closed` after the client was closed, `InvalidInput` if it does not
    /// [reconnect](ClientBuilder::reconnect).
    pub fn reconnect_now(&self) -> Result<(), Error> {
        let line = self.callee();
        if !line.reconnects() {
            let message = "this client does not reconnect: ClientBuilder::reconnect lets it";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let is_connected = !self.session().is_closed();
        let mut desk = line.desk.lock();
        if desk.closed {
            return Err(closed());
        }
        desk.hurry = !is_connected;
        let ended = match desk.state {
            ClientState::Stopped => line.begin_anew(&mut desk),
            _ => None,
        };
        drop(desk);
        drop(ended);
        line.changed.notify_all();
        Ok(())
    }

    /// The pushes that are [held](ClientBuilder::hold) now, and their bytes.
    pub fn held(&self) -> Count {
        self.callee().desk.lock().held.count()
    }

    /// What became of everything that was sent, over all sessions. Of the running one `not
    /// written` is known at its end.
    pub fn totals(&self) -> Totals {
        self.callee().desk.lock().sums.totals()
    }

    /// What was counted so far, over all sessions.
    pub fn stats(&self) -> Stats {
        let session = self.session();
        let desk = self.callee().desk.lock();
        desk.sums.stats(&session, Instant::now())
    }

    /// The socket underneath; `None` while there is none.
    pub fn socket(&self) -> Option<OpenSocket> {
        self.session().socket()
    }

    /// Where the messages without a handler are received, of all sessions. It ends with the
    /// session, or when a client that reconnects stops; one that begins anew has a new one.
    ///
    /// # Errors
    /// `InvalidInput` if the builder was not asked for one.
    pub fn inbox(&self) -> Result<Inbox, Error> {
        self.callee().desk.lock().inbox.clone().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                "this client has no inbox: ClientBuilder::inbox asks for one",
            )
        })
    }

    /// Begins to close and returns at once; see [`Session::close`]. Nothing is dialled any more.
    pub fn close(&self) {
        for session in self.callee().close() {
            session.close();
        }
    }

    /// Begins to close, and tells the peer why; see [`Session::close_with`]. Nothing is dialled
    /// any more.
    #[doc(alias = "disconnect")]
    pub fn close_with(&self, reason: Status) {
        for session in self.callee().close() {
            session.close_with(reason.clone());
        }
    }

    /// Ends the session at once, and dials no more; what was not written is lost.
    pub fn abort(&self) {
        for session in self.callee().close() {
            session.abort();
        }
    }

    /// Closes and waits for the end, at most `limit`; then cuts the rest off. The report is that
    /// of the last [session](Client::session); [`totals`](Client::totals) has them all.
    ///
    /// # Errors
    /// As [`Session::shutdown`].
    #[doc(alias = "linger")]
    pub fn shutdown(&self, limit: Duration) -> Result<CloseReport, Error> {
        let line = self.callee();
        let until = deadline(Instant::now(), limit);
        let mut sessions = line.close().into_iter();
        let last = sessions.next().unwrap_or_else(|| line.session());
        for newcomer in sessions {
            newcomer.close();
        }
        let report = last.shutdown(limit)?;
        line.wait_finished(last_steps(until));
        Ok(report)
    }

    /// Waits until the session has ended, whoever ends it, at most `limit`; then `None`. Of a
    /// client that reconnects, until it has stopped; the report is that of the last
    /// [session](Client::session).
    ///
    /// In a handler of this very client, which cannot end before it returns, it does not wait.
    pub fn wait_closed(&self, limit: Duration) -> Option<CloseReport> {
        let line = self.callee();
        if !line.reconnects() {
            return self.session().wait_closed(limit);
        }
        match line.wait_stopped(limit) {
            true => self.session().wait_closed(Duration::ZERO),
            false => None,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.session()).finish()
    }
}
