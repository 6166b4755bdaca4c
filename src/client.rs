//! The client: a session that this side dialled.

use std::fmt;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use socket2::Socket;

use crate::address::Address;
use crate::config::{Config, deadline};
use crate::connection::handshake::Greeting;
use crate::connection::threads::Places;
use crate::connection::{Agreed, Connection, dial, socket, start};
use crate::error::{Error, ErrorKind};
use crate::message::SessionId;
use crate::protocol::Framing;
use crate::protocol::native::handshake::{PeerLimits, PeerTimes};
use crate::router::{HandlersBuilder, Router, handler_methods};
use crate::session::{Inbox, Session, Source};

/// A session that this side dialled; everything a [`Session`] can do.
///
/// Clones share the session. Dropping the last one writes what the system takes at once, says
/// goodbye and closes the writing half, without waiting; [`Session::shutdown`] waits.
#[derive(Clone)]
#[doc(alias = "SingleConnection")]
#[doc(alias = "req")]
#[doc(alias = "dealer")]
#[doc(alias = "dialer")]
pub struct Client {
    handle: Arc<Handle>,
}

struct Handle {
    session: Session,
    inbox: Option<Inbox>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The calls in it are answered with that, while anything can be said.
        self.inbox = None;
        self.session.connection.leave();
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

    /// The session by itself: a handle that does not keep it open.
    pub fn session(&self) -> Session {
        self.handle.session.clone()
    }

    /// Where the messages without a handler are received. It ends with the session.
    ///
    /// # Errors
    /// `InvalidInput` if the builder was not asked for one.
    pub fn inbox(&self) -> Result<Inbox, Error> {
        self.handle.inbox.clone().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                "this client has no inbox: ClientBuilder::inbox asks for one",
            )
        })
    }
}

impl Deref for Client {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.handle.session
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.handle.session).finish()
    }
}

/// A client in the making.
#[must_use = "nothing is dialled before connect"]
#[derive(Default)]
pub struct ClientBuilder {
    handlers: HandlersBuilder,
    config: Config,
    framing: Framing,
}

impl ClientBuilder {
    handler_methods!();

    /// Connects to `HOST:PORT`: a name, an IPv4 address, or an IPv6 address in brackets; to
    /// `unix:/PATH`; or, on Linux, to `unix:@NAME`. All addresses of a name are tried in turn,
    /// within `timeouts.connect`. It returns after the server's welcome.
    ///
    /// # Errors
    /// `ConnectFailed`, `Timeout`, `WrongProtocol` if something else listens there, `Malformed`
    /// or `Disconnected` if the handshake breaks, `Version`, `Refused` or `Overloaded` by the
    /// server, `Overloaded` also if this process has threads enough, `Unsupported` for
    /// `unix:@NAME` elsewhere than on Linux, `InvalidInput` for mistakes in the builder or the
    /// address.
    #[doc(alias = "Dial")]
    pub fn connect(self, address: impl ToString) -> Result<Client, Error> {
        self.connect_over(|config| {
            let limit = deadline(Instant::now(), config.timeouts.connect);
            dial::dial(&address.to_string(), &config.socket, limit)
        })
    }

    /// Connects over a stream that was opened elsewhere: a `TcpStream`, a `UnixStream` (of a
    /// pair, say), or an inherited descriptor. It returns after the server's welcome. The
    /// stream belongs to the client from now on.
    ///
    /// # Errors
    /// `InvalidInput` for what is not a connected stream socket, and as
    /// [`connect`](Self::connect) after dialling.
    pub fn from_stream(self, stream: impl Into<OwnedFd>) -> Result<Client, Error> {
        self.connect_over(|config| socket::adopt_stream(stream.into(), &config.socket))
    }

    fn connect_over(
        self,
        open: impl FnOnce(&Config) -> Result<(Socket, Address), Error>,
    ) -> Result<Client, Error> {
        let handlers = Arc::new(self.handlers.build()?);
        self.config.check()?;
        let config = Arc::new(self.config);
        let places = Places::take(2)?;
        let (socket, peer) = open(&config)?;
        let (agreed, received) = if self.framing.has_handshake() {
            let mut greeting = Greeting::new(&socket, config.timeouts.handshake);
            let agreed = greeting.greet(&config)?;
            (agreed, greeting.finish()?)
        } else {
            let agreed = Agreed {
                id: SessionId(0),
                peer_limits: PeerLimits::announced(&config.limits),
                peer_times: PeerTimes::default(),
            };
            (agreed, Vec::new())
        };
        let (inbox, source) = handlers.open_inbox(&config.limits).unzip();
        let pool = handlers.open_pool(&config);
        let owner = handlers.owner(&config.limits);
        let inbox_room = source.as_ref().map(Source::room);
        let pool_room = pool.as_ref().map(|workers| workers.room());
        let rooms = inbox_room.into_iter().chain(pool_room);
        let socket = Arc::new(socket);
        let connection = Connection::new(socket, peer, self.framing, config, agreed, rooms, owner)?;
        let session = Session::new(connection.clone(), handlers.interceptors());
        let router = Router::new(handlers, session.clone(), None, source, pool);
        start(&connection, router, &received, places)?;
        Ok(Client {
            handle: Arc::new(Handle { session, inbox }),
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("config", &self.config)
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}
