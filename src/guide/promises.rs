//! What you may rely on, sentence by sentence; and what is not there yet.
//!
//! Each sentence has tests that fail without it. "The line" is one TCP or Unix connection.
//!
//! # Order
//!
//! - What one thread sends on one session arrives in the order of sending: pushes, calls and
//!   replies, small and large, however they were written. A push returns when it is queued, so
//!   the order is that of the program. Between two threads there is no order.
//! - The handlers of one session run one after the other, in the order of arrival; on a
//!   [pool](super::threads#a-pool) whose `ordered` is false they begin in that order. There is one
//!   exception: a call that belongs to a call for which a handler, or with a pool anybody, waits runs at once; see
//!   [calls inside handlers](#calls-inside-handlers).
//! - Handlers of different sessions run at the same time.
//!
//! # Delivery
//!
//! A message is delivered at most once. Nothing is sent again silently: whether a repetition does
//! harm is for the application to know. When a session is over, its
//! [`CloseReport`](crate::CloseReport) splits what this side has sent:
//!
//! | count | means | after a cut |
//! |---|---|---|
//! | [`not_written`](crate::CloseReport::not_written) | never handed to the system | certainly lost |
//! | [`held`](crate::CloseReport::held) | the same, but a client that [reconnects](#reconnecting) keeps it for its next session | not lost yet |
//! | [`unconfirmed`](crate::CloseReport::unconfirmed) | written; the peer has not said that it came, as it does with heartbeats and at the end; a reply alone does not count | between none and all came |
//! | [`confirmed`](crate::CloseReport::confirmed) | received by the peer, as it said then: handed to a handler, pool, inbox or waiter, or answered | certainly came |
//!
//! So what is lost lies between `not_written` and `not_written` plus `unconfirmed`. In the native
//! protocol a close that both sides complete ([`CloseReason::Clean`](crate::CloseReason::Clean))
//! confirms everything. The other [protocols](crate::protocol) confirm nothing, as they have no
//! word for it. "Received" does not say that a handler was successful; a reply says that.
//!
//! ```
//! # use std::time::Duration;
//! # use trunkline::{Client, CloseReason, Error, Server};
//! # fn main() -> Result<(), Error> {
//! # let server = Server::builder().on_push(1, |_, _| ()).bind("127.0.0.1:0")?;
//! let client = Client::connect(server.local_address())?;
//! for reading in 0..100_u32 {
//!     client.push(1, reading.to_le_bytes())?;
//! }
//! let report = client.shutdown(Duration::from_secs(5))?;
//! assert_eq!(report.reason, CloseReason::Clean);
//! assert_eq!(report.confirmed.messages, 100);
//! # Ok(())
//! # }
//! ```
//!
//! # Calls
//!
//! - A call ends once: with a reply, a reply that carries an error status, its time limit, a lost
//!   connection, its cancellation, or a refusal on this side. A lost connection ends all calls
//!   that wait, at once.
//! - [`Error::maybe_executed`](crate::Error::maybe_executed) tells apart what the peer may have
//!   executed and what it certainly has not, such as a call that was never written.
//! - A late reply is dropped and counted. It never reaches another caller: the number of a call
//!   is not used again while anyone may still answer it.
//! - The handler of a call knows how long its caller still waits
//!   ([`time_left`](crate::Context::time_left)), and whether it has given up
//!   ([`cancelled`](crate::Context::cancelled)). A call that waits for its handler, behind one
//!   that waits or in an inbox, until nobody wants its answer is not run: it is answered
//!   [`DEADLINE_EXCEEDED`](crate::Status::DEADLINE_EXCEEDED) or
//!   [`CANCELLED`](crate::Status::CANCELLED), and counted. What was read before the end of its
//!   session is run all the same.
//!
//! # Calls inside handlers
//!
//! A handler may call, also on its own session, also when the called handler calls back, and so
//! on. While it waits, another thread reads the session: it completes replies, runs at once what
//! belongs to the waiting call, and holds everything else back in its order, within
//! `limits.backlog_bytes` and `limits.backlog_messages`. At most 16 handlers of a session wait
//! at a time. Where waiting could never end, the call fails with
//! [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock). A circle through a third program is not
//! seen: it ends in the time limit of a call.
//!
//! What a handler calls, on any session, waits no longer than the handler's own caller, and ends
//! with [`Cancelled`](crate::ErrorKind::Cancelled) when that one gives up or its session ends; the
//! peer that is called is told in turn, through any number of programs. A call for which a
//! deferred answer waits goes on to belong to it until the answer is given. A handler that has
//! answered, push handlers, events and callbacks of replies call for nobody: their calls have
//! their own limit alone; so have those of other threads. A call that still waits to be sent, as
//! there is no room, ends with the time limit at the latest.
//!
//! # Backpressure
//!
//! - The send queue of a session is bounded in bytes and in messages.
//!   [`push`](crate::Session::push) waits for room up to a time limit, and
//!   [`try_push`](crate::Session::try_push) gives the body back at once. Who waits gets room in
//!   the order of coming.
//! - Each side says at the beginning how many calls it holds at a time, in number and in bytes,
//!   and callers keep to it.
//! - Replies have room of their own, so reading never stops for them. A reply that does not even
//!   fit there becomes status [`OVERLOADED`](crate::Status::OVERLOADED). Two peers that flood
//!   each other with calls both finish.
//! - A handler that does not return stops the reading of its session, and with it, in the end,
//!   the sender.
//! - An [inbox](crate::Inbox) is bounded like that, too: a push without room waits, what comes
//!   behind it is held in the backlog, then reading pauses. Nothing is lost. A thread that
//!   receives and then waits for a call, while inbox and backlog are full, gets
//!   [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock) instead of a wait without end.
//! - So is a [pool](super::threads#a-pool), and a handler that waits for a call on one of its
//!   threads is treated likewise.
//!
//! # Slow peers
//!
//! A peer that does not read fills its own queue and no other. A
//! [broadcast](crate::Hub::broadcast) never waits: it says how many sessions have the message in
//! their queue, how many were full, and how many closed. A peer that takes no byte for
//! `timeouts.write` is cut off.
//!
//! What becomes of a push without room is a [policy](crate::SlowPeer), of a server, a client or
//! a single session: it waits ([`Block`](crate::SlowPeer::Block), the default), or it is dropped
//! and counted ([`DropNewest`](crate::SlowPeer::DropNewest)), or it ends the session
//! ([`Disconnect`](crate::SlowPeer::Disconnect)). Dropped pushes are in
//! [`CloseReport::dropped`](crate::CloseReport::dropped) and in no other count of it: what was
//! accepted and what was dropped is together what was pushed. Calls wait, whatever the policy.
//!
//! Servers do not disconnect by default: one that pushes in a loop fills a queue of 1 MiB before
//! an honest peer has read it.
//!
//! What all peers together make a server hold has [a cap](super::limits#memory-of-a-server), and
//! small messages pass even when it is used up.
//!
//! # Reconnecting
//!
//! A client [reconnects](crate::ClientBuilder::reconnect) if its builder says so; otherwise it is
//! over with its session. Each connection is a session of its own, with its own report.
//!
//! - **Nothing is sent again** that may have been written, and no call ever. What is lost is what
//!   the reports of the sessions say; [`totals`](crate::Client::totals) adds them up.
//! - **While there is no session**, pushes and calls fail at once with
//!   [`Disconnected`](crate::ErrorKind::Disconnected), and were not sent. With
//!   [`hold`](crate::ClientBuilder::hold) pushes are kept instead, in order and within bounds,
//!   behind those that the lost session had accepted and never written as a whole; they go out
//!   before anything newer of any thread. What gets too old, or is left when the client
//!   stops, is dropped, counted and told. Calls wait for the session, within their time limit; a
//!   call that meets the loss itself fails.
//! - **Clients spread out.** Each waits a random time before it dials, from a range that grows
//!   up to a bound. All [addresses](crate::ClientBuilder::also_at) are tried in their order in
//!   each attempt, and names are looked up anew.
//! - **A [login](crate::ClientBuilder::on_login)** runs on each session before anything that the
//!   program sends on the client.
//! - **It stops** where trying again cannot help: at `Version`, `WrongProtocol`, `InvalidInput`,
//!   `Unsupported`, at `Refused` and errors of the login that are not
//!   [retryable](crate::Error::is_retryable), if all addresses fail like that; when the peer says
//!   goodbye with a status other than `GOING_AWAY` and `OVERLOADED`, as if the client is removed
//!   or its name was taken over; and after `backoff.attempts` or `backoff.total`.
//!   [`reconnect_now`](crate::Client::reconnect_now) begins anew, and ends a wait.
//! - **A close is final**: of the client, or the drop of its last handle. Nothing is dialled
//!   afterwards; a dial in progress comes to nothing, at the latest after `timeouts.connect`. To
//!   close a session alone lets the client dial again.
//!
//! ```
//! # use std::time::Duration;
//! # use trunkline::{Backoff, Client, Error, Hold, Server};
//! # fn main() -> Result<(), Error> {
//! # let server = Server::builder().on_call("/login", |_, _| ()).bind("127.0.0.1:0")?;
//! # let address = server.local_address();
//! let client = Client::builder()
//!     .reconnect(Backoff::default())
//!     .hold(Hold::default())
//!     .on_login(|session| session.call("/login", "Ann").map(drop))
//!     .on_state(|change| eprintln!("{change}"))
//!     .connect_later(address)?;
//! client.push("/news", "it goes out when there is a session")?;
//! client.wait_connected(Duration::from_secs(5))?;
//! # Ok(())
//! # }
//! ```
//!
//! # The edges of a session
//!
//! - Handlers are in place before the first byte is read.
//! - Closing sends what is queued, says goodbye, delivers what the peer still sends, answers its
//!   calls with [`GOING_AWAY`](crate::Status::GOING_AWAY), and only then closes the socket;
//!   within a time limit.
//! - Dropping the last handle of a client writes what the system takes without waiting.
//! - [`on_closed`](crate::ServerBuilder::on_closed) runs once for each session, after its last
//!   message, which has been handled by then if it has a handler.
//!
//! # Hostile peers
//!
//! Lengths are checked before they are believed; memory grows with what has come and not with
//! what was announced; frames, handshakes and writes have deadlines; connections and threads are
//! counted; floods of frames that cost nothing are cut off. A handler that panics answers
//! [`HANDLER_PANICKED`](crate::Status::HANDLER_PANICKED), and the session lives on. Texts of a
//! peer are escaped where they are printed. The crate contains no unsafe code of its own.
//!
//! # Delays
//!
//! No timer holds small messages back: an idle connection writes at once, and a busy one writes
//! in one piece whatever has gathered meanwhile. What a handler answers is written when no whole
//! message is left to be handled, and at the latest after about a millisecond.
//!
//! # The line over time
//!
//! Each side sends a ping every [`heartbeat.interval`](crate::Heartbeat::interval), or every third
//! of the limit that the peer has told at the beginning, if that is shorter: by itself, whether
//! the line is busy or not, and however long handlers run. Its answer also confirms what has come.
//!
//! - A side that has waited for [`heartbeat.limit`](crate::Heartbeat::limit) (30 s) without a
//!   byte ends the session with [`Timeout`](crate::ErrorKind::Timeout), at most a second later.
//!   Its calls end at once and say [whether they may have been
//!   executed](crate::Error::maybe_executed). So a peer is found that is gone without a word, or
//!   whose machine answers while its program is stuck.
//! - Any byte is life, also one of a large message that takes minutes. A side whose handler is
//!   busy, or which has no room for more, does not judge, and what it sends lets its peer wait.
//! - What has come and was not read yet is read before anything is judged. A process that was
//!   stopped for a while, even together with its peer, waits anew once it goes on.
//! - Both sides may be set differently, and either may switch its part off. A session costs one
//!   small write and one small read every 10 s, and no thread.
//! - A ping waits for the message that is being written, and for no other.
//!
//! [Protocols](crate::protocol) without pings rely on the system: on what is written being
//! acknowledged (`socket.user_timeout`), its probes (`socket.keepalive`), and `timeouts.idle`.
//!
//! # Waiting
//!
//! Everything that waits has a time limit or a way to be woken:
//! [`guide::limits`](super::limits#time-limits) lists them.
//!
//! # Not yet
//!
//! | | what that means today |
//! |---|---|
//! | cables | one session is one connection; several to one peer are several sessions |
//! | resumable sessions | hence no "exactly once" across a cut |
//! | encryption, authentication | the line is plain: use networks that you trust, Unix sockets, or a tunnel. [`on_accept`](crate::ServerBuilder::on_accept) refuses by address, or by Unix user |
//! | compression and other filters | bodies travel as they are |
//! | structured bodies | bytes and text; other formats are an implementation of two [traits](crate::codec) |
//! | large bodies in pieces | a message is one frame, held as a whole at both ends |
//! | datagrams | streams alone |
