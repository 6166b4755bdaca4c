//! What the tests on live sockets share: a watchdog, a peer made by hand, child processes, and
//! what the system says about this process.

pub(crate) mod asleep;
pub(crate) mod bodies;
pub(crate) mod folder;
pub(crate) mod proxy;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::panic::resume_unwind;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use trunkline::message::{Message, MessageRef};
use trunkline::protocol::native::handshake::{
    HIGHEST, Hello, LOWEST, PREFACE, PeerLimits, PeerTimes, Welcome, preface, read_preface,
};
use trunkline::protocol::{Decoded, Native, Protocol};
use trunkline::{CodecId, Kind, Limits, Route, Server, Session, SessionId};

/// Long enough for anything that is not itself measured.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// How long what is due at once may take while others use the machine; below every time limit
/// that is the default, so that whoever waits for one of those is found out.
pub(crate) const PROMPT: Duration = Duration::from_secs(3);

/// Bytes of a stack for which no machine has the room.
pub(crate) const NO_STACK: usize = usize::MAX - (1 << 20);

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Whether the machine is emulated, which `.ci/run` says: slow, and without some of its system.
pub(crate) fn is_emulated() -> bool {
    std::env::var_os("TRUNKLINE_TEST_EMULATED").is_some()
}

/// How long something may take that takes so long on a real machine.
pub(crate) fn allowed(limit: Duration) -> Duration {
    if is_emulated() { limit * 4 } else { limit }
}

/// Why a test that starts a process is left out on an emulated machine; those of 32 bits that
/// are none run it.
pub(crate) const STARTS_A_PROCESS: &str = "a fork of an emulator with other threads can hang";

/// Whether this test is left out, which it says, because the machine is emulated.
pub(crate) fn left_out_under_emulation(why: &str) -> bool {
    if is_emulated() {
        let thread = thread::current();
        println!("EMULATED: {}: {why}", thread.name().unwrap_or("test"));
    }
    is_emulated()
}

/// Runs a test on a thread of its own and fails if it is not done by the deadline.
#[track_caller]
pub(crate) fn within<R: Send + 'static>(
    limit: Duration,
    body: impl FnOnce() -> R + Send + 'static,
) -> R {
    let limit = allowed(limit);
    let (sender, done) = mpsc::channel();
    let name = thread::current().name().unwrap_or("test").to_owned();
    let thread = thread::Builder::new()
        .name(name.clone())
        .spawn(move || {
            let result = body();
            let _ = sender.send(());
            result
        })
        .unwrap();
    match done.recv_timeout(limit) {
        Err(RecvTimeoutError::Timeout) => panic!("{name} is not done after {limit:?}: it hangs"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// Waits until something that other threads bring about is so, at most until the limit.
pub(crate) fn eventually(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if start.elapsed() > limit {
            return is_so();
        }
        thread::sleep(millis(1));
    }
}

/// Where a server listens on TCP.
pub(crate) fn tcp_address(server: &Server) -> SocketAddr {
    server.local_address().socket().unwrap()
}

/// The server's session with this number, which it has at the latest soon after the connect.
pub(crate) fn server_session(server: &Server, id: SessionId) -> Session {
    assert!(eventually(LIMIT, || server.hub().session(id).is_ok()));
    server.hub().session(id).unwrap()
}

/// A peer that speaks by hand, over a plain stream.
pub(crate) struct RawPeer {
    pub(crate) stream: TcpStream,
    pub(crate) session: SessionId,
    /// What was read and not yet taken.
    pub(crate) received: Vec<u8>,
}

/// The limits of a raw peer: those of this crate's defaults.
pub(crate) fn raw_limits() -> PeerLimits {
    PeerLimits::announced(&Limits::default())
}

/// Preface and hello.
pub(crate) fn opening() -> Vec<u8> {
    opening_with(PeerTimes::default())
}

fn opening_with(times: PeerTimes) -> Vec<u8> {
    let hello = Hello {
        random: [7; 32],
        limits: raw_limits(),
        times,
    };
    [preface().to_vec(), hello.encode()].concat()
}

/// The frame of a message without metadata.
pub(crate) fn frame(kind: Kind, route: u32, sequence: u32, body: &[u8]) -> Vec<u8> {
    let message = MessageRef::new(kind, Route::Number(route), sequence, CodecId::BYTES, body);
    let mut frame = Vec::new();
    Native.encode(&message, &mut frame).unwrap();
    frame
}

/// The frame of a pong or goodbye.
pub(crate) fn counts_frame(kind: Kind, messages: u64, bytes: u64) -> Vec<u8> {
    let body = [messages.to_le_bytes(), bytes.to_le_bytes()].concat();
    frame(kind, 0, 0, &body)
}

impl RawPeer {
    /// Connects and announces how long silence may last, in milliseconds.
    pub(crate) fn dial_silent(address: impl ToSocketAddrs, silence: u32) -> RawPeer {
        let times = PeerTimes { silence, call: 0 };
        RawPeer::dial_with(address, &opening_with(times))
    }

    /// Connects and does the client's side of the handshake.
    pub(crate) fn dial(address: impl ToSocketAddrs) -> RawPeer {
        RawPeer::dial_with(address, &opening())
    }

    /// Sends the opening, and whatever follows it, in one write.
    pub(crate) fn dial_with(address: impl ToSocketAddrs, opening: &[u8]) -> RawPeer {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut peer = RawPeer {
            stream,
            session: SessionId(0),
            received: Vec::new(),
        };
        peer.send(opening);
        peer.expect_preface();
        let welcome = peer.take(|input| Welcome::decode(input).unwrap());
        assert_eq!(welcome.refusal, None);
        peer.session = welcome.session;
        peer
    }

    /// Accepts one connection and does the server's side of the handshake.
    pub(crate) fn accept(listener: &TcpListener) -> RawPeer {
        RawPeer::accept_with(listener, raw_limits(), &[])
    }

    /// Accepts with other limits; `more` goes out with the welcome in one write.
    pub(crate) fn accept_with(listener: &TcpListener, limits: PeerLimits, more: &[u8]) -> RawPeer {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut peer = RawPeer {
            stream,
            session: SessionId(77),
            received: Vec::new(),
        };
        peer.expect_preface();
        peer.take(|input| Hello::decode(input).unwrap());
        let welcome = Welcome {
            random: [9; 32],
            session: peer.session,
            token: [0; 16],
            version: HIGHEST,
            versions: (LOWEST, HIGHEST),
            limits,
            times: PeerTimes::default(),
            refusal: None,
        };
        let answer = [&preface()[..], &welcome.encode(), more].concat();
        peer.send(&answer);
        peer
    }

    fn expect_preface(&mut self) {
        let versions = self.take(|input| {
            let versions = read_preface(input).unwrap()?;
            Some((versions, PREFACE))
        });
        assert_eq!(versions, (LOWEST, HIGHEST));
    }

    /// Reads until `decode` finds what it wants at the front.
    fn take<T>(&mut self, decode: impl Fn(&[u8]) -> Option<(T, usize)>) -> T {
        loop {
            if let Some((found, size)) = decode(&self.received) {
                self.received.drain(..size);
                return found;
            }
            assert!(self.read_more().unwrap() > 0, "the stream ended too early");
        }
    }

    /// Reads once; 0 is the end.
    pub(crate) fn read_more(&mut self) -> std::io::Result<usize> {
        let mut chunk = [0; 16 << 10];
        let count = self.stream.read(&mut chunk)?;
        self.received.extend_from_slice(&chunk[..count]);
        Ok(count)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn push(&mut self, route: u32, body: &[u8]) {
        self.send(&frame(Kind::Push, route, 0, body));
    }

    pub(crate) fn call(&mut self, route: u32, sequence: u32, body: &[u8]) {
        self.send(&frame(Kind::Call, route, sequence, body));
    }

    /// The next frame but pings, which come unasked; `None` at the end of the stream, however it
    /// ends.
    pub(crate) fn next(&mut self) -> Option<Message> {
        loop {
            let message = self.next_of_all()?;
            if message.kind != Kind::Ping {
                return Some(message);
            }
        }
    }

    /// The next frame.
    pub(crate) fn next_of_all(&mut self) -> Option<Message> {
        let limits = Limits::default();
        loop {
            match Native.decode(&self.received, &limits).unwrap() {
                Decoded::Message { message, size } => {
                    let message = message.to_message();
                    self.received.drain(..size);
                    return Some(message);
                }
                Decoded::Incomplete { .. } => {}
                other => panic!("the peer sent {other:?}"),
            }
            match self.read_more() {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if is_end(&error) => return None,
                Err(error) => panic!("the peer says nothing: {error}"),
            }
        }
    }

    /// Reads until the peer closes; whether it did by the limit.
    pub(crate) fn is_closed_within(&mut self, limit: Duration) -> bool {
        let start = Instant::now();
        loop {
            let Some(left) = limit.checked_sub(start.elapsed()) else {
                return false;
            };
            self.stream
                .set_read_timeout(Some(left.max(millis(1))))
                .unwrap();
            match self.read_more() {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if is_end(&error) => return true,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return false;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Says goodbye properly: exchanges goodbyes, sends the final pong, reads to the end.
    /// `messages` and `bytes` are what this peer has received.
    pub(crate) fn close(mut self, messages: u64, bytes: u64) {
        self.send(&counts_frame(Kind::Goodbye, messages, bytes));
        self.send(&counts_frame(Kind::Pong, messages, bytes));
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        assert!(self.is_closed_within(LIMIT));
    }

    /// Makes the close a reset.
    pub(crate) fn reset(self) {
        reset(self.stream);
    }
}

/// The ways in which a stream ends.
pub(crate) fn is_end(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe
    )
}

/// Closes so that the peer sees a reset.
pub(crate) fn reset(stream: TcpStream) {
    let socket = socket2::Socket::from(stream);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
}

const CHILD: &str = "TRUNKLINE_TEST_CHILD";

/// This test binary, to run one test as the child `role` of the test that asks.
pub(crate) fn child(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, role);
    command
}

/// What this process is to do, if it is the child of the test.
pub(crate) fn child_role() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// How many threads this process has.
pub(crate) fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// How many descriptors this process has open.
pub(crate) fn descriptor_count() -> usize {
    // Reading the folder opens one itself.
    std::fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// Resident memory of this process, in bytes.
pub(crate) fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Processor time that this process has used.
pub(crate) fn processor_time() -> Duration {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).unwrap();
    [usage.user_time(), usage.system_time()]
        .iter()
        .map(|time| {
            Duration::from_secs(time.tv_sec() as u64) + Duration::from_micros(time.tv_usec() as u64)
        })
        .sum()
}
