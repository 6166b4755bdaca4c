//! Every limit: its default, its unit, and what happens when it is passed.
//!
//! Limits are plain structs: start from a preset and set the fields you care about. A setting
//! with which nothing could work is refused by `bind` or `connect` as
//! [`InvalidInput`](crate::ErrorKind::InvalidInput), which names the key.
//!
//! ```
//! # use std::time::Duration;
//! # use trunkline::{Limits, Server, SocketOptions, Timeouts};
//! let mut limits = Limits::default();
//! limits.frame_bytes = 256 << 10;
//! limits.body_bytes = 256 << 10;
//! let mut timeouts = Timeouts::default();
//! timeouts.idle = Duration::from_secs(300);
//! let mut socket = SocketOptions::default();
//! socket.keepalive = Some(Duration::from_secs(20));
//! let builder = Server::builder()
//!     .limits(limits)
//!     .timeouts(timeouts)
//!     .socket_options(socket);
//! # drop(builder);
//! ```
//!
//! With feature `config` the same names are the keys of a TOML file, read by `Settings`.
//!
//! # Sizes and counts
//!
//! The fields of [`Limits`](crate::Limits), by default and as
//! [`Limits::embedded`](crate::Limits::embedded) has them. Names in the last column are of
//! [`ErrorKind`](crate::ErrorKind) and [`Status`](crate::Status).
//!
//! | limit | default | embedded | of | what passes it |
//! |---|---|---|---|---|
//! | `frame_bytes` | 16 MiB | 1 MiB | one frame on the wire, header included; at least 64, below 2 GiB on machines of 32 bits | own: `TooLarge`, as the peer's limit is known; a peer's: its session ends with `FrameTooLarge` before the body is read |
//! | `body_bytes` | 16 MiB | 1 MiB | one body; at least 16 | the same; an answer becomes status `TOO_LARGE` |
//! | `metadata_bytes` | 8 KiB | 1 KiB | all metadata of one message, as encoded | own: `TooLarge`; a peer's: `Malformed` |
//! | `metadata_pairs` | 64 | 16 | pairs of one message | own: `TooLarge`; a peer's: `Malformed` |
//! | `route_name_bytes` | 256 | 128 | a route's name | own: `TooLarge`; a peer's: `Malformed` |
//! | `pending_calls` | 65,536 | 256 | own calls in flight on a session; one that timed out counts until its late reply comes | a call waits within its time limit, then `TooManyInFlight` |
//! | `incoming_calls` | 65,536 | 256 | the peer's calls in flight on a session; announced to it | the peer's call waits there, then `TooManyInFlight`; a peer that does not keep to it is answered `OVERLOADED`, and in the end cut off with `ProtocolAbuse` |
//! | `incoming_call_bytes` | 4 MiB | 256 KiB | those calls, 64 bytes beside each body; announced. A larger one is admitted alone | the peer's call waits there, then `TooManyInFlight` |
//! | `queued_bytes` | 1 MiB | 64 KiB | pushes and calls in the send queue of a session. A larger one is admitted when the queue is empty | `push` and calls wait, then `Timeout`; `try_push`: `QueueFull`; a broadcast counts the session as full. Other [policies](crate::SlowPeer) drop the push or end the session |
//! | `queued_messages` | 65,536 | 1,024 | messages there | the same |
//! | `reply_reserve_bytes` | 4 MiB | 256 KiB | room beyond `queued_bytes` for replies alone | the reply is replaced by status `OVERLOADED` |
//! | `backlog_bytes` | 1 MiB | 64 KiB | messages held in order while a handler waits, or a push for room in the inbox or pool | a call is answered `OVERLOADED`; a push stops the reading, and the waiting call ends with `WouldDeadlock` |
//! | `backlog_messages` | 4,096 | 256 | messages there | the same |
//! | `inbox_bytes` | 8 MiB | 256 KiB | pushes in the [inbox](crate::Inbox), beside the number that the builder is given; one inbox serves all sessions of a server | the push waits: the backlog fills, then reading pauses |
//! | `pool_bytes` | 8 MiB | 256 KiB | pushes that wait for a thread of a [pool](super::threads#a-pool), beside its `messages`; one pool serves all sessions of a server | the same |
//! | `session_bytes` | 64 MiB | 4 MiB | what the peer of a session makes this side hold: see [below](#memory-of-a-session); at least twice `frame_bytes` | what is sent: as with `queued_bytes`, a reply as with `reply_reserve_bytes`; a large message that comes: its session ends with `Overloaded` |
//! | `total_bytes` | 1 GiB | 32 MiB | the same of all sessions of a server, or of a client; at least `session_bytes` | the same, for the session that asks for more |
//! | `sessions` | 10,000 | 64 | one server; the [thread budget](super::threads#budget) may be less | the connection is refused: the client gets `Overloaded`, the server tells `on_error` |
//! | `sessions_per_address` | 8,192 | 16 | one server, from one IP address, or of one user on Unix sockets | the same |
//! | `control_frames_per_second` | 1,000 | 1,000 | control frames and replies to nobody, from one peer; at least 16 | the session ends with `ProtocolAbuse` |
//!
//! # Time limits
//!
//! The fields of [`Timeouts`](crate::Timeouts). [`Duration::MAX`](std::time::Duration::MAX) means
//! no limit; zero fails as soon as there is anything to wait for.
//!
//! | time limit | default | until | when it passes |
//! |---|---|---|---|
//! | `connect` | 10 s | the name is resolved and an address has answered | `connect` fails with `Timeout` |
//! | `handshake` | 10 s | the peers have agreed | `connect` fails with `Timeout`; a server drops the connection and tells `on_error` |
//! | `frame` | 10 s | a frame that has begun is complete; its size at `lowest_rate` comes on top | the session ends with `FrameTimeout` |
//! | `lowest_rate` | 16 KiB | (bytes a second of the slowest acceptable sender) | |
//! | `write` | 10 s | the peer takes at least a byte of what is written | the session ends with `Timeout` |
//! | `push` | 30 s | there is room in the send queue | the push fails with `Timeout`, and was not sent |
//! | `call` | 30 s | the reply has come; [each call](crate::Request::timeout) may set its own | the call fails with `Timeout` |
//! | `idle` | none | anything comes from the peer | the session ends with `Timeout`. With heartbeats a live peer says something at least every third of `heartbeat.limit`; in a protocol without them this also ends honest sessions on which nothing happens |
//! | `close` | 5 s | a close that nobody waits for, or that the peer began, is complete | the rest is cut off |
//!
//! What takes a limit as an argument: [`Client::wait_connected`](crate::Client::wait_connected),
//! [`Session::push_timeout`](crate::Session::push_timeout),
//! [`flush`](crate::Session::flush), [`shutdown`](crate::Session::shutdown),
//! [`wait_closed`](crate::Session::wait_closed),
//! [`Pending::wait_timeout`](crate::Pending::wait_timeout) and
//! [`Server::shutdown`](crate::Server::shutdown).
//!
//! # Heartbeats
//!
//! The fields of [`Heartbeat`](crate::Heartbeat), which [the line over
//! time](super::promises#the-line-over-time) explains. `Duration::MAX` means never; less than
//! 300 ms is `InvalidInput`.
//!
//! | time | default | until | when it passes |
//! |---|---|---|---|
//! | `interval` | 10 s | this side says again that it is there; a third of the peer's limit, if that is shorter, but at least 100 ms | a ping is sent |
//! | `limit` | 30 s | a byte comes from the peer, while this side waits for one | the session ends with `Timeout`, and its calls with `Disconnected` |
//!
//! # Reconnecting
//!
//! The fields of [`Backoff`](crate::Backoff), for a client that
//! [reconnects](super::promises#reconnecting). Each wait is random, between zero and a bound that
//! grows.
//!
//! | setting | default | of | when it passes |
//! |---|---|---|---|
//! | `first` | 100 ms | the bound of the first wait; at least 1 ms | the client dials |
//! | `factor` | 2 | growth of the bound with each attempt; at least 1 | |
//! | `most` | 30 s | the largest bound | |
//! | `attempts` | none | attempts, in each of which all addresses are tried | the client stops |
//! | `total` | none | time since the loss | the client stops |
//! | `stable` | 10 s | the life of a session | waits, attempts and total begin anew at its end |
//!
//! The fields of [`Hold`](crate::Hold), for a client that holds pushes while it has no session.
//!
//! | limit | default | of | what passes it |
//! |---|---|---|---|
//! | `bytes` | 1 MiB | the held pushes, as they go over the wire | `push` and `try_push`: `QueueFull`, at once. What a lost session has not written is held beyond it |
//! | `messages` | 4,096 | held pushes | the same |
//! | `age` | 30 s | a held push, from the push on; what was not written, from the loss on | it is dropped, counted, and told to `on_error` and `on_state` |
//!
//! # Socket options
//!
//! The fields of [`SocketOptions`](crate::SocketOptions). `None` leaves the option to the system.
//! A value outside the range is `InvalidInput`; what the system refuses is `ConnectFailed` when
//! dialling and `Io` when listening.
//!
//! | option | default | range | effect |
//! |---|---|---|---|
//! | `nodelay` | true | | small segments leave at once (TCP_NODELAY) |
//! | `keepalive` | 60 s | 1 to 32,767 s | silence before the system probes a peer |
//! | `keepalive_interval` | none | 1 to 32,767 s | time between two probes; usually 75 s |
//! | `keepalive_probes` | none | 1 to 127 | probes without an answer that end the connection; usually 9 |
//! | `user_timeout` | 30 s | from 1 ms | how long sent data may stay unacknowledged (Linux) |
//! | `send_buffer` | none | bytes | the kernel's send buffer; Linux takes twice the number |
//! | `receive_buffer` | none | bytes | the kernel's receive buffer; likewise |
//! | `read_buffer_least` | 4 KiB | from 64 | the read buffer of an idle session |
//! | `read_buffer_most` | 64 KiB | to 1 GiB | what one read takes; a larger frame that has begun gets more |
//! | `local_address` | none | | a client: the address to dial from |
//! | `reuse_address` | true | | take over an address that only dead connections still use |
//! | `reuse_port` | false | | a listener: share the address with others that ask for it |
//! | `v6_only` | none | | an IPv6 listener: keep IPv4 peers out |
//! | `backlog` | 4,096 | from 1 | a listener: connections that may wait to be accepted |
//! | `unix_mode` | none | 0 to 0o777 | a listener on a path: the mode of the file |
//!
//! # Memory of a session
//!
//! Queues and buffers begin empty and grow with what is in them. The most that each can hold:
//!
//! | what | at most | default | embedded |
//! |---|---|---|---|
//! | send queue | `queued_bytes` + `reply_reserve_bytes` | 5 MiB | 320 KiB |
//! | backlog, while a handler waits | `backlog_bytes` | 1 MiB | 64 KiB |
//! | calls of the peer, in the inbox or pool, or if handlers keep their bodies to answer later | `incoming_call_bytes` | 4 MiB | 256 KiB |
//! | together | | 10 MiB | 640 KiB |
//! | held pushes, one for all sessions of a client | `hold.bytes` + `queued_bytes` | 2 MiB | |
//! | inbox, one for all sessions of a server | `inbox_bytes` | 8 MiB | 256 KiB |
//! | pool, one for all sessions of a server | `pool_bytes` | 8 MiB | 256 KiB |
//! | read buffer, idle | `read_buffer_least` | 4 KiB | 4 KiB |
//! | read buffer, busy | `read_buffer_most` | 64 KiB | 64 KiB |
//! | read buffer, while a larger frame comes: twice what has come | `frame_bytes` | 16 MiB | 1 MiB |
//!
//! One message over a bound is admitted where nothing else is, so a single large one may pass
//! the first three lines: up to the frame limit, of the peer for what is sent. Replies that
//! nobody has taken yet belong to their callers.
//!
//! # Memory of a server
//!
//! All of that times `sessions` is more than most machines have, so the large parts of it are
//! counted against two caps: `session_bytes` for each session, and `total_bytes` for all sessions
//! of a server, or for a client.
//!
//! | what | counted | without room under a cap |
//! |---|---|---|
//! | send queue | beyond 16 KiB, in steps of 64 KiB, until it is empty | a push or call finds the queue full; a reply becomes status `OVERLOADED` |
//! | read buffer | beyond `read_buffer_most`, while a larger frame comes and is handled | the session ends with `Overloaded` |
//! | backlog | beyond 16 KiB, in steps of 64 KiB | it is not refused: `backlog_bytes` bounds it |
//! | inbox, pool, calls not yet answered | no | `inbox_bytes`, `pool_bytes` and `incoming_call_bytes` bound them |
//! | held pushes of a client | no | `hold.bytes` bounds them |
//!
//! - Control frames always pass, and so does what is not counted: with all memory used up, an
//!   idle session still sends and answers small messages.
//! - Who waits for memory looks again every 50 ms, and at once when the own queue has room; the
//!   error that it gets in the end names the cap. A policy other than
//!   [`Block`](crate::SlowPeer::Block) holds here, too.
//! - Bytes are those of messages. Buffers grow by doubling and some are kept for reuse while a
//!   session is busy, about 1 MiB at most, so the process takes somewhat more. A broadcast's
//!   large body is there once, and counts for each session.
//! - [`Stats::held_bytes`](crate::Stats::held_bytes) is what is counted now.
