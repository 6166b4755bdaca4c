//! Which threads run, what they cost, and what a handler may do on them.
//!
//! There is nothing to start and no executor, and no thread before the first connection or
//! listener. The last connection takes the timer with it.
//!
//! # The threads
//!
//! | thread | name | how many | counted | [hook](#the-start-hook) |
//! |---|---|---|---|---|
//! | reader | `tl-read-7`; at a server `tl-read` | one for each connection; it runs the handlers, unless there is a [pool](#a-pool) | yes | [`Reader`](crate::ThreadRole::Reader) |
//! | writer | `tl-write-7` | one for each connection, from the first time on that senders write more than one of them does in passing | yes, from the beginning | [`Writer`](crate::ThreadRole::Writer) |
//! | substitute reader | `tl-read-7+` | at most 16 for each connection, each started when a handler, or a push for room in the inbox or pool, first waits, and kept | yes | [`Reader`](crate::ThreadRole::Reader) |
//! | accept | `tl-accept` | one for each address that a server listens on | yes | [`Accept`](crate::ThreadRole::Accept) |
//! | pool | `tl-pool-1` | none; with a [pool](#a-pool) at most its `threads` for each server or client, each started when a message finds no other free, and kept | yes | [`Pool`](crate::ThreadRole::Pool) |
//! | resolver | `tl-resolve` | one for each name that is looked up, while that lasts; none for IP addresses | no | no |
//! | timer | `trunkline-timer` | one for each process; it also writes the heartbeats of idle connections | no | no |
//! | callback | `trunkline-calls` | at most one for each process, for callbacks of calls that end without a reply | no | no |
//!
//! The number is that of the session. A server's reader starts with the handshake, before there
//! is one. The reader of a client that [reconnects](super::promises#reconnecting) waits, dials and
//! reads one session after the other, under the number of its first one, or as `tl-read` after
//! `connect_later`; it and its two places are kept until the client is closed or dropped, also
//! while it has stopped.
//!
//! # Stack
//!
//! Each thread of a client or server has 512 KiB of address space for its stack, of which the
//! system backs what is used, a few pages as a rule.
//! [`stack_bytes`](crate::ServerBuilder::stack_bytes) sets another size: a handler that recurses
//! or keeps large arrays needs more. The timer has 128 KiB, the callback thread Rust's default,
//! usually 2 MiB.
//!
//! # Budget
//!
//! A process aborts when it runs out of memory mappings for threads, so they are counted before
//! that. The budget of a process is three quarters of the least of: 16,000, a quarter of
//! `vm.max_map_count`, `kernel.threads-max`, `kernel.pid_max`, and the user's limit of processes
//! (`RLIMIT_NPROC`). With Linux's defaults that is about 12,000 threads. A connection takes two
//! places, whether its writer runs or not: about 6,000 connections then.
//!
//! Beyond the budget a server refuses connections with status
//! [`OVERLOADED`](crate::Status::OVERLOADED), and connecting, listening and waiting in a handler
//! fail with [`ErrorKind::Overloaded`](crate::ErrorKind::Overloaded).
//!
//! # The start hook
//!
//! ```
//! # use trunkline::{Server, ThreadRole};
//! let builder = Server::builder()
//!     .stack_bytes(256 << 10)
//!     .on_thread_start(|thread| {
//!         // A place for affinity, priority, or a profiler's registration.
//!         if thread.role == ThreadRole::Reader {
//!             eprintln!("{} will run handlers", thread.name);
//!         }
//!     });
//! # drop(builder);
//! ```
//!
//! The hook runs on the new thread before anything else.
//!
//! # What a handler may do
//!
//! | to do | fine? | what happens |
//! |---|---|---|
//! | push | yes | replies and pushes of handlers on their own session go out together |
//! | call, also the own session | yes | another thread reads meanwhile; see below |
//! | wait for a push's room, [`flush`](crate::Session::flush) | yes | the same |
//! | [`close`](crate::Session::close) or [`abort`](crate::Session::abort) the own session | yes | a close ends after the handler has returned; an abort cuts the line at once |
//! | [`shutdown`](crate::Session::shutdown) the own session or server | no | closing begins; the call itself fails with `WouldDeadlock` |
//! | wait for the next session of its own client | no | `WouldDeadlock`: that is dialled after the handler has returned |
//! | panic | if it must | status `HANDLER_PANICKED`, counted and recorded; the session lives |
//! | compute for long, sleep, wait for a lock or channel | better not | its session waits, others do not; use [`defer`](crate::Context::defer), and ask for [`cancelled`](crate::Context::cancelled) between steps; or a [pool](#a-pool) |
//!
//! No lock of this crate is held while user code runs.
//!
//! Where the other code of yours runs:
//!
//! | code | thread | may wait? |
//! |---|---|---|
//! | `on_connected`, `on_closed` | the session's reader | as a handler; in `on_closed` the own session is over |
//! | [`on_login`](crate::ClientBuilder::on_login) | the session's reader | as a handler |
//! | [`on_state`](crate::ClientBuilder::on_state) | the client's reader | not for the client: it dials after it |
//! | `on_accept` | accept | no: nobody else is let in meanwhile |
//! | `on_error` | whichever found the error | no |
//! | callbacks of replies | the session's reader | as a handler |
//! | callbacks of calls that end otherwise | the callback thread | shortly: all others wait |
//! | [`Interceptor`](crate::Interceptor) | that of the handler or caller | no |
//!
//! # Hand-over
//!
//! A handler that is about to wait in this crate first hands the reading of its connection to a
//! substitute thread; so does one that asks whether its call is
//! [`cancelled`](crate::Context::cancelled). That one reads on: it completes replies, runs at once the calls that
//! descend from the call that is waited for, and holds everything else back, in order. When the
//! handler returns, its thread works off what was held and then rests, until it is needed again.
//! This costs a thread's start the first time, and a wake later. Waiting of other kinds, such as
//! on a channel, cannot be seen: nobody reads meanwhile, and a reply for which such a handler
//! waits in this roundabout way never comes.
//!
//! # A pool
//!
//! With [`Dispatch::Pool`](crate::Dispatch::Pool) handlers run on a [`Pool`](crate::Pool) of
//! worker threads, which all sessions of a server share:
//!
//! ```
//! # use trunkline::{Dispatch, Pool, Server};
//! let mut pool = Pool::default();
//! pool.threads = 8;
//! let builder = Server::builder()
//!     .dispatch(Dispatch::Pool(pool))
//!     .on_call("/report", |_, body| body.to_vec());
//! # drop(builder);
//! ```
//!
//! It is for handlers that take long, wait for a lock, a disk or another program: the session is
//! read meanwhile, and so many handlers run at a time and no more. Handlers that only look
//! something up are faster without it: a pool copies each message, and wakes another thread for
//! it.
//!
//! | | without a pool | with a pool |
//! |---|---|---|
//! | messages of one session | one after the other | the same, or with `ordered` false at the same time |
//! | messages of different sessions | at the same time | the same, as far as there are threads; a session with many runs 16 (unordered: one) before it queues again behind the others |
//! | what waits | is not read; calls come on | pushes up to `messages` and `limits.pool_bytes`; then a push waits for room and the [backlog](super::promises#backpressure) fills. Calls up to `limits.incoming_call_bytes` of their session, then status [`OVERLOADED`](crate::Status::OVERLOADED) |
//! | a call that belongs to a call for which this side waits | runs at once if a handler waits, else in its order | runs at once, on the session's reader, ahead of all that waits |
//! | a handler that waits in this crate | another thread reads | keeps its worker; the session is read anyway |
//! | `on_connected`, `on_closed`, callbacks, messages for the inbox | on the session's reader | the same |
//!
//! When a session ends, its reader runs what of it still waits, and then `on_closed`: that depends
//! on no handler of another session. That is so after a cut, too, and after a shutdown that has
//! returned at its limit: as much as pool and backlog hold may still be handled. Calls for which nobody waits any more, as the line is dead,
//! are not run; they are counted as `calls_dropped`. Where no thread can be had at all, handlers
//! run on the reader, as without a pool.
//!
//! A worker is somebody that the messages of all sessions wait for. If it waits for a call while
//! pool and backlog are full, so that the reply could not be read, the call ends with
//! [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock), though other workers may be about to make
//! room. Circles through other programs are not seen: a handler that waits for somebody who, on
//! another session, waits for a worker, may hold the only one. They end in the time limit of a
//! call. So does, in its limit, the shutdown of another session with calls that wait.
//!
//! # Long work
//!
//! ```
//! # use std::thread;
//! # use trunkline::{Client, Error, Server};
//! # fn main() -> Result<(), Error> {
//! let server = Server::builder()
//!     .on_call("/sum", |cx, body| {
//!         let (responder, deferred) = cx.defer();
//!         let numbers = body.to_vec();
//!         thread::spawn(move || {
//!             let sum: u64 = numbers.iter().copied().map(u64::from).sum();
//!             responder.reply(sum.to_le_bytes());
//!         });
//!         deferred
//!     })
//!     .bind("127.0.0.1:0")?;
//! # let client = Client::connect(server.local_address())?;
//! # assert_eq!(client.call_as::<[u8; 8]>("/sum", [1, 2, 3])?, 6_u64.to_le_bytes());
//! # Ok(())
//! # }
//! ```
//!
//! A responder that is dropped answers [`NO_REPLY`](crate::Status::NO_REPLY), so no caller waits
//! in vain.
