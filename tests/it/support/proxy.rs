//! A byte proxy in this process that does to connections what networks do: it slices, merges,
//! delays, slows, stalls, swallows, cuts and resets them, by rules that may change meanwhile.
//!
//! It stands alone on std and socket2, so that other programs can include it by its path.

// Found in the same place however this file is included.
#[path = "proxy/line.rs"]
mod line;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use self::line::Line;

/// How long the end of a proxy waits for its threads.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// What happens to the bytes of one direction, in every connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) flow: Flow,
    /// Most bytes that are passed on in one write.
    pub(crate) slice: Option<usize>,
    /// Bytes that are collected before they are passed on in one write, or the time that is
    /// waited for more.
    pub(crate) merge: Option<(usize, Duration)>,
    /// How long each piece is held back.
    pub(crate) delay: Option<Duration>,
    /// Most bytes per second.
    pub(crate) rate: Option<usize>,
    /// Where each connection is cut.
    pub(crate) cut: Option<Cut>,
    /// What is passed on is kept, for [`Proxy::recorded`].
    pub(crate) record: bool,
}

/// Whether bytes move at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Flow {
    #[default]
    Pass,
    /// Everything is read and nothing passed on, not even the end.
    Swallow,
    /// Nothing is read, so the buffers of the sender fill.
    Stall,
}

/// A cut after exactly so many bytes of a direction, counted from the beginning of a connection.
/// If more have passed when the rule comes, the next byte finds the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) after: u64,
    /// How long nothing is read in this direction before the cut.
    pub(crate) wait: Duration,
    pub(crate) end: End,
}

/// How a connection is cut: always on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Tidily for the system: the streams end, and what still comes is swallowed.
    Fin,
    Reset,
}

/// Passes connections on to a server, until it is dropped; its threads end with it.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Holds the port while connections are refused.
    _port: Socket,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    server: SocketAddr,
    rules: [Rules; 2],
    recorded: [Vec<u8>; 2],
    passed: [u64; 2],
    /// None while connections are refused.
    listener: Option<Arc<Socket>>,
    lines: Vec<Arc<Line>>,
    connections: usize,
    /// When a line was cut last.
    cut: Option<Instant>,
    threads: usize,
    stopped: bool,
}

impl Proxy {
    /// A proxy that damages nothing yet.
    pub(crate) fn start(server: SocketAddr) -> Proxy {
        Proxy::with(server, Rules::default(), Rules::default())
    }

    pub(crate) fn with(server: SocketAddr, to_server: Rules, to_client: Rules) -> Proxy {
        let port = bound("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = port.local_addr().unwrap().as_socket().unwrap();
        let listener = Arc::new(listening(address).unwrap());
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                server,
                rules: [to_server, to_client],
                recorded: Default::default(),
                passed: [0; 2],
                listener: Some(listener),
                lines: Vec::new(),
                connections: 0,
                cut: None,
                threads: 0,
                stopped: false,
            }),
            changed: Condvar::new(),
        });
        Shared::spawn(&shared, |shared| Shared::accept(&shared));
        Proxy {
            address,
            shared,
            _port: port,
        }
    }

    /// Where clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the rules of one direction, also for the connections that exist. What has been
    /// read already still goes by the old ones.
    pub(crate) fn set(&self, way: Way, rules: Rules) {
        self.shared.state().rules[way as usize] = rules;
        self.shared.changed.notify_all();
    }

    /// Replaces the rules of both directions.
    pub(crate) fn set_both(&self, rules: &Rules) {
        self.set(Way::ToServer, rules.clone());
        self.set(Way::ToClient, rules.clone());
    }

    /// Ends all connections that exist, now.
    pub(crate) fn cut(&self, end: End) {
        let lines = self.shared.state().lines.clone();
        for line in lines {
            self.shared.end(&line, end);
        }
    }

    /// New connections are refused by the system.
    pub(crate) fn refuse(&self) {
        if let Some(listener) = self.shared.state().listener.take() {
            // Wakes who waits in accept.
            let _ = listener.shutdown(Shutdown::Both);
        }
    }

    /// New connections are accepted again.
    pub(crate) fn accept(&self) {
        let mut state = self.shared.state();
        if state.listener.is_none() {
            state.listener = Some(Arc::new(listening(self.address).unwrap()));
        }
        self.shared.changed.notify_all();
    }

    /// New connections go to another server.
    pub(crate) fn retarget(&self, server: SocketAddr) {
        self.shared.state().server = server;
    }

    /// How many connections were accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        self.shared.state().lines.len()
    }

    /// Bytes passed on in this direction so far, in all connections.
    pub(crate) fn passed(&self, way: Way) -> u64 {
        self.shared.state().passed[way as usize]
    }

    /// What was passed on in this direction while the rules said to record it.
    pub(crate) fn recorded(&self, way: Way) -> Vec<u8> {
        self.shared.state().recorded[way as usize].clone()
    }

    /// Waits until a connection has been cut, here or by a rule.
    pub(crate) fn wait_cut(&self, limit: Duration) -> Option<Instant> {
        let wait = |state: &State| state.cut.is_none();
        self.shared.wait(limit, wait).cut
    }

    /// Waits until no connection is open; whether that is so.
    pub(crate) fn wait_end(&self, limit: Duration) -> bool {
        let wait = |state: &State| !state.lines.is_empty();
        self.shared.wait(limit, wait).lines.is_empty()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.refuse();
        let mut state = self.shared.state();
        state.stopped = true;
        let lines = state.lines.clone();
        drop(state);
        for line in &lines {
            self.shared.end(line, End::Reset);
            line.reset();
        }
        drop(lines);
        self.shared.changed.notify_all();
        drop(self.shared.wait(LAST_WAIT, |state| state.threads > 0));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn wait(&self, limit: Duration, wait: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.state();
        let waited = self.changed.wait_timeout_while(state, limit, |s| wait(s));
        waited.unwrap().0
    }

    fn spawn(shared: &Arc<Self>, run: impl FnOnce(Arc<Shared>) + Send + 'static) {
        shared.state().threads += 1;
        let shared = shared.clone();
        thread::spawn(move || {
            run(shared.clone());
            shared.state().threads -= 1;
            shared.changed.notify_all();
        });
    }

    fn accept(shared: &Arc<Self>) {
        loop {
            let state = shared.state();
            let wait = |state: &mut State| state.listener.is_none() && !state.stopped;
            let state = shared.changed.wait_while(state, wait).unwrap();
            if state.stopped {
                return;
            }
            let listener = state.listener.clone();
            drop(state);
            match listener.map(|listener| listener.accept()) {
                Some(Ok((client, _))) => {
                    shared.state().connections += 1;
                    // The client of a server that is not there is told by the end.
                    let _ = Shared::begin(shared, client.into());
                }
                _ => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn begin(shared: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let target = shared.state().server;
        let server = TcpStream::connect(target)?;
        let line = Arc::new(Line::new(client, server)?);
        let mut state = shared.state();
        if state.stopped {
            return Ok(());
        }
        state.lines.push(line.clone());
        drop(state);
        for way in [Way::ToServer, Way::ToClient] {
            let line = line.clone();
            Shared::spawn(shared, move |shared| shared.run(line, way));
        }
        Ok(())
    }
}

/// Two sockets may be bound to the port: one keeps it, the other listens while it exists.
fn bound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn listening(address: SocketAddr) -> io::Result<Socket> {
    let socket = bound(address)?;
    socket.listen(1024)?;
    Ok(socket)
}
