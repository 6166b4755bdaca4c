//! Limits, time limits and socket options: each with its default, unit and reason.
//!
//! All three are plain structs: start from a preset and change the fields you care about.
//!
//! ```
//! use trunkline::Limits;
//! let mut limits = Limits::server();
//! limits.frame_bytes = 1 << 20;
//! ```

use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};

/// How much of everything one side accepts and holds.
///
/// Every limit is named in the error that it causes. Counts are messages or pairs, sizes are
/// bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one frame on the wire, header included. Default 16 MiB; embedded 1 MiB; on
    /// machines of 32 bits below 2 GiB.
    /// A peer that announces more is cut off before a byte of the body is read.
    pub frame_bytes: u32,
    /// Bytes of one decoded body. Default 16 MiB; embedded 1 MiB.
    /// It differs from `frame_bytes` once filters compress.
    pub body_bytes: u32,
    /// Bytes of all metadata of one message, as encoded. Default 8 KiB; embedded 1 KiB.
    pub metadata_bytes: u32,
    /// Metadata pairs of one message. Default 64; embedded 16.
    pub metadata_pairs: u32,
    /// Bytes of a route's name. Default 256; embedded 128.
    pub route_name_bytes: u32,
    /// Calls of this side that wait for replies on one session. Default 65,536; embedded 256.
    /// A call that timed out counts until its late reply comes.
    pub pending_calls: u32,
    /// Calls of the peer in flight on one session, announced to it. Default 65,536; embedded 256.
    pub incoming_calls: u32,
    /// Bytes of those calls, 64 beside each body, announced to the peer. Default 4 MiB; embedded
    /// 256 KiB. A single larger call is admitted alone.
    pub incoming_call_bytes: u32,
    /// Bytes that wait in the send queue of one session. Default 1 MiB; embedded 64 KiB.
    /// A single larger message is admitted when the queue is empty.
    pub queued_bytes: u32,
    /// Messages that wait in the send queue of one session. Default 65,536; embedded 1,024.
    pub queued_messages: u32,
    /// Bytes beyond `queued_bytes` that only replies may use. Default 4 MiB; embedded 256 KiB.
    pub reply_reserve_bytes: u32,
    /// Bytes of messages held in order while a handler waits for a call. Default 1 MiB;
    /// embedded 64 KiB.
    pub backlog_bytes: u32,
    /// Messages held in order while a handler waits for a call. Default 4,096; embedded 256.
    pub backlog_messages: u32,
    /// Sessions of one server. Default 10,000; embedded 64.
    pub sessions: u32,
    /// Sessions of one server from one IP address. Default 8,192; embedded 16.
    pub sessions_per_address: u32,
    /// Control frames and stray replies of one peer in a second. Default 1,000.
    /// No honest peer comes near it; beyond it the session is closed.
    pub control_frames_per_second: u32,
}

impl Limits {
    /// The default: for servers and desktop programs.
    pub fn server() -> Self {
        Limits {
            frame_bytes: 16 << 20,
            body_bytes: 16 << 20,
            metadata_bytes: 8 << 10,
            metadata_pairs: 64,
            route_name_bytes: 256,
            pending_calls: 65_536,
            incoming_calls: 65_536,
            incoming_call_bytes: 4 << 20,
            queued_bytes: 1 << 20,
            queued_messages: 65_536,
            reply_reserve_bytes: 4 << 20,
            backlog_bytes: 1 << 20,
            backlog_messages: 4_096,
            sessions: 10_000,
            sessions_per_address: 8_192,
            control_frames_per_second: 1_000,
        }
    }

    /// For small machines: at most about 0.6 MiB of queues a session, 64 sessions.
    pub fn embedded() -> Self {
        Limits {
            frame_bytes: 1 << 20,
            body_bytes: 1 << 20,
            metadata_bytes: 1 << 10,
            metadata_pairs: 16,
            route_name_bytes: 128,
            pending_calls: 256,
            incoming_calls: 256,
            incoming_call_bytes: 256 << 10,
            queued_bytes: 64 << 10,
            queued_messages: 1_024,
            reply_reserve_bytes: 256 << 10,
            backlog_bytes: 64 << 10,
            backlog_messages: 256,
            sessions: 64,
            sessions_per_address: 16,
            control_frames_per_second: 1_000,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits::server()
    }
}

/// How long everything may take. [`Duration::MAX`] means no limit; zero fails as soon as there
/// is anything to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Looking up the name and dialling all its addresses. Default 10 s.
    pub connect: Duration,
    /// From the connection to the welcome. Default 10 s.
    pub handshake: Duration,
    /// A frame, from its first byte to its last: this, plus its size over
    /// [`lowest_rate`](Timeouts::lowest_rate). Default 10 s.
    pub frame: Duration,
    /// Bytes per second that the slowest acceptable peer sends. Default 16 KiB/s.
    pub lowest_rate: u32,
    /// The peer takes not one byte of what is written to it. Default 10 s; then the session is
    /// closed.
    pub write: Duration,
    /// A push waits for room in the send queue. Default 30 s.
    pub push: Duration,
    /// A call waits for its reply. Default 30 s.
    pub call: Duration,
    /// Nothing at all comes from the peer. Default no limit. Nothing is sent unasked yet, so a
    /// limit also ends honest sessions on which nothing happens.
    pub idle: Duration,
    /// A close that this side did not wait for, or that the peer began. Default 5 s; then the
    /// connection is cut.
    pub close: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
            frame: Duration::from_secs(10),
            lowest_rate: 16 << 10,
            write: Duration::from_secs(10),
            push: Duration::from_secs(30),
            call: Duration::from_secs(30),
            idle: Duration::MAX,
            close: Duration::from_secs(5),
        }
    }
}

/// Options of a TCP socket, set on both dialled and accepted ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketOptions {
    /// Send small segments at once (TCP_NODELAY). Default true: this crate combines by itself.
    pub nodelay: bool,
    /// Idle time before the system probes a silent peer (SO_KEEPALIVE). Default 60 s; `None`
    /// is off.
    pub keepalive: Option<Duration>,
    /// How long sent data may stay unacknowledged before the system gives up
    /// (TCP_USER_TIMEOUT, Linux). Default 30 s; `None` leaves it to the system.
    pub user_timeout: Option<Duration>,
    /// Bytes of the kernel's send buffer (SO_SNDBUF). Default `None`: the system tunes it.
    pub send_buffer: Option<usize>,
    /// Bytes of the kernel's receive buffer (SO_RCVBUF). Default `None`: the system tunes it.
    pub receive_buffer: Option<usize>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        SocketOptions {
            nodelay: true,
            keepalive: Some(Duration::from_secs(60)),
            user_timeout: Some(Duration::from_secs(30)),
            send_buffer: None,
            receive_buffer: None,
        }
    }
}

/// Everything one connection needs to know; what the builders fill.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) socket: SocketOptions,
    pub(crate) stack_bytes: Option<usize>,
}

impl Config {
    /// Finds the settings with which nothing could ever work.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let limits = &self.limits;
        let least = [
            // A goodbye must fit.
            ("limits.frame_bytes", limits.frame_bytes, 64),
            ("limits.body_bytes", limits.body_bytes, 16),
            ("limits.pending_calls", limits.pending_calls, 1),
            ("limits.incoming_calls", limits.incoming_calls, 1),
            ("limits.queued_bytes", limits.queued_bytes, 1),
            ("limits.queued_messages", limits.queued_messages, 1),
            ("limits.sessions", limits.sessions, 1),
            (
                "limits.sessions_per_address",
                limits.sessions_per_address,
                1,
            ),
        ];
        for (name, value, least) in least {
            if value < least {
                let message = format!("{name} = {value} is below {least}");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
        }
        let frame_bytes = self.limits.frame_bytes;
        if isize::try_from(frame_bytes).is_err() {
            let message = format!(
                "limits.frame_bytes = {frame_bytes} is above {}, the most of this machine",
                isize::MAX
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        // What the system takes.
        let ranges = [
            ("keepalive", self.socket.keepalive, 1_000, 32_767_000),
            (
                "user_timeout",
                self.socket.user_timeout,
                1,
                i32::MAX as u128,
            ),
        ];
        for (name, value, least, most) in ranges {
            let Some(value) = value else {
                continue;
            };
            if !(least..=most).contains(&value.as_millis()) {
                let message =
                    format!("socket option {name} = {value:?}: {least} to {most} ms are possible");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
        }
        Ok(())
    }
}

/// The moment at which a time limit that starts now passes; `None` for no limit.
pub(crate) fn deadline(now: Instant, limit: Duration) -> Option<Instant> {
    now.checked_add(limit)
}
