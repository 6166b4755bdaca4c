//! The handshake, driven over a socket that no thread reads yet.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use rand::TryRngCore;
use rand::rngs::OsRng;
use socket2::Socket;

use super::Agreed;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::message::SessionId;
use crate::protocol::native::handshake::{
    HIGHEST, Hello, LOWEST, PREFACE, PeerLimits, PeerTimes, Welcome, choose_version, preface,
    read_preface,
};
use crate::status::Status;

/// How long a peer that is refused may take to read why.
const LINGER: Duration = Duration::from_millis(500);

/// Bytes from the operating system's source of randomness.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).map_err(|source| {
        Error::with_source(ErrorKind::Io, "the system gives no random bytes", source)
    })?;
    Ok(bytes)
}

/// A socket during its handshake, with what has come and was not used.
pub(crate) struct Greeting<'a> {
    socket: &'a Socket,
    deadline: Option<Instant>,
    limit: Duration,
    received: Vec<u8>,
}

impl<'a> Greeting<'a> {
    pub(crate) fn new(socket: &'a Socket, limit: Duration) -> Self {
        Greeting {
            socket,
            deadline: Instant::now().checked_add(limit),
            limit,
            received: Vec::new(),
        }
    }

    /// The client's side.
    pub(crate) fn greet(&mut self, config: &Config) -> Result<Agreed, Error> {
        let hello = Hello {
            random: random()?,
            limits: PeerLimits::announced(&config.limits),
            times: times(config),
        };
        let mut opening = preface().to_vec();
        opening.extend_from_slice(&hello.encode());
        self.send(&opening)?;
        let versions =
            self.read(|input| Ok(read_preface(input)?.map(|versions| (versions, PREFACE))))?;
        let version = choose_version(versions);
        // A server that refuses a version says so itself; its own words are better.
        let welcome = match (self.read(Welcome::decode), version) {
            (Err(_), Err(version)) => return Err(version),
            (welcome, _) => welcome?,
        };
        if let Some(status) = welcome.refusal {
            let kind = match status.code() {
                Status::VERSION => ErrorKind::Version,
                Status::OVERLOADED => ErrorKind::Overloaded,
                _ => ErrorKind::Refused,
            };
            return Err(Error::from_status(kind, status));
        }
        if !(LOWEST..=HIGHEST).contains(&welcome.version) {
            return Err(Error::new(
                ErrorKind::Malformed,
                format!("the server chose version {}", welcome.version),
            ));
        }
        Ok(Agreed {
            id: welcome.session,
            peer_limits: welcome.limits,
            peer_times: welcome.times,
        })
    }

    /// The server's side up to the decision; a client with no common version is refused here.
    pub(crate) fn receive(&mut self, config: &Config) -> Result<Hello, Error> {
        let versions =
            self.read(|input| Ok(read_preface(input)?.map(|versions| (versions, PREFACE))))?;
        if let Err(error) = choose_version(versions) {
            if let Some(status) = error.status() {
                self.refuse(config, status.clone());
            }
            return Err(error);
        }
        self.read(Hello::decode)
    }

    /// The server refuses; it reads on for a moment, or the refusal could be lost to a reset.
    pub(crate) fn refuse(&mut self, config: &Config, status: Status) {
        if self.send(&refusal(config, status)).is_err()
            || self.socket.shutdown(std::net::Shutdown::Write).is_err()
        {
            return;
        }
        self.deadline = Instant::now().checked_add(LINGER);
        let mut discarded = 0;
        while discarded < 64 << 10 {
            self.received.clear();
            match self.read_more() {
                Ok(()) => discarded += self.received.len(),
                Err(_) => return,
            }
        }
    }

    /// What came behind the handshake; the socket is made ready for the connection.
    pub(crate) fn finish(self) -> Result<Vec<u8>, Error> {
        self.socket
            .set_read_timeout(None)
            .and_then(|()| self.socket.set_write_timeout(None))
            .map_err(socket_error)?;
        Ok(self.received)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.socket
            .set_write_timeout(Some(self.time_left()?))
            .map_err(socket_error)?;
        (&mut &*self.socket)
            .write_all(bytes)
            .map_err(|source| self.io_error(source))
    }

    /// Reads until `decode` has what it wants.
    fn read<T>(
        &mut self,
        decode: impl Fn(&[u8]) -> Result<Option<(T, usize)>, Error>,
    ) -> Result<T, Error> {
        loop {
            if let Some((value, size)) = decode(&self.received)? {
                self.received.drain(..size);
                return Ok(value);
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Result<(), Error> {
        self.socket
            .set_read_timeout(Some(self.time_left()?))
            .map_err(socket_error)?;
        let mut chunk = [0; 2048];
        match (&mut &*self.socket).read(&mut chunk) {
            Ok(0) => Err(Error::new(
                ErrorKind::Disconnected,
                "the peer closed the connection during the handshake",
            )),
            Ok(count) => {
                self.received
                    .extend_from_slice(chunk.get(..count).unwrap_or_default());
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(self.io_error(error)),
        }
    }

    /// The time left, never zero: the system takes zero for "no limit".
    fn time_left(&self) -> Result<Duration, Error> {
        let Some(deadline) = self.deadline else {
            return Ok(Duration::from_secs(365 * 24 * 3600));
        };
        match deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(self.timeout()),
            left => Ok(left.max(Duration::from_millis(1))),
        }
    }

    fn timeout(&self) -> Error {
        Error::new(
            ErrorKind::Timeout,
            format!(
                "the handshake took longer than timeouts.handshake = {:?}",
                self.limit
            ),
        )
    }

    fn io_error(&self, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.timeout(),
            _ => Error::with_source(
                ErrorKind::Disconnected,
                "the connection broke during the handshake",
                source,
            ),
        }
    }
}

/// What this side announces of its time limits.
fn times(config: &Config) -> PeerTimes {
    let call = config.timeouts.call;
    PeerTimes {
        silence: match config.heartbeat.limit {
            Duration::MAX => 0,
            limit => u32::try_from(limit.as_millis()).unwrap_or(u32::MAX),
        },
        call: match call {
            Duration::MAX => 0,
            call => u32::try_from(call.as_millis()).unwrap_or(0),
        },
    }
}

/// Preface and welcome: the server lets the client in.
pub(crate) fn welcome(config: &Config, id: SessionId) -> Result<Vec<u8>, Error> {
    let welcome = Welcome {
        random: random()?,
        session: id,
        token: random()?,
        version: HIGHEST,
        versions: (LOWEST, HIGHEST),
        limits: PeerLimits::announced(&config.limits),
        times: times(config),
        refusal: None,
    };
    let mut answer = preface().to_vec();
    answer.extend_from_slice(&welcome.encode());
    Ok(answer)
}

/// Preface and refusal: all that a refused client gets.
pub(crate) fn refusal(config: &Config, status: Status) -> Vec<u8> {
    let mut answer = preface().to_vec();
    answer.extend_from_slice(&Welcome::refusal(&config.limits, status).encode());
    answer
}

fn socket_error(source: io::Error) -> Error {
    Error::with_source(ErrorKind::Io, "a socket option cannot be set", source)
}
