//! The server: listeners, the sessions they accept, and the end of both.

mod accept;
mod admission;
mod refusal;

use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use socket2::Socket;

use crate::config::{Config, deadline};
use crate::connection::threads::{self, Places};
use crate::connection::{CloseReason, CloseReport, LAST_STEPS, before_wait, is_handling, socket};
use crate::error::{Error, ErrorKind};
use crate::hub::Hub;
use crate::protocol::Framing;
use crate::router::{Handlers, HandlersBuilder, handler_methods};
use crate::session::Session;
use crate::stats::{Count, Stats};
use crate::status::Status;

use self::admission::Admission;
use self::refusal::Refusals;

/// A hook that may refuse a connection by its address.
type AcceptHook = Box<dyn Fn(SocketAddr) -> Result<(), Status> + Send + Sync>;

/// A listening server and its sessions.
///
/// Dropping it stops accepting and begins to close all sessions, without waiting;
/// [`shutdown`](Server::shutdown) waits.
#[doc(alias = "listener")]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    hub: Hub,
    handlers: Arc<Handlers>,
    config: Arc<Config>,
    framing: Framing,
    accept_hook: Option<AcceptHook>,
    admission: Arc<Admission>,
    refusals: Arc<Refusals>,
    addresses: Vec<SocketAddr>,
    stopping: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

/// What a stop has to end.
#[derive(Default)]
struct State {
    listeners: Vec<Arc<Socket>>,
    /// Sockets in their handshake.
    greeting: Vec<Arc<Socket>>,
    accept_threads: usize,
    is_down: bool,
}

impl Server {
    /// Sets handlers, limits and options before listening.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The sessions.
    pub fn hub(&self) -> &Hub {
        &self.shared.hub
    }

    /// The first address it listens on; with port 0 asked for, the port that was given.
    pub fn local_address(&self) -> SocketAddr {
        self.local_addresses()
            .first()
            .copied()
            .unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// All addresses it listens on.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.shared.addresses
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
        if is_handling() {
            return Err(Error::new(
                ErrorKind::WouldDeadlock,
                "a handler cannot wait for the end of its own server; the shutdown has begun",
            ));
        }
        before_wait()?;
        let until = deadline(Instant::now(), limit);
        self.shared.wait_greeted(until);
        let known: HashSet<_> = sessions.iter().map(Session::id).collect();
        let late_comers = self.shared.hub.sessions().into_iter();
        sessions.extend(late_comers.filter(|session| !known.contains(&session.id())));
        let mut report = ShutdownReport::default();
        let mut late = Vec::new();
        for session in &sessions {
            match session.connection.wait_ended(until) {
                Some(ended) => report.add(&ended),
                None => late.push(session),
            }
        }
        for session in &late {
            session.connection.abort();
        }
        let until = Instant::now() + LAST_STEPS;
        for session in late {
            report.add(&session.connection.cut(until));
        }
        for session in sessions {
            session.connection.wait_threads(until);
        }
        self.shared.finish_stop(until);
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
        let state = self.state.lock();
        for socket in state.listeners.iter().chain(&state.greeting) {
            // On Linux this wakes a thread that waits in accept or read.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        drop(state);
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
}

impl ShutdownReport {
    fn add(&mut self, report: &CloseReport) {
        self.sessions += 1;
        self.clean += usize::from(report.reason == CloseReason::Clean);
        self.not_written.add(report.not_written);
        self.unconfirmed.add(report.unconfirmed);
        self.confirmed.add(report.confirmed);
    }
}

impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} sessions closed cleanly: confirmed {}, unconfirmed {}, not written {}",
            self.clean, self.sessions, self.confirmed, self.unconfirmed, self.not_written
        )
    }
}

/// A server in the making.
#[must_use = "nothing listens before bind"]
#[derive(Default)]
pub struct ServerBuilder {
    handlers: HandlersBuilder,
    config: Config,
    framing: Framing,
    accept_hook: Option<AcceptHook>,
    more_addresses: Vec<String>,
}

impl ServerBuilder {
    handler_methods!();

    /// Asks before a connection is let in, by its address. It runs on the accept thread: it
    /// must not wait. The status is told to the client.
    pub fn on_accept(
        mut self,
        hook: impl Fn(SocketAddr) -> Result<(), Status> + Send + Sync + 'static,
    ) -> Self {
        self.accept_hook = Some(Box::new(hook));
        self
    }

    /// Listens on one more address, with the same handlers.
    pub fn also_on(mut self, address: impl ToString) -> Self {
        self.more_addresses.push(address.to_string());
        self
    }

    /// Listens on `HOST:PORT` (port 0: any free one) and serves.
    ///
    /// # Errors
    /// `AddressInUse`, `Io`, `InvalidInput` for mistakes in the builder or the address.
    pub fn bind(self, address: impl ToString) -> Result<Server, Error> {
        let handlers = Arc::new(self.handlers.build()?);
        self.config.check()?;
        let config = Arc::new(self.config);
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        let names = std::iter::once(address.to_string()).chain(self.more_addresses);
        let limit = deadline(Instant::now(), config.timeouts.connect);
        for name in names {
            for address in socket::resolve(&name, limit)? {
                let listener = socket::listen(address, &config.socket)?;
                addresses.push(socket::local_address(&listener, address));
                listeners.push(Arc::new(listener));
            }
        }
        let shared = Arc::new(Shared {
            hub: Hub::new(self.framing),
            handlers,
            admission: Admission::new(&config.limits),
            refusals: Refusals::new(),
            config,
            framing: self.framing,
            accept_hook: self.accept_hook,
            addresses,
            stopping: AtomicBool::new(false),
            state: Mutex::new(State {
                listeners: listeners.clone(),
                ..State::default()
            }),
            changed: Condvar::new(),
        });
        // From here on dropping the server stops whatever has started.
        let server = Server { shared };
        for listener in listeners {
            let places = Places::take(1)?;
            let shared = server.shared.clone();
            server.shared.state.lock().accept_threads += 1;
            let thread = accept::AcceptThread::new(shared, places);
            threads::spawn("tl-accept".into(), None, move || thread.run(&listener))?;
        }
        Ok(server)
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("config", &self.config)
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}
