//! The connection of a session that never was: what a client has that was not connected yet.

use std::sync::Arc;

use socket2::{Domain, Socket, Type};

use super::{Agreed, Connection, Owner};
use crate::address::{Address, UnixAddress, UnixName};
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::message::SessionId;
use crate::protocol::Framing;
use crate::protocol::native::handshake::{PeerLimits, PeerTimes};

impl Connection {
    /// A connection that has ended before it began, for this reason.
    pub(crate) fn never(
        framing: Framing,
        config: Arc<Config>,
        owner: Arc<Owner>,
        reason: Error,
    ) -> Result<Arc<Connection>, Error> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)
            .map_err(|source| Error::with_source(ErrorKind::Io, "no socket can be had", source))?;
        let peer = Address::Unix(UnixAddress {
            name: UnixName::Unnamed,
            process: None,
        });
        let agreed = Agreed {
            id: SessionId(0),
            peer_limits: PeerLimits::announced(&config.limits),
            peer_times: PeerTimes::default(),
        };
        let connection =
            Connection::new(Arc::new(socket), peer, framing, config, agreed, None, owner)?;
        connection.fail(reason);
        connection.announce_end(connection.report());
        Ok(connection)
    }
}
