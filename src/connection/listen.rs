//! Listening, on TCP addresses and Unix sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

use super::dial::unix_target;
use super::socket::{local_address, peer_address, set_buffers};
use super::socket_file::{SocketFile, lock_folder, remove_stale};
use crate::address::{Address, UnixName};
use crate::config::SocketOptions;
use crate::error::{Error, ErrorKind};

/// A listening socket, and what belongs to it.
pub(crate) struct Listener {
    pub(crate) address: Address,
    /// Before the socket: its file is certainly ours only while the socket is open.
    file: Mutex<Option<SocketFile>>,
    pub(crate) socket: Arc<Socket>,
    /// Of a listener that the application has opened.
    bell: Option<Bell>,
}

impl Listener {
    /// A listener that the application has opened, and that does not block; its file, if it has
    /// one, is not ours.
    pub(crate) fn adopted(socket: Socket) -> Result<Self, Error> {
        let bell = Bell::new().map_err(|source| {
            Error::with_source(ErrorKind::Io, "the listener cannot be watched", source)
        })?;
        Ok(Listener {
            bell: Some(bell),
            ..Listener::new(socket, None)
        })
    }

    fn new(socket: Socket, file: Option<SocketFile>) -> Self {
        Listener {
            address: local_address(&socket),
            file: Mutex::new(file),
            socket: Arc::new(socket),
            bell: None,
        }
    }

    /// Waits for the next connection, at most until `stop`; who it is from.
    pub(crate) fn accept(&self) -> io::Result<(Socket, Address)> {
        loop {
            match (self.socket.accept(), &self.bell) {
                (Err(error), Some(bell)) if error.kind() == io::ErrorKind::WouldBlock => {
                    bell.wait_beside(&self.socket)?;
                }
                (accepted, _) => {
                    let (socket, name) = accepted?;
                    let peer = peer_address(&socket, &name);
                    return Ok((socket, peer));
                }
            }
        }
    }

    /// Wakes the thread that waits in `accept`. A socket of our own lets nobody in from now on,
    /// and its file is gone; one that the application has opened may have other owners, whom
    /// shutting it down would stop too.
    pub(crate) fn stop(&self) {
        // While the socket still listens no other server takes its file for a dead one's.
        drop(self.file.lock().take());
        match &self.bell {
            Some(bell) => bell.ring(),
            None => {
                // On Linux this wakes a thread that waits in accept.
                let _ = self.socket.shutdown(std::net::Shutdown::Both);
            }
        }
    }
}

/// Wakes a thread that waits for a socket.
struct Bell {
    here: Socket,
    there: Socket,
}

impl Bell {
    fn new() -> io::Result<Self> {
        let (here, there) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
        Ok(Bell { here, there })
    }

    fn ring(&self) {
        let _ = self.there.shutdown(std::net::Shutdown::Write);
    }

    /// Waits until the socket has something, or fails because the bell has rung.
    fn wait_beside(&self, socket: &Socket) -> io::Result<()> {
        let mut watched = [
            PollFd::new(&self.here, PollFlags::IN),
            PollFd::new(socket, PollFlags::IN),
        ];
        poll(&mut watched, None)?;
        let [bell, _] = watched;
        if bell.revents().is_empty() {
            return Ok(());
        }
        Err(io::Error::other("the listener is stopped"))
    }
}

/// Listens on all IP addresses of a name but those that this machine does not have, as of IPv6
/// where that is switched off; it must have one.
pub(crate) fn listen_tcp(
    addresses: &[SocketAddr],
    options: &SocketOptions,
) -> Result<Vec<Listener>, Error> {
    let mut listeners = Vec::new();
    let mut missing = None;
    for address in addresses {
        match open_tcp(*address, options) {
            Ok(socket) => listeners.push(Listener::new(socket, None)),
            Err(source) => {
                let is_missing = is_not_here(&source);
                let error = cannot_listen(&Address::Tcp(*address), source);
                if !is_missing {
                    return Err(error);
                }
                missing = Some(error);
            }
        }
    }
    match missing {
        Some(error) if listeners.is_empty() => Err(error),
        _ => Ok(listeners),
    }
}

fn open_tcp(address: SocketAddr, options: &SocketOptions) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(options.reuse_address)?;
    if options.reuse_port {
        socket.set_reuse_port(true)?;
    }
    if let (Some(v6_only), true) = (options.v6_only, address.is_ipv6()) {
        socket.set_only_v6(v6_only)?;
    }
    set_buffers(&socket, options)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(backlog(options))?;
    Ok(socket)
}

/// The machine has no such address, or none of its kind.
fn is_not_here(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT))
}

/// Listens on a Unix socket. A file that a dead server has left at its path is replaced; one
/// that a live server listens on, or that is no socket, is not.
pub(crate) fn listen_unix(
    name: &UnixName,
    options: &SocketOptions,
    deadline: Option<Instant>,
) -> Result<Listener, Error> {
    let target = unix_target(name)?;
    let open = || match name {
        UnixName::Path(path) => {
            let _locked = lock_folder(path, deadline)?;
            remove_stale(path, &target)?;
            let socket = bind(&target, options)?;
            let file = SocketFile::new(path)?;
            if let Some(mode) = options.unix_mode {
                file.set_mode(mode)?;
            }
            // Only from here on can anybody connect.
            socket.listen(backlog(options))?;
            Ok((socket, Some(file)))
        }
        _ => {
            let socket = bind(&target, options)?;
            socket.listen(backlog(options))?;
            Ok((socket, None))
        }
    };
    let address = Address::unix(name.clone());
    let (socket, file) = open().map_err(|source| cannot_listen(&address, source))?;
    Ok(Listener::new(socket, file))
}

fn bind(target: &SockAddr, options: &SocketOptions) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    set_buffers(&socket, options)?;
    socket.bind(target)?;
    Ok(socket)
}

fn backlog(options: &SocketOptions) -> i32 {
    i32::try_from(options.backlog).unwrap_or(i32::MAX)
}

fn cannot_listen(address: &Address, source: io::Error) -> Error {
    let kind = match source.kind() {
        io::ErrorKind::AddrInUse => ErrorKind::AddressInUse,
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        _ => ErrorKind::Io,
    };
    Error::with_source(kind, format!("cannot listen on {address}"), source)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What listens, or the kind of the error.
    fn listen(addresses: &[&str]) -> Result<Vec<String>, ErrorKind> {
        let addresses: Vec<_> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
        let listeners = listen_tcp(&addresses, &SocketOptions::default());
        let ip = |listener: Listener| listener.address.ip().unwrap().to_string();
        let listeners = listeners.map_err(|error| error.kind())?;
        Ok(listeners.into_iter().map(ip).collect())
    }

    #[test]
    fn addresses_that_the_machine_does_not_have_are_left_out_unless_it_has_none() {
        // Reserved for documentation.
        let elsewhere = ["[2001:db8::1]:0", "192.0.2.1:0"];
        let both = listen(&[elsewhere[0], "127.0.0.1:0", elsewhere[1], "127.0.0.2:0"]);
        assert_eq!(both.unwrap(), ["127.0.0.1", "127.0.0.2"]);
        assert_eq!(listen(&elsewhere), Err(ErrorKind::Io));
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = taken.local_addr().unwrap().to_string();
        let error = listen(&["127.0.0.1:0", &taken]);
        assert_eq!(error, Err(ErrorKind::AddressInUse));
    }
}
