//! The driver: one socket with its reader thread and its writer role.
//!
//! What is said over the connection is decided by [`link`](crate::link) and framed by
//! [`protocol`](crate::protocol); here are the socket, the threads and the clock. The rooms:
//!
//! - `sending`: messages into the queue; `framed_before`, those from before there was one;
//!   `gathering`, what handlers send in one piece; `overflow`, what becomes of a push for which
//!   there is no room
//! - `writing`: the writer role, which alone writes to the socket; `output`, what it works on
//! - `reading`: the reader thread; `substitute`, those that stand in for it; `order`, who of them
//!   does what; `receiving`, what is done with what comes; `buffer`, where it is read into;
//!   `seat`, what such a thread knows about itself; `serving`, which call a handler serves;
//!   `arrival`, when a message came; `sampling`, which handlers are timed
//! - `inlet`: the ways into an inbox and a pool, and the wait for a place there
//! - `calling`: calls of this side; `open_calls`, the table of them; `waiter`, where one waits
//! - `cancelling`: calls that the peer gave up, and what was called for them
//! - `closing`: the goodbyes; `ending`: failures and the end; `report`, what is known then
//! - `watching`: heartbeats, and a look at the peer; `observing`: how it is at one moment; `owner`,
//!   what the connections of one server or client share
//! - `never`: what stands for a connection before the first
//! - `dial`, `listen`, `handshake`, `socket`, `threads`: what comes before

mod arrival;
mod buffer;
pub(crate) mod calling;
mod cancelling;
mod closing;
pub(crate) mod dial;
pub(crate) mod ending;
mod framed_before;
mod gathering;
pub(crate) mod handshake;
pub(crate) mod inlet;
pub(crate) mod listen;
mod never;
mod observing;
mod open_calls;
mod order;
mod output;
mod overflow;
mod owner;
mod reading;
mod receiving;
mod report;
pub(crate) mod sampling;
mod seat;
mod sending;
pub(crate) mod serving;
pub(crate) mod socket;
mod socket_file;
mod substitute;
pub(crate) mod threads;
pub(crate) mod waiter;
mod watching;
mod writing;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam::atomic::AtomicCell;
use parking_lot::{Condvar, Mutex};
use socket2::Socket;

use crate::address::Address;
use crate::config::Config;
use crate::error::Error;
use crate::link::closing::Closing;
use crate::link::delivery::Delivery;
use crate::link::heartbeat::Schedule;
use crate::link::watch::{Budget, Watch};
use crate::memory::{Account, UNCOUNTED};
use crate::message::{Kind, MessageRef, SessionId};
use crate::protocol::Framing;
use crate::protocol::native::handshake::{PeerLimits, PeerTimes};
use crate::queue::{Bell, Bound, SendQueue};
use crate::stats::{Counters, Stats};
use crate::timer::{Timed, Timer};

pub(crate) use self::arrival::Arrival;
use self::cancelling::Cancelling;
use self::ending::Ending;
pub(crate) use self::ending::last_steps;
pub(crate) use self::framed_before::PushFrame;
use self::gathering::Gather;
use self::inlet::{Inlet, Room};
use self::open_calls::OpenCalls;
use self::output::WriteHalf;
use self::overflow::Overflow;
pub(crate) use self::owner::Owner;
pub(crate) use self::reading::prepare;
pub use self::report::{CloseReason, CloseReport};
pub(crate) use self::seat::{before_wait, is_handler_of, is_handling, serve};
pub(crate) use self::sending::Wait;
pub use self::socket::OpenSocket;
pub(crate) use self::writing::Company;

/// No check is scheduled.
const NEVER: u64 = u64::MAX;

/// Where messages and events go: what the layers above implement. It is owned by the reader
/// thread and dropped with it, so that nothing above can keep a dead connection alive.
pub(crate) trait Receiver: Send + Sync + 'static {
    /// The session begins; no message has been read yet.
    fn connected(&self);

    /// A push or a call. A call must be answered, now or later. The answer is whether there was
    /// a handler for it.
    fn message(&self, message: &MessageRef<'_>, arrival: Arrival) -> bool;

    /// The session has ended; called once, after the last message.
    fn closed(&self, report: &CloseReport);

    /// The closed event is over, whatever became of it.
    fn end(&self);
}

/// What the handshake agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    pub(crate) id: SessionId,
    pub(crate) peer_limits: PeerLimits,
    pub(crate) peer_times: PeerTimes,
}

/// One connection, shared by its threads and all who send on it.
pub(crate) struct Connection {
    pub(crate) id: SessionId,
    pub(crate) peer: Address,
    pub(crate) local: Address,
    pub(crate) framing: Framing,
    pub(crate) config: Arc<Config>,
    pub(crate) counters: Counters,
    owner: Arc<Owner>,
    /// What the peer makes this side hold.
    memory: Arc<Account>,
    peer_limits: PeerLimits,
    peer_times: PeerTimes,
    queue: SendQueue,
    overflow: Overflow,
    gather: Gather,
    role: Mutex<WriteHalf>,
    bell: Bell,
    writer_started: AtomicBool,
    /// It is the writer thread's turn: the kernel took no more, or a sender left the rest.
    blocked: AtomicBool,
    /// Control frames that the writer role must write, as bits.
    due: AtomicU8,
    /// When this side last wrote without the writer thread, in microseconds since `begun`.
    wrote_inline: AtomicUsize,
    begun: Instant,
    calls: Mutex<OpenCalls>,
    calls_freed: Condvar,
    /// Calls of the peer, and how many of them are answered; both wrap.
    asked: AtomicUsize,
    answered: AtomicUsize,
    cancelling: Cancelling,
    /// Pushes of the peer that are held back while a handler waits: not received yet.
    held: AtomicUsize,
    /// A push of the peer finds no room in the backlog: reading pauses until it does, so no
    /// thread that makes room may wait for a reply.
    backlog_full: AtomicBool,
    /// Where messages go that no handler takes at once: inbox and pool, if there are.
    inlets: Box<[Inlet]>,
    closing: Mutex<Closing>,
    is_closing: AtomicBool,
    /// The line is dead; only the report is still to come.
    over: AtomicBool,
    /// It was this side that ended it.
    cut: AtomicBool,
    delivery: Mutex<Delivery>,
    watch: Mutex<Watch>,
    /// When this side says that it is there.
    heartbeat: Mutex<Schedule>,
    budget: Mutex<Budget>,
    socket: Mutex<Option<Arc<Socket>>>,
    ending: Mutex<Ending>,
    ended: Condvar,
    /// Gone with the end, so that a handle keeps no thread alive.
    timer: Mutex<Option<Arc<Timer>>>,
    /// When the timer comes back, in milliseconds since `begun`; [`NEVER`] if it does not.
    next_check: AtomicCell<u64>,
    me: Weak<Connection>,
}

impl Connection {
    /// A connection over a socket that has passed its handshake. No thread runs yet.
    pub(crate) fn new(
        socket: Arc<Socket>,
        peer: Address,
        framing: Framing,
        config: Arc<Config>,
        agreed: Agreed,
        rooms: impl IntoIterator<Item = Arc<Room>>,
        owner: Arc<Owner>,
    ) -> Result<Arc<Connection>, Error> {
        let timer = Timer::shared()?;
        let now = Instant::now();
        let local = socket::local_address(&socket);
        let limits = config.limits.clone();
        let silence = match framing.protocol().carries(Kind::Ping) {
            true => config.heartbeat.limit,
            false => Duration::MAX,
        };
        let rooms = rooms.into_iter();
        let inlets = rooms.map(|room| Inlet::new(room, &limits)).collect();
        let bound = Bound {
            bytes: limits.queued_bytes as usize,
            messages: limits.queued_messages as usize,
            reply_reserve: limits.reply_reserve_bytes as usize,
            replies: limits.incoming_calls as usize,
            uncounted: UNCOUNTED,
        };
        let memory = owner.session_account(&limits);
        Ok(Arc::new_cyclic(|me| Connection {
            id: agreed.id,
            peer,
            local,
            framing,
            counters: Counters::default(),
            peer_limits: agreed.peer_limits,
            peer_times: agreed.peer_times,
            queue: SendQueue::new(bound, memory.clone()),
            overflow: Overflow::new(config.slow_peer),
            owner,
            memory,
            gather: Gather::default(),
            role: Mutex::new(WriteHalf::new(socket.clone())),
            bell: Bell::new(),
            writer_started: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            due: AtomicU8::new(0),
            wrote_inline: AtomicUsize::new(0),
            begun: now,
            calls: Mutex::new(OpenCalls::new(&limits, &agreed.peer_limits)),
            calls_freed: Condvar::new(),
            asked: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            cancelling: Cancelling::default(),
            held: AtomicUsize::new(0),
            backlog_full: AtomicBool::new(false),
            inlets,
            closing: Mutex::new(Closing::default()),
            is_closing: AtomicBool::new(false),
            over: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            delivery: Mutex::new(Delivery::default()),
            watch: Mutex::new(Watch::new(&config.timeouts, silence)),
            heartbeat: Mutex::new(Schedule::never()),
            budget: Mutex::new(Budget::new(limits.control_frames_per_second, now)),
            socket: Mutex::new(Some(socket)),
            ending: Mutex::new(Ending::default()),
            ended: Condvar::new(),
            timer: Mutex::new(Some(timer)),
            next_check: AtomicCell::new(NEVER),
            me: me.clone(),
            config,
        }))
    }

    /// What was counted so far.
    pub(crate) fn stats(&self, now: Instant) -> Stats {
        // Before the calls that came are counted, so that each that is answered is among them.
        let answered = self.answered.load(Ordering::SeqCst);
        let mut stats = self.counters.snapshot(now);
        // The difference is right however often the shorter count has begun anew.
        let open = (stats.calls_received as usize).wrapping_sub(answered);
        stats.calls_answered = stats.calls_received.saturating_sub(open as u64);
        stats.sessions = u64::from(!self.is_over());
        stats.sessions_peak = 1;
        stats.queued_bytes = self.queue.used_bytes() as u64;
        stats.queued_bytes_peak = stats.queued_bytes.max(self.queue.peak_bytes() as u64);
        stats.held_bytes = self.memory.used() as u64;
        stats.queue_fill = self.queue.fill();
        let calls = self.calls.lock();
        stats.calls_in_flight = calls.open_calls() as u64;
        stats.calls_in_flight_peak = calls.peak() as u64;
        stats
    }

    /// Comes back to [`on_time`](Timed::on_time) by then, or less than a millisecond later.
    fn schedule(&self, at: Instant) {
        if self.is_first_check(at) {
            if let Some(timer) = &*self.timer.lock() {
                timer.schedule(at, self.me.clone());
            }
        }
    }

    /// Notes a time to come back at; `false` if there is one that is not later.
    fn is_first_check(&self, at: Instant) -> bool {
        let at = at.saturating_duration_since(self.begun).as_millis() as u64;
        let mut next = self.next_check.load();
        while at < next {
            match self.next_check.compare_exchange(next, at) {
                Ok(_) => return true,
                Err(now) => next = now,
            }
        }
        false
    }
}

impl Timed for Connection {
    fn on_time(&self, now: Instant) -> Option<Instant> {
        let planned = self.next_check.swap(NEVER);
        if self.is_over() {
            return None;
        }
        let next = [
            self.check_peer(now, self.lateness(now, planned)),
            self.check_heartbeat(now),
            self.check_closing(now),
            self.check_calls(now),
            self.check_gathered(now),
        ];
        let next = next.into_iter().flatten().min()?;
        // Somebody else may have scheduled an earlier look meanwhile.
        self.is_first_check(next).then_some(next)
    }
}

impl Connection {
    /// A handle to the socket, until the end of the connection.
    pub(crate) fn open_socket(&self) -> Option<OpenSocket> {
        self.socket.lock().clone().map(OpenSocket::new)
    }

    /// Whether pushes and calls are refused because the session closes.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("peer", &self.peer)
            .field("protocol", &self.framing.name())
            .finish_non_exhaustive()
    }
}
