//! What the figures tell.
//!
//! [`Session::stats`](crate::Session::stats) has those of one session,
//! [`Client::stats`](crate::Client::stats) of all that a client has had,
//! [`Hub::stats`](crate::Hub::stats) and [`Server::stats`](crate::Server::stats) those of all
//! together, with the sessions that are over. A snapshot is cheap; taking one stops nobody.
//!
//! # Counters
//!
//! They only grow, and have 64 bits. "Messages" are pushes, calls and replies; bytes include
//! headers.
//!
//! | figure | what it tells an operator |
//! |---|---|
//! | `sent_messages`, `sent_bytes` | load outwards, as handed to the system |
//! | `received_messages`, `received_bytes` | load inwards |
//! | `writes`, `reads` | system calls; messages per write say how well small ones are combined |
//! | `calls_sent` | calls of this side |
//! | `calls_given_up` | of those, the ones that ran out of time or were cancelled: the peer is slow, or the limit is short |
//! | `calls_refused` | calls that were not sent as too many were in flight: raise `pending_calls` here and `incoming_calls` there, or call less |
//! | `calls_received` | calls of peers |
//! | `calls_answered` | of those, the answered ones, with whatever status. The difference is in progress; if it only grows, responders are being kept |
//! | `calls_overloaded` | answered `OVERLOADED`: handlers are too slow for their callers |
//! | `calls_expired` | not run, as the time limit passed or the caller gave up while they waited for a handler: handlers are too slow for their callers |
//! | `calls_dropped` | waited for a thread of a [pool](super::threads#a-pool) when their session ended, and were not run |
//! | `cancels_received` | callers that gave up waiting: handlers are too slow for their time limits |
//! | `late_replies` | replies that came after their caller had left: time limits are near the usual time |
//! | `unknown_replies` | replies to no call: a peer is broken |
//! | `dropped_pushes` | pushes that nothing handles, or that were refused: a route is misspelt, or versions differ |
//! | `skipped_frames` | frames of unknown kinds: a newer peer, usually harmless |
//! | `control_frames` | pings, pongs, goodbyes and cancels |
//! | `pings_sent`, `pings_received` | [heartbeats](super::promises#the-line-over-time), of this side and of peers |
//! | `pongs_received` | their answers; fewer than `pings_sent` when peers are busy, as one answers several |
//! | `queue_full` | pushes and calls that found no room: peers read too slowly, or `queued_bytes` is too small |
//! | `slow_peer_drops` | pushes that were dropped by the [policy](crate::SlowPeer) `DropNewest`; `queue_full` does not have them |
//! | `panics` | handlers and callbacks that panicked: a bug of the application; look into the log |
//! | `closed_clean` | sessions that ended with goodbyes on both sides |
//! | `closed_ended` | peers that left without a goodbye: programs that were killed |
//! | `closed_truncated` | sessions that ended inside a message: peers that crashed, or lines that broke |
//! | `closed_reset` | sessions whose connection was reset, or whose writing failed: the same |
//! | `closed_cut` | sessions that this side cut off, by a limit or by abort: slow or hostile peers; the log says which limit |
//! | `connections_accepted` | connections that came |
//! | `connections_refused` | told no, by a limit or `on_accept` |
//! | `handshakes_failed` | let in and gone before their session began: port scanners, other protocols, old versions |
//! | `accept_failures` | the system had no descriptor or memory for a connection: raise its limits |
//!
//! # Gauges and peaks
//!
//! | figure | what it tells an operator |
//! |---|---|
//! | `sessions`, `sessions_peak` | how near `limits.sessions` is |
//! | `queued_bytes`, `queued_bytes_peak` | what waits in send queues now, in all; and the most in one session |
//! | `held_bytes` | how near `limits.total_bytes` is; of a session, `limits.session_bytes` |
//! | `queue_fill` | how full the fullest queue is, by bytes or messages: 1 is full. Above a half for long, a peer is too slow |
//! | `calls_in_flight`, `calls_in_flight_peak` | calls of this side that wait now; and the most in one session |
//! | `handler_time` | mean, 99th percentile and maximum of a sample of handlers, see [`HandlerTime`](crate::HandlerTime); a handler that takes long delays its own session |
//!
//! # Worth an alarm
//!
//! `accept_failures` and `panics` that grow at all; `calls_overloaded`, `connections_refused` and
//! `queue_full` that grow for minutes; a `queue_fill` near 1; `closed_cut` that grows with the
//! load.
//!
//! # Reading them
//!
//! A snapshot prints as text. Two give rates:
//!
//! ```
//! # use trunkline::{Client, Error, Server};
//! # fn main() -> Result<(), Error> {
//! # let server = Server::builder().on_call(1, |_, _| ()).bind("127.0.0.1:0")?;
//! # let client = Client::connect(server.local_address())?;
//! let earlier = server.stats();
//! client.call(1, ())?;
//! let now = server.stats();
//! println!("{now}");
//! println!("{}", now.rates_since(&earlier));
//! assert_eq!(now.calls_received - earlier.calls_received, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Prometheus
//!
//! [`Stats::prometheus`](crate::Stats::prometheus) writes the text format that a scraper reads.
//! Counters end in `_total`; `handler_time` becomes the summary `handler_time_seconds` and the
//! gauge `handler_time_peak_seconds`. This crate has no HTTP server: give the text to the one
//! that your program has, or write it to whoever connects, as the example `daemon` of the
//! repository does with a Unix socket:
//!
//! ```
//! # use trunkline::{Framing, Hub, Server};
//! # fn example(hub: Hub) -> Result<Server, trunkline::Error> {
//! Server::builder()
//!     .framing(Framing::Stream)
//!     .on_connected(move |session| {
//!         let _ = session.push(0, hub.stats().prometheus("app"));
//!         session.close();
//!     })
//!     .bind("unix:/run/app/stats.sock")
//! # }
//! ```
//!
//! | name | from |
//! |---|---|
//! | `app_sessions` | a gauge |
//! | `app_calls_received_total` | a counter |
//! | `app_handler_time_seconds`: quantile 0.99, sum and count | the handler time |
