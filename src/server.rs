//! The server: listeners, the sessions they accept, and the end of both.

mod accept;
mod admission;
mod builder;
mod refusal;

use std::collections::HashSet;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use socket2::Socket;

use crate::address::{Address, UnixAddress, UnixName};
use crate::config::{Config, deadline};
use crate::connection::listen::Listener;
use crate::connection::{
    CloseReason, CloseReport, OpenSocket, Owner, before_wait, is_handling, last_steps, socket,
};
use crate::error::{Error, ErrorKind};
use crate::hub::Hub;
use crate::protocol::Framing;
use crate::records::Topic;
use crate::router::{Handlers, Workers};
use crate::session::{Inbox, Session, Source};
use crate::stats::{Count, Stats};
use crate::status::Status;

use self::admission::Admission;
pub use self::builder::ServerBuilder;
use self::refusal::Refusals;

/// A hook that may refuse a connection by its address.
type AcceptHook = Box<dyn Fn(&Address) -> Result<(), Status> + Send + Sync>;

/// Where a server is that listens nowhere.
const NOWHERE: &Address = &Address::Unix(UnixAddress {
    name: UnixName::Unnamed,
    process: None,
});

/// A listening server and its sessions.
///
/// Dropping it stops accepting and begins to close all sessions, without waiting;
/// [`shutdown`](Server::shutdown) waits.
#[doc(alias = "NTcpListener")]
#[doc(alias = "rep")]
#[doc(alias = "listener")]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    hub: Hub,
    handlers: Arc<Handlers>,
    /// What the sessions share below.
    owner: Arc<Owner>,
    config: Arc<Config>,
    framing: Framing,
    accept_hook: Option<AcceptHook>,
    admission: Arc<Admission>,
    refusals: Arc<Refusals>,
    inbox: Option<Inbox>,
    addresses: Vec<Address>,
    stopping: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

/// What a stop has to end.
#[derive(Default)]
struct State {
    listeners: Vec<Arc<Listener>>,
    /// Sockets in their handshake.
    greeting: Vec<Arc<Socket>>,
    accept_threads: usize,
    /// Keeps the inbox open until the stop; newcomers get their own.
    inbox: Option<Source>,
    /// Likewise the pool, whose threads end after it and the sessions.
    pool: Option<Arc<Workers>>,
    is_down: bool,
}

impl Server {
    /// Sets handlers, limits and options before listening.
    #[doc(alias = "NewPeer")]
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The sessions.
    pub fn hub(&self) -> &Hub {
        &self.shared.hub
    }

    /// Serves on a listener that was opened elsewhere, without handlers: a server that only
    /// pushes and calls. See [`ServerBuilder::from_listener`].
    ///
    /// # Errors
    /// As [`ServerBuilder::from_listener`].
    pub fn from_listener(listener: impl Into<OwnedFd>) -> Result<Server, Error> {
        Server::builder().from_listener(listener)
    }

    /// Serves a connected stream as if it had been accepted: a `TcpStream`, a `UnixStream` (of
    /// a pair, say), or an inherited descriptor. The handshake runs on the session's own
    /// thread, so this does not wait for the peer; `on_connected` tells of the session, and
    /// `on_error` of a handshake that failed.
    ///
    /// # Errors
    /// `InvalidInput` for what is not a connected stream socket, `Io` if it cannot be set up,
    /// `Overloaded` or `Refused` as for an accepted connection, `Closed` after the end of the
    /// server.
    #[doc(alias = "ServeConn")]
    pub fn serve(&self, stream: impl Into<OwnedFd>) -> Result<(), Error> {
        if self.shared.is_stopping() {
            return Err(Error::new(ErrorKind::Closed, "the server is shut down"));
        }
        let config = &self.shared.config;
        let (socket, peer) = socket::adopt_stream(stream.into(), &config.socket)?;
        self.shared.admit(socket, peer, config)
    }

    /// Where the messages without a handler are received, of all sessions. It ends once the
    /// server is shut down or dropped and all its sessions have ended.
    ///
    /// # Errors
    /// `InvalidInput` if the builder was not asked for one.
    pub fn inbox(&self) -> Result<Inbox, Error> {
        self.shared.inbox.clone().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                "this server has no inbox: ServerBuilder::inbox asks for one",
            )
        })
    }

    /// The first address it listens on; with port 0 asked for, the port that was given. An
    /// unnamed Unix socket if it listens nowhere.
    pub fn local_address(&self) -> &Address {
        self.local_addresses().first().unwrap_or(NOWHERE)
    }

    /// All addresses it listens on.
    pub fn local_addresses(&self) -> &[Address] {
        &self.shared.addresses
    }

    /// The sockets it listens on, in the order of the addresses; none once it is shut down.
    pub fn listeners(&self) -> Vec<OpenSocket> {
        let state = self.shared.state.lock();
        let sockets = state.listeners.iter().map(|listener| &listener.socket);
        sockets.cloned().map(OpenSocket::new).collect()
    }

    /// The figures of all sessions together, those that are over included.
    pub fn stats(&self) -> Stats {
        self.shared.hub.stats()
    }

    /// Blocks until the server is shut down by another thread.
    pub fn wait(&self) {
        let mut state = self.shared.state.lock();
        while !state.is_down {
            self.shared.changed.wait(&mut state);
        }
    }

    /// Stops accepting, lets the sessions finish what runs and say goodbye, and waits for them,
    /// at most `limit`; then cuts the rest off, which takes up to 100 ms more where a handler
    /// does not return. New calls are answered `GOING_AWAY` meanwhile.
    ///
    /// # Errors
    /// `WouldDeadlock` in a handler, whose own session could not end; the shutdown has begun
    /// all the same.
    pub fn shutdown(&self, limit: Duration) -> Result<ShutdownReport, Error> {
        let mut sessions = self.shared.begin_stop(limit);
        let leaving = self.shared.hub.leaving();
        if is_handling() {
            return Err(Error::new(
                ErrorKind::WouldDeadlock,
                "a handler cannot wait for the end of its own server; the shutdown has begun",
            ));
        }
        before_wait()?;
        let limit_end = deadline(Instant::now(), limit);
        self.shared.wait_greeted(limit_end);
        let known: HashSet<_> = sessions.iter().map(Session::id).collect();
        let late_comers = self.shared.hub.sessions().into_iter();
        sessions.extend(late_comers.filter(|session| !known.contains(&session.id())));
        let mut report = ShutdownReport::default();
        let mut late = Vec::new();
        for session in &sessions {
            match session.connection.wait_ended(limit_end) {
                Some(ended) => report.add(&ended),
                None => late.push(session),
            }
        }
        for session in &leaving {
            session.connection.wait_ended(limit_end);
        }
        for session in &late {
            session.connection.abort();
        }
        let until = last_steps(limit_end);
        for session in late {
            report.add(&session.connection.cut(until));
        }
        for session in sessions.into_iter().chain(leaving) {
            session.connection.wait_threads(until);
        }
        self.shared.finish_stop(until);
        let handlers = &self.shared.handlers;
        handlers.record(Topic::ShutDown, format_args!("shut down: {report}"));
        Ok(report)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.begin_stop(self.shared.config.timeouts.close);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addresses", &self.shared.addresses)
            .field("sessions", &self.shared.hub.len())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Begins to close everything; the answer is the sessions that were open.
    fn begin_stop(&self, limit: Duration) -> Vec<Session> {
        self.stopping.store(true, Ordering::SeqCst);
        let mut state = self.state.lock();
        // The accept threads have their own handles.
        let (inbox, pool) = (state.inbox.take(), state.pool.take());
        for listener in std::mem::take(&mut state.listeners) {
            listener.stop();
        }
        for socket in &state.greeting {
            // This wakes a thread that waits in read.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        drop(state);
        drop((inbox, pool));
        self.changed.notify_all();
        let sessions = self.hub.sessions();
        for session in &sessions {
            session.connection.begin_close(limit);
        }
        sessions
    }

    /// Waits for the handshakes, whose sockets are woken already: each comes to nothing, or to
    /// a session.
    fn wait_greeted(&self, until: Option<Instant>) {
        let mut state = self.state.lock();
        while !state.greeting.is_empty() {
            match until {
                Some(until) => {
                    if self.changed.wait_until(&mut state, until).timed_out() {
                        return;
                    }
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Waits for the accept threads, whose listeners are woken already.
    fn finish_stop(&self, until: Instant) {
        let mut state = self.state.lock();
        while state.accept_threads > 0 || !state.greeting.is_empty() {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        state.is_down = true;
        drop(state);
        self.changed.notify_all();
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

/// What became of a server's sessions at its shutdown; the counts are sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Sessions that were open.
    pub sessions: usize,
    /// Those of them that ended with goodbyes on both sides.
    pub clean: usize,
    /// Accepted here and never handed to the kernel.
    pub not_written: Count,
    /// Written, and not confirmed by the peer.
    pub unconfirmed: Count,
    /// Received by the peers.
    pub confirmed: Count,
    /// Dropped and never accepted, as their peers read too slowly.
    pub dropped: Count,
}

impl ShutdownReport {
    fn add(&mut self, report: &CloseReport) {
        self.sessions += 1;
        self.clean += usize::from(report.reason == CloseReason::Clean);
        self.not_written.add(report.not_written);
        self.unconfirmed.add(report.unconfirmed);
        self.confirmed.add(report.confirmed);
        self.dropped.add(report.dropped);
    }
}

impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} sessions closed cleanly: confirmed {}, unconfirmed {}, not written {}",
            self.clean, self.sessions, self.confirmed, self.unconfirmed, self.not_written
        )?;
        match self.dropped.messages {
            0 => Ok(()),
            _ => write!(f, ", dropped {}", self.dropped),
        }
    }
}
