//! A byte proxy in this process that does to a connection what networks do: slices, merges,
//! delays, stalls, cuts and resets it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long a write blocks before it looks for events.
const TURN: Duration = Duration::from_millis(2);

/// What happens to the bytes of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    /// Most bytes that are passed on in one write.
    pub(crate) slice: Option<usize>,
    /// Bytes that are collected before they are passed on in one write, or the time that is
    /// waited for them.
    pub(crate) merge: Option<(usize, Duration)>,
    /// How long each read is held back.
    pub(crate) delay: Option<Duration>,
    /// Most bytes per second.
    pub(crate) rate: Option<usize>,
    /// After so many bytes something happens.
    pub(crate) after: Option<(usize, Event)>,
}

/// What happens in the middle of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Both streams end, tidily for the system: what comes later is swallowed.
    Cut,
    /// Both streams are reset.
    Reset,
    /// Nothing is read in this direction any more; after the time both streams are reset.
    Stall(Duration),
}

/// Bytes passed on, in the two directions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passed {
    pub(crate) to_server: Vec<u8>,
    pub(crate) to_client: Vec<u8>,
}

/// One connection through a proxy.
pub(crate) struct Proxy {
    address: SocketAddr,
    line: Arc<Line>,
}

struct Line {
    state: Mutex<State>,
    changed: Condvar,
    /// Held while a direction passes bytes on, so that an event finds whole writes only.
    writing: [Mutex<()>; 2],
}

#[derive(Default)]
struct State {
    /// The streams to the server and to the client: what each direction writes to.
    streams: Vec<TcpStream>,
    passed: [Vec<u8>; 2],
    event: Option<(Event, Instant)>,
    open_ways: usize,
}

impl Proxy {
    /// Passes one connection on to `server`.
    pub(crate) fn start(server: SocketAddr, to_server: Path, to_client: Path) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let line = Arc::new(Line {
            state: Mutex::new(State {
                open_ways: 2,
                ..State::default()
            }),
            changed: Condvar::new(),
            writing: Default::default(),
        });
        let own = line.clone();
        thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            drop(listener);
            let server = TcpStream::connect(server).unwrap();
            for stream in [&client, &server] {
                stream.set_nodelay(true).unwrap();
                stream.set_write_timeout(Some(TURN)).unwrap();
            }
            own.state.lock().unwrap().streams =
                vec![server.try_clone().unwrap(), client.try_clone().unwrap()];
            let back = own.clone();
            let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || back.run(1, from, to, &to_client));
            own.run(0, client, server, &to_server);
        });
        Proxy { address, line }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has been passed on so far, and when the event came.
    pub(crate) fn passed(&self) -> (Passed, Option<Instant>) {
        let state = self.line.state.lock().unwrap();
        let [to_server, to_client] = state.passed.clone();
        let passed = Passed {
            to_server,
            to_client,
        };
        (passed, state.event.map(|(_, when)| when))
    }

    /// Waits for the event.
    pub(crate) fn wait_event(&self, limit: Duration) -> Option<Instant> {
        let state = self.line.state.lock().unwrap();
        let (state, _) = self
            .line
            .changed
            .wait_timeout_while(state, limit, |state| state.event.is_none())
            .unwrap();
        state.event.map(|(_, when)| when)
    }

    /// Waits until both directions have ended.
    pub(crate) fn wait_end(&self, limit: Duration) -> bool {
        let state = self.line.state.lock().unwrap();
        let (state, _) = self
            .line
            .changed
            .wait_timeout_while(state, limit, |state| state.open_ways > 0)
            .unwrap();
        state.open_ways == 0
    }
}

impl Line {
    /// Carries one direction to its end.
    fn run(&self, way: usize, from: TcpStream, to: TcpStream, path: &Path) {
        self.carry(way, from, to, path);
        let mut state = self.state.lock().unwrap();
        state.open_ways -= 1;
        if state.open_ways == 0 {
            state.streams.clear();
        }
        drop(state);
        self.changed.notify_all();
    }

    fn carry(&self, way: usize, mut from: TcpStream, to: TcpStream, path: &Path) {
        let mut chunk = [0; 16 << 10];
        let mut left = path.after.map_or(usize::MAX, |(after, _)| after);
        loop {
            let count = match from.read(&mut chunk) {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            let mut bytes = chunk[..count].to_vec();
            if let Some((size, wait)) = path.merge {
                collect(&mut from, &mut bytes, size, wait);
            }
            if let Some(delay) = path.delay {
                thread::sleep(delay);
            }
            bytes.truncate(left);
            left -= bytes.len();
            for slice in bytes.chunks(path.slice.unwrap_or(usize::MAX)) {
                self.pass(way, &to, slice);
                if let Some(rate) = path.rate {
                    thread::sleep(Duration::from_secs_f64(slice.len() as f64 / rate as f64));
                }
            }
            if let (0, Some((_, event))) = (left, path.after) {
                self.happen(event);
            }
            if self.is_reset() {
                return;
            }
        }
        if !self.is_reset() {
            let _ = to.shutdown(Shutdown::Write);
        }
    }

    /// Passes bytes on; after an event they are swallowed.
    fn pass(&self, way: usize, mut to: &TcpStream, mut bytes: &[u8]) {
        let _writing = self.writing[way].lock().unwrap();
        while !bytes.is_empty() && self.state.lock().unwrap().event.is_none() {
            match to.write(bytes) {
                Ok(count) => {
                    let (written, rest) = bytes.split_at(count);
                    self.state.lock().unwrap().passed[way].extend_from_slice(written);
                    bytes = rest;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    fn is_reset(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.event.is_some_and(|(event, _)| event != Event::Cut)
    }

    fn happen(&self, event: Event) {
        if let Event::Stall(time) = event {
            // The other direction goes on meanwhile.
            thread::sleep(time);
        }
        let mut state = self.state.lock().unwrap();
        if state.event.is_some() {
            return;
        }
        state.event = Some((event, Instant::now()));
        let streams = std::mem::take(&mut state.streams);
        drop(state);
        self.changed.notify_all();
        for (way, stream) in streams.iter().enumerate() {
            if event == Event::Cut {
                let _writing = self.writing[way].lock().unwrap();
                let _ = stream.shutdown(Shutdown::Write);
            } else {
                // Reset once the last handle is dropped; the directions wake up and do it.
                let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
                let _ = stream.shutdown(Shutdown::Read);
            }
        }
    }
}

/// Reads on until so much is there, or nothing more comes in time.
fn collect(from: &mut TcpStream, bytes: &mut Vec<u8>, size: usize, wait: Duration) {
    from.set_read_timeout(Some(wait)).unwrap();
    let mut chunk = [0; 16 << 10];
    while bytes.len() < size {
        match from.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
    from.set_read_timeout(None).unwrap();
}
