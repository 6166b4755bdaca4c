//! Where a peer is: a TCP address, or a Unix socket and the process behind it.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::escape::Escaped;

/// What an address of a Unix socket begins with.
const UNIX: &str = "unix:";

/// The address of one end of a connection.
///
/// It prints as what `connect` and `bind` take: `127.0.0.1:2500`, `[::1]:2500`,
/// `unix:/run/app.sock`, `unix:@name`. A Unix peer prints with its process behind that; to dial
/// it again, take its [`name`](UnixAddress::name) alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(UnixAddress),
}

/// The address of a Unix socket: its name, and for a peer the process that opened it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct UnixAddress {
    /// The name it is bound to.
    pub name: UnixName,
    /// Who opened the peer's end, as the system vouches (SO_PEERCRED, Linux); `None` for the
    /// own end.
    pub process: Option<Process>,
}

/// What a Unix socket is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnixName {
    /// A path in the file system; `unix:/path`.
    Path(PathBuf),
    /// A name without a file, gone with its last socket (Linux); `unix:@name`.
    Abstract(Vec<u8>),
    /// Nothing, as most clients and both ends of a socket pair.
    Unnamed,
}

/// A process, as it was when it connected or listened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Process {
    /// The process number; it may have been given to another process since.
    pub pid: i32,
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl Address {
    /// The IP address and port; `None` for a Unix socket.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    /// The IP address; `None` for a Unix socket.
    pub fn ip(&self) -> Option<IpAddr> {
        self.socket().map(|address| address.ip())
    }

    /// The port; `None` for a Unix socket.
    pub fn port(&self) -> Option<u16> {
        self.socket().map(|address| address.port())
    }

    /// The path of a Unix socket, if it has one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Address::Unix(UnixAddress {
                name: UnixName::Path(path),
                ..
            }) => Some(path),
            _ => None,
        }
    }

    /// The process at a Unix socket's other end, where the system tells it.
    pub fn process(&self) -> Option<Process> {
        match self {
            Address::Tcp(_) => None,
            Address::Unix(address) => address.process,
        }
    }

    /// A Unix socket's address without a process.
    pub(crate) fn unix(name: UnixName) -> Self {
        Address::Unix(UnixAddress {
            name,
            process: None,
        })
    }
}

impl UnixName {
    /// The Unix socket that an address asks for; `None` if it asks for none.
    ///
    /// # Errors
    /// `InvalidInput` if the name is empty, or a path with a zero byte.
    pub(crate) fn parse(address: &str) -> Result<Option<UnixName>, Error> {
        let Some(name) = address.strip_prefix(UNIX) else {
            return Ok(None);
        };
        match name.strip_prefix('@') {
            Some(name) if !name.is_empty() => Ok(Some(UnixName::Abstract(name.into()))),
            None if !name.is_empty() && !name.contains('\0') => {
                Ok(Some(UnixName::Path(name.into())))
            }
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{address:?} names no Unix socket: unix:/PATH or unix:@NAME is expected"),
            )),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

/// For `std::net::TcpStream::connect` and the like.
impl ToSocketAddrs for Address {
    type Iter = std::option::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        match self.socket() {
            Some(address) => Ok(Some(address).into_iter()),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a Unix socket has no IP address",
            )),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(address) => address.fmt(f),
        }
    }
}

impl fmt::Display for UnixAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        match self.process {
            Some(Process { pid, uid, .. }) => write!(f, " (uid {uid}, pid {pid})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for UnixName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A peer chooses its own name.
            UnixName::Path(path) => write!(f, "{UNIX}{}", Escaped(&path.to_string_lossy())),
            UnixName::Abstract(name) => {
                write!(f, "{UNIX}@{}", Escaped(&String::from_utf8_lossy(name)))
            }
            UnixName::Unnamed => f.write_str(UNIX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_unix_sockets_print_as_they_are_asked_for() {
        for asked in [
            "unix:/run/app.sock",
            "unix:app.sock",
            "unix:@app",
            "unix:@µ",
        ] {
            let name = UnixName::parse(asked).unwrap().unwrap();
            assert_eq!(Address::unix(name).to_string(), asked);
        }
        assert_eq!(UnixName::parse("127.0.0.1:1").unwrap(), None);
        for wrong in ["unix:", "unix:@", "unix:a\0b"] {
            let error = UnixName::parse(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn no_name_breaks_a_line() {
        for name in [
            UnixName::Path("a\nb".into()),
            UnixName::Abstract(b"a\nb".to_vec()),
        ] {
            let printed = Address::unix(name).to_string();
            assert!(printed.ends_with("a\\nb"), "{printed}");
        }
    }
}
