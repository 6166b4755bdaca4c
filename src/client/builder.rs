//! What a client is made of, and its first session.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use socket2::Socket;

use super::dialling::{First, start};
use super::dispatch::ClientDispatch;
use super::line::Line;
use super::setup::{Hooks, LoginHook, Setup, StateHook};
use super::state::StateChange;
use super::{Client, Handle};
use crate::address::Address;
use crate::config::{Backoff, Config, Hold};
use crate::connection::threads::Places;
use crate::connection::{Connection, before_wait, prepare, socket};
use crate::error::{Error, ErrorKind};
use crate::protocol::Framing;
use crate::router::{HandlersBuilder, handler_methods};
use crate::session::Session;

/// A client in the making.
#[must_use = "nothing is dialled before connect"]
#[derive(Default)]
pub struct ClientBuilder {
    handlers: HandlersBuilder,
    config: Config,
    framing: Framing,
    more_addresses: Vec<Arc<str>>,
    reconnects: bool,
    holds: bool,
    login: Option<LoginHook>,
    on_state: Option<StateHook>,
}

impl ClientBuilder {
    handler_methods!();

    /// Adds an address, to be tried when those before it have failed: in
    /// [`connect`](Self::connect), and each time that the client dials again.
    #[doc(alias = "failover")]
    pub fn also_at(mut self, address: impl ToString) -> Self {
        self.more_addresses.push(address.to_string().into());
        self
    }

    /// Dials again whenever the session is lost, after waits that grow and are drawn at random.
    /// Default: it does not.
    ///
    /// Each connection is a [`Session`] of its own, with its own `on_connected`, `on_closed`
    /// and [`CloseReport`](crate::CloseReport); the [`Client`] is the handle that follows from
    /// one to the next. Nothing that may have been written is sent again.
    /// [`guide::promises`](crate::guide::promises#reconnecting) says what ends it.
    #[doc(alias = "RECONNECT_IVL")]
    #[doc(alias = "redial")]
    pub fn reconnect(mut self, backoff: Backoff) -> Self {
        self.reconnects = true;
        self.config.backoff = Some(backoff);
        self
    }

    /// Keeps pushes that are made while the client is not connected, for the next session;
    /// calls wait for it, within their time limit, except in handlers and hooks of this very
    /// client, for which the next session waits. Default: both fail at once with
    /// `Disconnected`. Needs [`reconnect`](Self::reconnect).
    ///
    /// What is held goes out first, in its order, and everything newer behind it. What is
    /// older than [`Hold::age`], or is left when the client stops, is dropped and told to
    /// `on_error`, [`on_state`](Self::on_state) and [`Client::totals`]. With
    /// [`SlowPeer::Disconnect`](crate::SlowPeer::Disconnect) a push that ends the session for want
    /// of room is held, too.
    pub fn hold(mut self, hold: Hold) -> Self {
        self.holds = true;
        self.config.hold = Some(hold);
        self
    }

    /// Runs for each new session, the first included, before it is the client's: to introduce
    /// this side to the peer, say. It runs after `on_connected`, on the thread that reads the
    /// session, and may push and call on it. What the program sends on the client comes after
    /// it, and [`connect`](Self::connect) returns after it.
    ///
    /// An error ends the session and counts as a failed attempt: `connect` returns it, and a
    /// client that reconnects tries again if [`Error::is_retryable`] says so, or if the session
    /// was lost meanwhile. A panic is an error, and so is a session that the hook has ended. The
    /// hook has no time limit of its own; calls in it have theirs.
    pub fn on_login(
        mut self,
        hook: impl Fn(&Session) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.login = Some(Box::new(hook));
        self
    }

    /// Runs for each change of the client's [state](crate::ClientState), in order, on the thread
    /// that reads its sessions and dials. It must not wait for the client.
    pub fn on_state(mut self, hook: impl Fn(&StateChange) + Send + Sync + 'static) -> Self {
        self.on_state = Some(Box::new(hook));
        self
    }

    /// Connects to `HOST:PORT`: a name, an IPv4 address, or an IPv6 address in brackets; to
    /// `unix:/PATH`; or, on Linux, to `unix:@NAME`. All addresses of a name are tried in turn,
    /// within `timeouts.connect`. It returns after the server's welcome and the
    /// [login](Self::on_login). It tries once, also if the client reconnects later.
    ///
    /// # Errors
    /// `ConnectFailed`, `Timeout`, `WrongProtocol` if something else listens there, `Malformed`
    /// or `Disconnected` if the handshake breaks, `Version`, `Refused` or `Overloaded` by the
    /// server, `Overloaded` also if this process has threads enough, `Unsupported` for
    /// `unix:@NAME` elsewhere than on Linux, `InvalidInput` for mistakes in the builder or the
    /// address, and those of the login. Of several [addresses](Self::also_at) it is the error
    /// of the last.
    #[doc(alias = "Dial")]
    pub fn connect(self, address: impl ToString) -> Result<Client, Error> {
        let (setup, hooks) = self.build(Some(address.to_string().into()))?;
        if hooks.login.is_some() {
            before_wait()?;
        }
        let mut failure = None;
        for address in &setup.addresses {
            let places = Places::take(2)?;
            let connected = setup
                .dial(address)
                .and_then(|opened| connect_over(&setup, &hooks, opened, Some(address), places));
            match connected {
                Ok(client) => return Ok(client),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(no_address))
    }

    /// Returns at once, and connects in the background: it dials, and dials again by the
    /// [backoff](Self::reconnect), until there is a session or an error that trying again cannot
    /// help. Until then the client is like one whose session is lost, and [`Client::session`] is
    /// one that never was, with number 0.
    ///
    /// # Errors
    /// `InvalidInput` for mistakes in the builder, and without [`reconnect`](Self::reconnect);
    /// `Overloaded` if this process has threads enough.
    pub fn connect_later(self, address: impl ToString) -> Result<Client, Error> {
        let (setup, hooks) = self.build(Some(address.to_string().into()))?;
        if setup.backoff.is_none() {
            let message = "connect_later needs ClientBuilder::reconnect";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let places = Places::take(2)?;
        let message = "the client was not connected yet";
        let reason = Error::new(ErrorKind::Disconnected, message);
        let (framing, config) = (setup.framing, setup.config.clone());
        let connection = Connection::never(framing, config, hooks.owner.clone(), reason.clone())?;
        let session = Session::new(connection, hooks.handlers.interceptors());
        // It has ended, as far as values are concerned, too.
        session.clear_data();
        let (inbox, source) = hooks.handlers.open_inbox(&setup.config.limits).unzip();
        let line = Line::new(setup, hooks, session, Some(reason), inbox);
        start(&line, None, source, places)?;
        Ok(Client::new(line))
    }

    /// Connects over a stream that was opened elsewhere: a `TcpStream`, a `UnixStream` (of a
    /// pair, say), or an inherited descriptor. It returns after the server's welcome and the
    /// [login](Self::on_login). The stream belongs to the client from now on.
    ///
    /// # Errors
    /// `InvalidInput` for what is not a connected stream socket, and with an address to dial or
    /// [`reconnect`](Self::reconnect); and as [`connect`](Self::connect) after dialling.
    pub fn from_stream(self, stream: impl Into<OwnedFd>) -> Result<Client, Error> {
        let (setup, hooks) = self.build(None)?;
        if setup.backoff.is_some() || !setup.addresses.is_empty() {
            let message = "a stream that was opened elsewhere cannot be dialled again";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if hooks.login.is_some() {
            before_wait()?;
        }
        let places = Places::take(2)?;
        let opened = socket::adopt_stream(stream.into(), &setup.config.socket)?;
        connect_over(&setup, &hooks, opened, None, places)
    }

    fn build(self, address: Option<Arc<str>>) -> Result<(Arc<Setup>, Arc<Hooks>), Error> {
        let handlers = self.handlers.build()?;
        self.config.check()?;
        let Config { backoff, hold, .. } = &self.config;
        let hooks = Hooks {
            owner: handlers.owner(&self.config.limits),
            pool: handlers.open_pool(&self.config),
            handlers: Arc::new(handlers),
            login: self.login,
            on_state: self.on_state,
        };
        let setup = Setup {
            backoff: backoff.clone().filter(|_| self.reconnects),
            hold: hold.clone().filter(|_| self.holds),
            config: Arc::new(self.config),
            framing: self.framing,
            addresses: address.into_iter().chain(self.more_addresses).collect(),
        };
        if setup.hold.is_some() && setup.backoff.is_none() {
            let message = "ClientBuilder::hold needs ClientBuilder::reconnect";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Ok((Arc::new(setup), Arc::new(hooks)))
    }
}

fn no_address() -> Error {
    Error::new(ErrorKind::InvalidInput, "there is no address to dial")
}

/// The first session of a client, up to its login.
fn connect_over(
    setup: &Arc<Setup>,
    hooks: &Arc<Hooks>,
    (socket, peer): (Socket, Address),
    address: Option<&Arc<str>>,
    places: Places,
) -> Result<Client, Error> {
    let (agreed, received) = setup.greet(&socket)?;
    let (inbox, source) = hooks.handlers.open_inbox(&setup.config.limits).unzip();
    let session = setup.session(Arc::new(socket), peer, agreed, hooks, source.as_ref())?;
    let message = "the client has not logged in yet";
    let down = hooks
        .login
        .is_some()
        .then(|| Error::new(ErrorKind::Disconnected, message));
    let line = Line::new(setup.clone(), hooks.clone(), session.clone(), down, inbox);
    // Otherwise the inbox ends with the session.
    let kept = source.clone().filter(|_| setup.backoff.is_some());
    let address = address.cloned();
    let dispatch = ClientDispatch::new(
        line.clone(),
        hooks.clone(),
        session.clone(),
        source,
        address,
        0,
    );
    let read = prepare(&session.connection, dispatch, &received, None);
    let read = Box::new(read);
    let has_login = hooks.login.is_some();
    start(&line, Some(First { session, read }), kept, places)?;
    if has_login {
        line.wait(None, |desk| desk.outcome.is_some());
        let outcome = line.desk.lock().outcome.clone();
        outcome.unwrap_or(Ok(()))?;
    }
    Ok(Client::new(line))
}

impl Client {
    fn new(line: Arc<Line>) -> Client {
        Client {
            handle: Arc::new(Handle { line }),
        }
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
