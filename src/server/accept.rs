//! The accept thread: lets connections in, or tells them why not. It never waits for a peer.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::Socket;

use super::Shared;
use super::admission::Ticket;
use crate::connection::handshake::{self, Greeting, refusal};
use crate::connection::threads::{self, Places};
use crate::connection::{Agreed, Connection, prepare, socket};
use crate::error::{Error, ErrorKind, caught};
use crate::hub::Member;
use crate::protocol::native::handshake::PeerLimits;
use crate::router::Router;
use crate::status::Status;

/// Pauses after a failed accept: out of descriptors, usually.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// One listener's thread; dropping it, started or not, tells the server that it is gone.
pub(super) struct AcceptThread {
    shared: Arc<Shared>,
    _places: Places,
}

impl AcceptThread {
    pub(super) fn new(shared: Arc<Shared>, places: Places) -> Self {
        AcceptThread {
            shared,
            _places: places,
        }
    }

    pub(super) fn run(self, listener: &Socket) {
        let mut pause = SHORTEST_PAUSE;
        while !self.shared.is_stopping() {
            match listener.accept() {
                Ok((socket, address)) => {
                    pause = SHORTEST_PAUSE;
                    if self.shared.is_stopping() {
                        break;
                    }
                    if let Some(address) = address.as_socket() {
                        self.shared.admit(socket, canonical(address));
                    }
                }
                Err(_) if self.shared.is_stopping() => break,
                Err(error) if is_of_the_peer(&error) => {}
                Err(error) => {
                    self.shared.hub.counters().accept_failures.fetch_add(1);
                    if pause == SHORTEST_PAUSE {
                        self.shared.handlers.report(&Error::with_source(
                            ErrorKind::Io,
                            "connections cannot be accepted for now",
                            error,
                        ));
                    }
                    self.shared.pause(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
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

/// An IPv4 peer of an IPv6 listener under its IPv4 address.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
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
    fn admit(self: &Arc<Self>, socket: Socket, peer: SocketAddr) {
        self.hub.counters().connections_accepted.fetch_add(1);
        let admitted = self.check(peer).and_then(|ticket| {
            let places = Places::take(2).map_err(|error| overloaded(&error))?;
            Ok((ticket, places))
        });
        let (ticket, places) = match admitted {
            Ok(admitted) => admitted,
            Err(status) => return self.refuse(socket, status),
        };
        if let Err(source) = socket::tune(&socket, &self.config.socket) {
            // The peer is gone already, or the option is not known here.
            self.hub.counters().handshakes_failed.fetch_add(1);
            self.handlers.report(&Error::with_source(
                ErrorKind::Io,
                format!("the socket of {peer} cannot be set up"),
                source,
            ));
            return;
        }
        let socket = Arc::new(socket);
        let mut state = self.state.lock();
        state.greeting.push(socket.clone());
        if self.is_stopping() {
            // The stop has woken those before it.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        drop(state);
        let shared = self.clone();
        let thread_socket = socket.clone();
        let spawned = threads::spawn("tl-read".into(), self.config.stack_bytes, move || {
            shared.serve(thread_socket, peer, ticket, places);
        });
        if let Err(error) = spawned {
            self.greeted(&socket);
            if let Ok(socket) = Arc::try_unwrap(socket) {
                self.refuse(socket, overloaded(&error));
            }
            self.handlers.report(&error);
        }
    }

    fn check(&self, peer: SocketAddr) -> Result<Ticket, Status> {
        let ticket = self.admission.admit(peer.ip())?;
        if let Some(hook) = &self.accept_hook {
            caught(|| hook(peer)).unwrap_or_else(|| {
                Err(Status::new(Status::FORBIDDEN, "the accept hook panicked"))
            })?;
        }
        Ok(ticket)
    }

    fn refuse(&self, socket: Socket, status: Status) {
        self.hub.counters().connections_refused.fetch_add(1);
        if self.framing.has_handshake() {
            self.refusals
                .refuse(socket, &refusal(&self.config, status.clone()));
        }
        let kind = match status.code() {
            Status::OVERLOADED => ErrorKind::Overloaded,
            _ => ErrorKind::Refused,
        };
        self.handlers.report(&Error::new(
            kind,
            format!("a connection was refused: {status}"),
        ));
    }

    /// The life of one connection, on its own thread.
    fn serve(
        self: Arc<Self>,
        socket: Arc<Socket>,
        peer: SocketAddr,
        ticket: Ticket,
        places: Places,
    ) {
        match self.greet(&socket, peer) {
            Ok((connection, received)) => {
                let member = self.let_in(&socket, &connection, ticket);
                if self.is_stopping() {
                    connection.begin_close(self.config.timeouts.close);
                }
                let router = Router::new(self.handlers.clone(), Some(member));
                drop((self, socket));
                prepare(&connection, router, &received, places)();
            }
            Err(error) => {
                self.hub.counters().handshakes_failed.fetch_add(1);
                self.greeted(&socket);
                if !self.is_stopping() {
                    self.handlers.report(&error);
                }
            }
        }
    }

    /// The handshake. The welcome is the first thing in the connection's queue, so that the
    /// session can be in the hub before its client knows that it is connected.
    fn greet(
        &self,
        socket: &Arc<Socket>,
        peer: SocketAddr,
    ) -> Result<(Arc<Connection>, Vec<u8>), Error> {
        let id = self.hub.next_id();
        let mut peer_limits = PeerLimits::announced(&self.config.limits);
        let mut welcome = Vec::new();
        let mut received = Vec::new();
        if self.framing.has_handshake() {
            let mut greeting = Greeting::new(socket, self.config.timeouts.handshake);
            peer_limits = greeting.receive(&self.config)?.limits;
            if self.is_stopping() {
                let status = Status::new(Status::GOING_AWAY, "the server is shutting down");
                greeting.refuse(&self.config, status);
                return Err(Error::new(ErrorKind::Closed, "the server is shutting down"));
            }
            welcome = handshake::welcome(&self.config, id)?;
            received = greeting.finish()?;
        }
        let agreed = Agreed { id, peer_limits };
        let (framing, config) = (self.framing, self.config.clone());
        let connection = Connection::new(socket.clone(), peer, framing, config, agreed)?;
        connection.begin_with(&welcome);
        Ok((connection, received))
    }

    /// Out of the handshake and into the hub, in one step: a stop finds it in one of them.
    fn let_in(&self, socket: &Arc<Socket>, connection: &Arc<Connection>, ticket: Ticket) -> Member {
        let mut state = self.state.lock();
        state.greeting.retain(|other| !Arc::ptr_eq(other, socket));
        let member = self.hub.join(connection, ticket);
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
