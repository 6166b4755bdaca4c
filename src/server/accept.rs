//! The accept thread: lets connections in, or tells them why not. It never waits for a peer.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::Socket;

use super::Shared;
use super::admission::Ticket;
use crate::address::Address;
use crate::config::{Config, ThreadRole};
use crate::connection::handshake::{self, Greeting, refusal};
use crate::connection::listen::Listener;
use crate::connection::threads::{self, Places};
use crate::connection::{Agreed, Connection, prepare, socket};
use crate::error::{Error, ErrorKind, caught};
use crate::hub::Member;
use crate::protocol::native::handshake::{PeerLimits, PeerTimes};
use crate::records::Topic;
use crate::router::{Router, Workers};
use crate::session::{Session, Source};
use crate::status::Status;

/// Pauses after a failed accept: out of descriptors, usually.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// One listener's thread; dropping it, started or not, tells the server that it is gone.
pub(super) struct AcceptThread {
    shared: Arc<Shared>,
    /// What its connections are set up with.
    config: Arc<Config>,
    _places: Places,
}

impl AcceptThread {
    pub(super) fn new(shared: Arc<Shared>, config: Arc<Config>, places: Places) -> Self {
        AcceptThread {
            shared,
            config,
            _places: places,
        }
    }

    pub(super) fn run(self, listener: Arc<Listener>) {
        let mut pause = SHORTEST_PAUSE;
        while !self.shared.is_stopping() {
            match listener.accept() {
                Ok((socket, peer)) => {
                    pause = SHORTEST_PAUSE;
                    if self.shared.is_stopping() {
                        break;
                    }
                    if let Err(error) = self.set_up_and_admit(socket, peer) {
                        self.shared.handlers.report(Topic::Refused, &error);
                    }
                }
                Err(_) if self.shared.is_stopping() => break,
                Err(error) if is_of_the_peer(&error) => {}
                Err(error) => {
                    self.shared.hub.counters().accept_failures.fetch_add(1);
                    if pause == SHORTEST_PAUSE {
                        let message = "connections cannot be accepted for now";
                        let error = Error::with_source(ErrorKind::Io, message, error);
                        self.shared.handlers.report(Topic::AcceptFailed, &error);
                    }
                    self.shared.pause(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn set_up_and_admit(&self, socket: Socket, peer: Address) -> Result<(), Error> {
        // The peer is gone already, or an option is not known here.
        socket::tune(&socket, &self.config.socket).map_err(|source| {
            let message = "the socket of an accepted connection cannot be set up";
            Error::with_source(ErrorKind::Io, message, source)
        })?;
        self.shared.admit(socket, peer, &self.config)
    }
}

impl Drop for AcceptThread {
    fn drop(&mut self) {
        self.shared.state.lock().accept_threads -= 1;
        self.shared.changed.notify_all();
    }
}

/// Errors that a single peer causes: the next accept may succeed at once.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// A connection before its handshake.
struct Newcomer {
    socket: Arc<Socket>,
    peer: Address,
    config: Arc<Config>,
    inbox: Option<Source>,
    pool: Option<Arc<Workers>>,
}

impl Shared {
    /// Waits, unless the server stops.
    fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut state = self.state.lock();
        while !self.is_stopping() {
            if self.changed.wait_until(&mut state, until).timed_out() {
                return;
            }
        }
    }

    /// Lets a connection in, to its handshake on a thread of its own, or refuses it.
    pub(super) fn admit(
        self: &Arc<Self>,
        socket: Socket,
        peer: Address,
        config: &Arc<Config>,
    ) -> Result<(), Error> {
        self.hub.counters().connections_accepted.fetch_add(1);
        let admitted = self.check(&peer).and_then(|ticket| {
            let places = Places::take(2).map_err(|error| overloaded(&error))?;
            Ok((ticket, places))
        });
        let (ticket, places) = match admitted {
            Ok(admitted) => admitted,
            Err(status) => return Err(self.refuse(socket, &peer, status)),
        };
        let socket = Arc::new(socket);
        let mut state = self.state.lock();
        state.greeting.push(socket.clone());
        let (inbox, pool) = (state.inbox.clone(), state.pool.clone());
        if self.is_stopping() {
            // The stop has woken those before it.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        drop(state);
        let newcomer = Newcomer {
            socket: socket.clone(),
            peer: peer.clone(),
            config: config.clone(),
            inbox,
            pool,
        };
        let shared = self.clone();
        let (name, role) = ("tl-read".into(), ThreadRole::Reader);
        let spawned = threads::spawn(name, role, &config.threads, move || {
            shared.receive(newcomer, ticket, places);
        });
        if let Err(error) = spawned {
            self.greeted(&socket);
            if let Ok(socket) = Arc::try_unwrap(socket) {
                self.refuse(socket, &peer, overloaded(&error));
            }
            return Err(error);
        }
        Ok(())
    }

    fn check(&self, peer: &Address) -> Result<Ticket, Status> {
        let ticket = self.admission.admit(peer)?;
        if let Some(hook) = &self.accept_hook {
            caught(|| hook(peer)).unwrap_or_else(|| {
                Err(Status::new(Status::FORBIDDEN, "the accept hook panicked"))
            })?;
        }
        Ok(ticket)
    }

    fn refuse(&self, socket: Socket, peer: &Address, status: Status) -> Error {
        self.hub.counters().connections_refused.fetch_add(1);
        if self.framing.has_handshake() {
            self.refusals
                .refuse(socket, &refusal(&self.config, status.clone()));
        }
        let kind = match status.code() {
            Status::OVERLOADED => ErrorKind::Overloaded,
            _ => ErrorKind::Refused,
        };
        Error::new(
            kind,
            format!("a connection from {peer} was refused: {status}"),
        )
    }

    /// The life of one connection, on its own thread.
    fn receive(self: Arc<Self>, newcomer: Newcomer, ticket: Ticket, places: Places) {
        match self.greet(&newcomer) {
            Ok((connection, received)) => {
                let session = Session::new(connection.clone(), self.handlers.interceptors());
                let ticket = Arc::new(ticket);
                let member = self.let_in(&newcomer.socket, session.clone(), ticket.clone());
                if self.is_stopping() {
                    connection.begin_close(self.config.timeouts.close);
                }
                let inbox = newcomer.inbox.clone();
                let inbox = inbox.map(|source| source.with_ticket(ticket));
                let pool = newcomer.pool.clone();
                let handlers = self.handlers.clone();
                let router = Router::new(handlers, session, Some(member), inbox, pool);
                drop((self, newcomer));
                prepare(&connection, router, &received, Some(places))();
            }
            Err(error) => {
                self.hub.counters().handshakes_failed.fetch_add(1);
                self.greeted(&newcomer.socket);
                if !self.is_stopping() {
                    let peer = &newcomer.peer;
                    self.handlers.record(
                        Topic::HandshakeFailed,
                        format_args!("the handshake with {peer} failed: {error:#}"),
                    );
                    self.handlers.tell(&error);
                }
            }
        }
    }

    /// The handshake. The welcome is the first thing in the connection's queue, so that the
    /// session can be in the hub before its client knows that it is connected.
    fn greet(&self, newcomer: &Newcomer) -> Result<(Arc<Connection>, Vec<u8>), Error> {
        let Newcomer {
            socket,
            peer,
            config,
            inbox,
            pool,
        } = newcomer;
        let id = self.hub.next_id();
        let mut peer_limits = PeerLimits::announced(&self.config.limits);
        let mut peer_times = PeerTimes::default();
        let mut welcome = Vec::new();
        let mut received = Vec::new();
        if self.framing.has_handshake() {
            let mut greeting = Greeting::new(socket, self.config.timeouts.handshake);
            let hello = greeting.receive(&self.config)?;
            (peer_limits, peer_times) = (hello.limits, hello.times);
            if self.is_stopping() {
                let status = Status::new(Status::GOING_AWAY, "the server is shutting down");
                greeting.refuse(&self.config, status);
                return Err(Error::new(ErrorKind::Closed, "the server is shutting down"));
            }
            welcome = handshake::welcome(&self.config, id)?;
            received = greeting.finish()?;
        }
        let agreed = Agreed {
            id,
            peer_limits,
            peer_times,
        };
        let inbox_room = inbox.as_ref().map(Source::room);
        let pool_room = pool.as_ref().map(|workers| workers.room());
        let connection = Connection::new(
            socket.clone(),
            peer.clone(),
            self.framing,
            config.clone(),
            agreed,
            inbox_room.into_iter().chain(pool_room),
            self.owner.clone(),
        )?;
        connection.begin_with(&welcome);
        Ok((connection, received))
    }

    /// Out of the handshake and into the hub, in one step: a stop finds it in one of them.
    fn let_in(&self, socket: &Arc<Socket>, session: Session, ticket: Arc<Ticket>) -> Member {
        let mut state = self.state.lock();
        state.greeting.retain(|other| !Arc::ptr_eq(other, socket));
        let member = self.hub.admit(session, ticket);
        drop(state);
        self.changed.notify_all();
        member
    }

    /// The socket is out of its handshake.
    fn greeted(&self, socket: &Arc<Socket>) {
        let mut state = self.state.lock();
        state.greeting.retain(|other| !Arc::ptr_eq(other, socket));
        drop(state);
        self.changed.notify_all();
    }
}

fn overloaded(error: &Error) -> Status {
    Status::new(Status::OVERLOADED, error.to_string())
}
