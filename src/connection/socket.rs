//! Sockets: options, listening, names, dialling.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use super::threads;
use crate::config::SocketOptions;
use crate::error::{Error, ErrorKind};

/// Connections that may wait to be accepted: 128, the usual default, drops them under load.
const BACKLOG: i32 = 4096;

/// Sets the options of a dialled or accepted socket.
pub(crate) fn tune(socket: &Socket, options: &SocketOptions) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    if let Some(bytes) = options.send_buffer {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = options.receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.set_tcp_nodelay(options.nodelay)?;
    if let Some(idle) = options.keepalive {
        socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle))?;
    }
    #[cfg(target_os = "linux")]
    if options.user_timeout.is_some() {
        socket.set_tcp_user_timeout(options.user_timeout)?;
    }
    #[cfg(target_vendor = "apple")]
    socket.set_nosigpipe(true)?;
    Ok(())
}

/// A listening socket. Buffer sizes are set here, where accepted sockets inherit them.
pub(crate) fn listen(address: SocketAddr, options: &SocketOptions) -> Result<Socket, Error> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        if let Some(bytes) = options.send_buffer {
            socket.set_send_buffer_size(bytes)?;
        }
        if let Some(bytes) = options.receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.bind(&SockAddr::from(address))?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    };
    open().map_err(|source: io::Error| {
        let kind = match source.kind() {
            io::ErrorKind::AddrInUse => ErrorKind::AddressInUse,
            _ => ErrorKind::Io,
        };
        Error::with_source(kind, format!("cannot listen on {address}"), source)
    })
}

/// The address that a listener was given.
pub(crate) fn local_address(listener: &Socket, asked: SocketAddr) -> SocketAddr {
    let given = listener.local_addr().ok();
    given.and_then(|given| given.as_socket()).unwrap_or(asked)
}

/// The addresses behind a name, by the deadline.
pub(crate) fn resolve(name: &str, deadline: Option<Instant>) -> Result<Vec<SocketAddr>, Error> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    // The system's resolver knows no time limit, so it gets a thread of its own.
    let (sender, receiver) = crossbeam::channel::bounded(1);
    let owned = name.to_owned();
    threads::spawn("tl-resolve".into(), None, move || {
        let _ = sender.send(owned.to_socket_addrs().map(Vec::from_iter));
    })?;
    let resolved = match deadline {
        Some(deadline) => receiver.recv_deadline(deadline).ok(),
        None => receiver.recv().ok(),
    };
    match resolved {
        Some(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
        Some(Ok(_)) => Err(Error::new(
            ErrorKind::ConnectFailed,
            format!("{name} has no address"),
        )),
        Some(Err(source)) if source.kind() == io::ErrorKind::InvalidInput => {
            Err(Error::with_source(
                ErrorKind::InvalidInput,
                format!("{name:?} is not an address: HOST:PORT is expected"),
                source,
            ))
        }
        Some(Err(source)) => Err(Error::with_source(
            ErrorKind::ConnectFailed,
            format!("{name} cannot be resolved"),
            source,
        )),
        None => Err(timeout(name)),
    }
}

fn timeout(name: &str) -> Error {
    Error::new(
        ErrorKind::Timeout,
        format!("connecting to {name} took longer than timeouts.connect"),
    )
}

/// Dials the addresses in turn until one answers.
///
/// Each but the last gets an equal share of the time that is left, so that one dead address
/// does not take all of it.
pub(crate) fn dial(
    name: &str,
    options: &SocketOptions,
    deadline: Option<Instant>,
) -> Result<(Socket, SocketAddr), Error> {
    let addresses = resolve(name, deadline)?;
    let mut last = None;
    for (index, address) in addresses.iter().enumerate() {
        let others = (addresses.len() - index) as u32;
        let share = match deadline {
            None => None,
            Some(deadline) => match deadline.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Err(last.unwrap_or_else(|| timeout(name))),
                left => Some(left / others),
            },
        };
        match dial_one(*address, options, share) {
            Ok(socket) => return Ok((socket, *address)),
            Err(source) if source.kind() == io::ErrorKind::TimedOut => last = Some(timeout(name)),
            Err(source) => {
                last = Some(Error::with_source(
                    ErrorKind::ConnectFailed,
                    format!("cannot connect to {address}"),
                    source,
                ));
            }
        }
    }
    Err(last.unwrap_or_else(|| timeout(name)))
}

fn dial_one(
    address: SocketAddr,
    options: &SocketOptions,
    limit: Option<Duration>,
) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    let target = SockAddr::from(address);
    match limit {
        Some(limit) => socket.connect_timeout(&target, limit)?,
        None => socket.connect(&target)?,
    }
    // Dialling a dead local port can meet itself when the system picks that port as the source.
    let own = socket.local_addr()?.as_socket();
    if own.is_some() && own == socket.peer_addr()?.as_socket() {
        // A reset: in TIME_WAIT it would keep the port from its server.
        let _ = socket.set_linger(Some(Duration::ZERO));
        return Err(io::Error::new(
            io::ErrorKind::ConnectionRefused,
            "the socket met itself",
        ));
    }
    tune(&socket, options)?;
    Ok(socket)
}

/// What ended a connection whose socket could not be written.
pub(super) fn write_error(source: io::Error) -> Error {
    Error::with_source(
        ErrorKind::Disconnected,
        "writing to the peer failed",
        source,
    )
}
