//! The sockets underneath: their options, and those that the application brings.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::net::SendFlags;
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};

use crate::address::{Address, Process, UnixAddress, UnixName};
use crate::config::SocketOptions;
use crate::error::{Error, ErrorKind};

#[cfg(not(target_vendor = "apple"))]
const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
/// There the socket itself is told to raise no signal.
#[cfg(target_vendor = "apple")]
const FLAGS: SendFlags = SendFlags::DONTWAIT;

/// Sets the options of a socket that is new, or was accepted.
pub(crate) fn tune(socket: &Socket, options: &SocketOptions) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    set_buffers(socket, options)?;
    #[cfg(target_vendor = "apple")]
    socket.set_nosigpipe(true)?;
    if socket.local_addr()?.domain() == Domain::UNIX {
        return Ok(());
    }
    socket.set_tcp_nodelay(options.nodelay)?;
    if let Some(idle) = options.keepalive {
        let mut keepalive = TcpKeepalive::new().with_time(idle);
        if let Some(interval) = options.keepalive_interval {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(probes) = options.keepalive_probes {
            keepalive = keepalive.with_retries(probes);
        }
        socket.set_tcp_keepalive(&keepalive)?;
    } else {
        // One that the application brings may have it.
        socket.set_keepalive(false)?;
    }
    #[cfg(target_os = "linux")]
    if options.user_timeout.is_some() {
        socket.set_tcp_user_timeout(options.user_timeout)?;
    }
    Ok(())
}

/// Sets the sizes of the kernel's buffers; accepted sockets inherit them from their listener.
pub(super) fn set_buffers(socket: &Socket, options: &SocketOptions) -> io::Result<()> {
    if let Some(bytes) = options.send_buffer {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = options.receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

/// A connected stream that the application brings, and who is at its other end.
///
/// # Errors
/// `InvalidInput` if it is not one.
pub(crate) fn adopt_stream(
    descriptor: OwnedFd,
    options: &SocketOptions,
) -> Result<(Socket, Address), Error> {
    let socket = adopt(descriptor)?;
    let Ok(peer) = socket.peer_addr() else {
        return Err(not_a("connected stream"));
    };
    tune(&socket, options).map_err(cannot_be_used)?;
    let peer = peer_address(&socket, &peer);
    Ok((socket, peer))
}

/// A listening socket that the application brings.
///
/// # Errors
/// `InvalidInput` if it is not one.
pub(crate) fn adopt_listener(
    descriptor: OwnedFd,
    options: &SocketOptions,
) -> Result<Socket, Error> {
    let socket = adopt(descriptor)?;
    // Only some systems can tell; on the others accepting fails and says why.
    #[cfg(target_os = "linux")]
    if !socket.is_listener().map_err(cannot_be_used)? {
        return Err(not_a("listener"));
    }
    // Other processes may accept from it too: nobody must wait in accept for what they took.
    socket
        .set_nonblocking(true)
        .and_then(|()| set_buffers(&socket, options))
        .map_err(cannot_be_used)?;
    Ok(socket)
}

fn adopt(descriptor: OwnedFd) -> Result<Socket, Error> {
    let socket = Socket::from(descriptor);
    let family = socket.local_addr().map(|address| address.domain());
    let is_known = matches!(family, Ok(Domain::IPV4 | Domain::IPV6 | Domain::UNIX));
    if !is_known || !matches!(socket.r#type(), Ok(Type::STREAM)) {
        return Err(not_a("TCP or Unix stream socket"));
    }
    let plain = || {
        // What was inherited is not handed on to the children of this process.
        socket.set_cloexec(true)?;
        // Time limits of the application's would look like a dead line.
        socket.set_read_timeout(None)?;
        socket.set_write_timeout(None)
    };
    plain().map_err(cannot_be_used)?;
    Ok(socket)
}

fn not_a(what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        format!("the descriptor is not a {what}"),
    )
}

fn cannot_be_used(source: io::Error) -> Error {
    Error::with_source(ErrorKind::Io, "the socket cannot be used", source)
}

/// The address of this end.
pub(crate) fn local_address(socket: &Socket) -> Address {
    let name = socket.local_addr();
    name.map_or_else(|_| Address::unix(UnixName::Unnamed), |name| address(&name))
}

/// The address of the other end, whose name the system has told: later it may not, of a peer
/// that has gone. For a Unix socket with the process behind it.
pub(super) fn peer_address(socket: &Socket, name: &SockAddr) -> Address {
    match address(name) {
        Address::Unix(UnixAddress { name, .. }) => unix_peer(socket, name),
        tcp => tcp,
    }
}

/// The address of a Unix peer that is bound to, or was dialled by, this name.
pub(super) fn unix_peer(socket: &Socket, name: UnixName) -> Address {
    let process = peer_process(socket);
    Address::Unix(UnixAddress { name, process })
}

fn address(address: &SockAddr) -> Address {
    // An IPv4 peer of an IPv6 listener under its IPv4 address.
    if let Some(mut ip) = address.as_socket() {
        ip.set_ip(ip.ip().to_canonical());
        return Address::Tcp(ip);
    }
    let path = address
        .as_pathname()
        .map(|path| UnixName::Path(path.into()));
    let name = path.or_else(|| Some(UnixName::Abstract(abstract_name(address)?)));
    Address::unix(name.unwrap_or(UnixName::Unnamed))
}

#[cfg(target_os = "linux")]
fn abstract_name(address: &SockAddr) -> Option<Vec<u8>> {
    address.as_abstract_namespace().map(<[u8]>::to_vec)
}

#[cfg(not(target_os = "linux"))]
fn abstract_name(_: &SockAddr) -> Option<Vec<u8>> {
    None
}

#[cfg(target_os = "linux")]
fn peer_process(socket: &Socket) -> Option<Process> {
    use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

    let peer = getsockopt(socket, PeerCredentials).ok()?;
    Some(Process {
        pid: peer.pid(),
        uid: peer.uid(),
        gid: peer.gid(),
    })
}

#[cfg(not(target_os = "linux"))]
fn peer_process(_: &Socket) -> Option<Process> {
    None
}

/// The socket of a session or listener, kept open as long as this handle lives; to look at, or
/// to set options that this crate does not know.
///
/// Reading from it, writing to it or making it non-blocking breaks its session.
#[derive(Clone, Debug)]
pub struct OpenSocket(Arc<Socket>);

impl OpenSocket {
    pub(crate) fn new(socket: Arc<Socket>) -> Self {
        OpenSocket(socket)
    }

    /// The address of this end.
    pub fn local_address(&self) -> Address {
        local_address(&self.0)
    }

    /// Bytes of the kernel's send buffer, as granted.
    ///
    /// # Errors
    /// `Io` if the system does not tell.
    pub fn send_buffer(&self) -> Result<usize, Error> {
        self.0.send_buffer_size().map_err(cannot_be_used)
    }

    /// Bytes of the kernel's receive buffer, as granted.
    ///
    /// # Errors
    /// `Io` if the system does not tell.
    pub fn receive_buffer(&self) -> Result<usize, Error> {
        self.0.recv_buffer_size().map_err(cannot_be_used)
    }
}

impl AsFd for OpenSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Writes what the system takes at once.
#[inline]
pub(crate) fn send_at_once(socket: &Socket, bytes: &[u8]) -> rustix::io::Result<usize> {
    rustix::net::send(socket, bytes, FLAGS)
}

/// What ended a connection whose socket could not be written.
pub(super) fn write_error(source: io::Error) -> Error {
    Error::with_source(
        ErrorKind::Disconnected,
        "writing to the peer failed",
        source,
    )
}
