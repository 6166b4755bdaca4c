//! Dialling: names, their addresses, and the first of them that answers.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use super::socket::{tune, unix_peer};
use super::threads;
use crate::address::{Address, UnixName};
use crate::config::SocketOptions;
use crate::error::{Error, ErrorKind};

/// The IP addresses behind a name, by the deadline.
pub(crate) fn resolve(name: &str, deadline: Option<Instant>) -> Result<Vec<SocketAddr>, Error> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    // No host is called like that: more likely it is a URL, which need not be looked up.
    if name.contains('/') {
        return Err(Error::new(ErrorKind::InvalidInput, no_address(name)));
    }
    // The system's resolver knows no time limit, so it gets a thread of its own.
    let (sender, receiver) = crossbeam::channel::bounded(1);
    let owned = name.to_owned();
    threads::start("tl-resolve".into(), None, move || {
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
        Some(Err(source)) if source.kind() == io::ErrorKind::InvalidInput => Err(
            Error::with_source(ErrorKind::InvalidInput, no_address(name), source),
        ),
        Some(Err(source)) => Err(Error::with_source(
            ErrorKind::ConnectFailed,
            format!("{name} cannot be resolved"),
            source,
        )),
        None => Err(Error::new(
            ErrorKind::Timeout,
            format!("looking up {name} took longer than timeouts.connect"),
        )),
    }
}

fn no_address(name: &str) -> String {
    format!("{name:?} is not an address: HOST:PORT, unix:/PATH or unix:@NAME is expected")
}

fn timeout(name: &str) -> Error {
    Error::new(
        ErrorKind::Timeout,
        format!("connecting to {name} took longer than timeouts.connect"),
    )
}

/// Dials what a name stands for.
pub(crate) fn dial(
    name: &str,
    options: &SocketOptions,
    deadline: Option<Instant>,
) -> Result<(Socket, Address), Error> {
    match UnixName::parse(name)? {
        Some(unix) => dial_unix(unix, name, options, deadline),
        None => dial_tcp(name, options, deadline),
    }
}

/// Dials the IP addresses in turn until one answers.
///
/// Each but the last gets an equal share of the time that is left, so that one dead address
/// does not take all of it.
fn dial_tcp(
    name: &str,
    options: &SocketOptions,
    deadline: Option<Instant>,
) -> Result<(Socket, Address), Error> {
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
        match dial_address(*address, options, share) {
            Ok(socket) => return Ok((socket, Address::Tcp(*address))),
            Err(source) if source.kind() == io::ErrorKind::TimedOut => last = Some(timeout(name)),
            Err(source) => last = Some(failed(address, options, source)),
        }
    }
    Err(last.unwrap_or_else(|| timeout(name)))
}

fn failed(address: &SocketAddr, options: &SocketOptions, source: io::Error) -> Error {
    let from = options
        .local_address
        .map(|local| format!(" from {local} (socket option local_address)"));
    let message = format!("cannot connect to {address}{}", from.unwrap_or_default());
    Error::with_source(ErrorKind::ConnectFailed, message, source)
}

fn dial_address(
    address: SocketAddr,
    options: &SocketOptions,
    limit: Option<Duration>,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    tune(&socket, options)?;
    if let Some(local) = options.local_address {
        socket.set_reuse_address(options.reuse_address)?;
        socket.bind(&SockAddr::from(local))?;
    }
    // A connect without any limit would end with the first signal.
    socket.connect_timeout(&address.into(), limit.unwrap_or(Duration::MAX))?;
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
    Ok(socket)
}

fn dial_unix(
    unix: UnixName,
    name: &str,
    options: &SocketOptions,
    deadline: Option<Instant>,
) -> Result<(Socket, Address), Error> {
    let target = unix_target(&unix)?;
    let connect = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        tune(&socket, options)?;
        // A full backlog makes a Unix socket wait as long as it may write.
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            socket.set_write_timeout(Some(left.max(Duration::from_millis(1))))?;
        }
        socket.connect(&target)?;
        socket.set_write_timeout(None)?;
        Ok(socket)
    };
    // A signal interrupts a connect that has a time limit, whatever its handler asks for.
    let socket = loop {
        match connect() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            connected => break connected,
        }
    };
    let socket = socket.map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => timeout(name),
        _ => Error::with_source(
            ErrorKind::ConnectFailed,
            format!("cannot connect to {name}"),
            source,
        ),
    })?;
    let peer = unix_peer(&socket, unix);
    Ok((socket, peer))
}

/// What the system calls a Unix socket's name.
pub(super) fn unix_target(name: &UnixName) -> Result<SockAddr, Error> {
    let path = match name {
        UnixName::Path(path) => path.as_os_str().to_owned(),
        UnixName::Abstract(_) if !cfg!(target_os = "linux") => {
            let message = format!("{name}: this system has no abstract Unix sockets");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        UnixName::Abstract(name) => OsString::from_vec([&[0], name.as_slice()].concat()),
        UnixName::Unnamed => OsString::new(),
    };
    SockAddr::unix(path).map_err(|source| {
        Error::with_source(
            ErrorKind::InvalidInput,
            format!("{name} is not a name for a Unix socket"),
            source,
        )
    })
}
