//! Listening, on TCP addresses and Unix sockets.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use socket2::{Domain, SockAddr, Socket, Type};

use super::dial::unix_target;
use super::socket::{local_address, set_buffers};
use crate::address::{Address, UnixName};
use crate::config::SocketOptions;
use crate::error::{Error, ErrorKind};

/// A listening socket, and the file that belongs to it.
pub(crate) struct Listener {
    pub(crate) socket: Arc<Socket>,
    pub(crate) address: Address,
    /// Removed with the listener.
    _file: Option<SocketFile>,
}

impl Listener {
    /// A listener that the application has opened; its file, if it has one, is not ours.
    pub(crate) fn adopted(socket: Socket) -> Self {
        Listener::new(socket, None)
    }

    fn new(socket: Socket, file: Option<SocketFile>) -> Self {
        Listener {
            address: local_address(&socket),
            socket: Arc::new(socket),
            _file: file,
        }
    }
}

/// Listens on an IP address and port.
pub(crate) fn listen_tcp(address: SocketAddr, options: &SocketOptions) -> Result<Listener, Error> {
    let open = || {
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
    };
    let socket = open().map_err(|source| cannot_listen(&Address::Tcp(address), source))?;
    Ok(Listener::new(socket, None))
}

/// Listens on a Unix socket. A file that a dead server has left at its path is replaced; one
/// that a live server listens on, or that is no socket, is not.
pub(crate) fn listen_unix(name: &UnixName, options: &SocketOptions) -> Result<Listener, Error> {
    let target = unix_target(name)?;
    let open = || match name {
        UnixName::Path(path) => {
            // Of two servers that start at once, one could remove the other's fresh file.
            let folder = fs::File::open(folder_of(path))?;
            let _ = flock(&folder, FlockOperation::LockExclusive);
            remove_stale(path, &target)?;
            let socket = bind(&target, options)?;
            let file = SocketFile::new(path)?;
            if let Some(mode) = options.unix_mode {
                fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
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
        _ => ErrorKind::Io,
    };
    Error::with_source(kind, format!("cannot listen on {address}"), source)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Removes the file of a socket on which nobody listens any more.
fn remove_stale(path: &Path, target: &SockAddr) -> io::Result<()> {
    let is_socket = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type().is_socket(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !is_socket {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "there is a file of that name, and it is no socket",
        ));
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    match probe.connect(target) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        // Whatever else is there is alive: binding will say that the address is taken.
        _ => Ok(()),
    }
}

/// The file of a Unix socket of ours: removed when the listener goes, unless another has taken
/// its place.
struct SocketFile {
    path: PathBuf,
    device: u64,
    number: u64,
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(SocketFile {
            // Wherever the process goes meanwhile.
            path: std::path::absolute(path)?,
            device: metadata.dev(),
            number: metadata.ino(),
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.number));
        if is_ours {
            // Gone already, or the folder is closed to us: the next server replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}
