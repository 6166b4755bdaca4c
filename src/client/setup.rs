//! What a client dials and how: one address, up to a session that no thread reads yet.

use std::sync::Arc;
use std::time::Instant;

use socket2::Socket;

use super::state::StateChange;
use crate::address::Address;
use crate::config::{Backoff, Config, Hold, deadline};
use crate::connection::handshake::Greeting;
use crate::connection::{Agreed, Connection, Owner, dial};
use crate::error::{Error, ErrorKind};
use crate::message::SessionId;
use crate::protocol::Framing;
use crate::protocol::native::handshake::{PeerLimits, PeerTimes};
use crate::router::{Handlers, Workers};
use crate::session::{Session, Source};
use crate::status::Status;

pub(super) type LoginHook = Box<dyn Fn(&Session) -> Result<(), Error> + Send + Sync>;
pub(super) type StateHook = Box<dyn Fn(&StateChange) + Send + Sync>;

/// What does not change from session to session.
pub(super) struct Setup {
    pub(super) config: Arc<Config>,
    pub(super) framing: Framing,
    pub(super) addresses: Vec<Arc<str>>,
    /// If the client dials again.
    pub(super) backoff: Option<Backoff>,
    pub(super) hold: Option<Hold>,
}

/// Code of the application's own. It goes with the thread, as it may hold handles of the client.
pub(super) struct Hooks {
    pub(super) handlers: Arc<Handlers>,
    pub(super) login: Option<LoginHook>,
    pub(super) on_state: Option<StateHook>,
    /// What all its sessions share.
    pub(super) owner: Arc<Owner>,
    pub(super) pool: Option<Arc<Workers>>,
}

impl Setup {
    pub(super) fn dial(&self, address: &str) -> Result<(Socket, Address), Error> {
        let limit = deadline(Instant::now(), self.config.timeouts.connect);
        dial::dial(address, &self.config.socket, limit)
    }

    /// The handshake; beside its outcome, what came behind it.
    pub(super) fn greet(&self, socket: &Socket) -> Result<(Agreed, Vec<u8>), Error> {
        if !self.framing.has_handshake() {
            let agreed = Agreed {
                id: SessionId(0),
                peer_limits: PeerLimits::announced(&self.config.limits),
                peer_times: PeerTimes::default(),
            };
            return Ok((agreed, Vec::new()));
        }
        let mut greeting = Greeting::new(socket, self.config.timeouts.handshake);
        let agreed = greeting.greet(&self.config)?;
        Ok((agreed, greeting.finish()?))
    }

    pub(super) fn session(
        &self,
        socket: Arc<Socket>,
        peer: Address,
        agreed: Agreed,
        hooks: &Hooks,
        inbox: Option<&Source>,
    ) -> Result<Session, Error> {
        let inbox_room = inbox.map(Source::room);
        let pool_room = hooks.pool.as_ref().map(|workers| workers.room());
        let connection = Connection::new(
            socket,
            peer,
            self.framing,
            self.config.clone(),
            agreed,
            inbox_room.into_iter().chain(pool_room),
            hooks.owner.clone(),
        )?;
        connection.keep_pushes(self.hold.is_some());
        Ok(Session::new(connection, hooks.handlers.interceptors()))
    }
}

/// Whether an attempt has failed in a way that trying again cannot help.
pub(super) fn is_permanent(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Version
        | ErrorKind::WrongProtocol
        | ErrorKind::InvalidInput
        | ErrorKind::Unsupported => true,
        ErrorKind::Refused => !error.is_retryable(),
        _ => false,
    }
}

/// Whether a login has failed in such a way.
pub(super) fn is_permanent_login(error: &Error) -> bool {
    match error.is_closed() {
        // The line was lost meanwhile, or the peer has ended the session.
        true => error.status().is_some_and(is_dismissal),
        false => !error.is_retryable(),
    }
}

/// Whether a peer that says goodbye like this does not want to see this side again.
pub(super) fn is_dismissal(farewell: &Status) -> bool {
    !matches!(farewell.code(), Status::GOING_AWAY | Status::OVERLOADED)
}
