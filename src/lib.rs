//! Fast, safe messaging over TCP and Unix sockets for synchronous programs: one-way pushes, calls
//! with replies in both directions, and server push, on plain threads, without an async runtime.
//!
//! # Start
//!
//! ```toml
//! [dependencies]
//! trunkline = "0.1"
//! ```
//!
//! ```
//! use trunkline::{Client, Error, Server};
//!
//! fn main() -> Result<(), Error> {
//!     let server = Server::builder()
//!         .on_push("/log", |cx, body| println!("{}: {body}", cx.session().id()))
//!         .on_call("/shout", |_, body| body.to_ascii_uppercase())
//!         .bind("127.0.0.1:0")?;
//!
//!     let client = Client::connect(server.local_address())?;
//!     client.push("/log", "started")?;                    // one way
//!     let reply = client.call("/shout", "hello")?;        // and back
//!     assert_eq!(reply.body(), b"HELLO");
//!
//!     server.hub().broadcast("/news", "something happened")?;
//!     Ok(())
//! }
//! ```
//!
//! # What it promises
//!
//! - **Order**: what one thread sends on one session arrives, and is handled, in that order.
//! - **Delivery**: at most once, and at the end of a session you are told how much certainly
//!   came, how much perhaps, and how much certainly not.
//! - **A call ends once**: with a reply, an error status, a time limit, or a lost connection that
//!   says whether the peer may have executed it.
//! - **Bounds**: everything that a peer could make grow or last has a [limit](guide::limits), and
//!   passing it is an [error that names it](guide::errors). A slow peer stalls no other.
//! - **Calls work from inside handlers**, also back to the caller, without deadlock.
//!
//! [`guide::promises`] says exactly what holds, and what does not yet: this version does not
//! encrypt.
//!
//! # What it costs
//!
//! | | |
//! |---|---|
//! | threads | one for each connection, a second under load; one for each address listened on; a timer: [`guide::threads`] |
//! | memory | about 32 KiB for an idle connection; queues grow up to their limits: [`guide::limits`] |
//! | a push | one copy into the send queue, which waits for no lock and in the steady state allocates nothing |
//! | a call | the same, and a place to wait; with [`call_with`](Session::call_with) no allocation either |
//! | connections | a few thousand in a process: threads are counted, and what is too much is refused |
//! | dependencies | ten crates, and eighteen more behind them (`cargo tree`); no runtime to start, no thread before the first connection |
//!
//! It is for programs of your own that talk to each other and whose code blocks. It is not for
//! browsers, for tens of thousands of connections to one process, for messages that must outlive
//! a process, or for Windows. Coming from ZeroMQ, nng, NTCPMSG or teleport? [`guide::coming_from`]
//! translates.
//!
//! # Pages
//!
//! | page | answers |
//! |---|---|
//! | [`guide::promises`] | what may I rely on, and what not yet? |
//! | [`guide::threads`] | which threads run, and what may a handler do? |
//! | [`guide::limits`] | how much, how long, and what happens then? |
//! | [`guide::errors`] | whose fault is it, and does a retry help? |
//! | [`guide::logging`], [`guide::statistics`] | what does an operator see? |
//! | [`guide::embedded`] | does it fit a small machine? |
//! | [`guide::policy`] | what may change in which version? |
//! | [`guide::coming_from`] | what are my old words called here? |
//!
//! # Words
//!
//! | word | meaning | here |
//! |---|---|---|
//! | message | a kind, a route, a body and its format, perhaps metadata | [`message`] |
//! | push | a message that goes one way | [`Session::push`], [`ServerBuilder::on_push`] |
//! | call | a message that wants a reply | [`Session::call`], [`ServerBuilder::on_call`] |
//! | reply | the answer to a call: a body, or an error status | [`Reply`], [`Status`] |
//! | route | what a message is about: a number or a name | [`Route`] |
//! | metadata | a few key and value pairs beside the body | [`Request::meta`], [`Context::metadata`] |
//! | client | the peer that this side dialled, over one session, or over one after the other | [`Client`] |
//! | session | one peer, as user code holds it: push to it, call it | [`Session`] |
//! | inbox | messages without a handler, to be received by threads of your own | [`Inbox`] |
//! | hub | a server's sessions: find one, push to all | [`Hub`] |
//! | name | what the application calls a session by, at most one session each | [`Hub::set_name`] |
//! | group | sessions that get the same pushes | [`Hub::join`], [`Hub::push_to_group`] |
//! | peer | whoever is at the other end; both ends have the same powers | |
//!
//! A [`Client`] has a session that this side dialled, a [`Server`] has one for each client.
//! Clients, sessions and hubs are cheap to clone, and any number of threads may use one at once.
//!
//! # Addresses
//!
//! `HOST:PORT`, `unix:/PATH`, or on Linux `unix:@NAME`, wherever an address is asked for. A server
//! may listen [on several](ServerBuilder::also_on), each with its own [`SocketOptions`]. Sockets
//! that were opened elsewhere (by systemd, say, or a pair) are taken over with
//! [`Client::from_stream`], [`ServerBuilder::from_listener`] and [`Server::serve`].
//!
//! # Bodies
//!
//! Bytes and text are bodies as they are: `&[u8]`, `[u8; N]`, `Vec<u8>`, `&str`, `String`, `()`.
//! A handler gets a [`Body`], borrowed from the read buffer: it is a slice of bytes, and
//! [`decode`](Body::decode) reads it as text or as a type of your own; see [`codec`].
//!
//! # Handlers
//!
//! Handlers are given to the builder of the server or client, so that they are in place before
//! the first message is read. What a call's handler returns is the reply: a body, or a `Result`
//! with a [`Status`]; `?` turns this crate's errors into one.
//!
//! ```
//! # use trunkline::{Client, Server, Status};
//! # fn main() -> Result<(), trunkline::Error> {
//! let server = Server::builder()
//!     .on_call("/greet", |cx, body| -> Result<String, Status> {
//!         let greeting: &str = body.decode()?;
//!         if greeting.is_empty() {
//!             return Err(Status::new(1000, "say something"));
//!         }
//!         let name: String = cx.session().call_as("/name", ())?;
//!         Ok(format!("{greeting}, {name}"))
//!     })
//!     .bind("127.0.0.1:0")?;
//! let client = Client::builder()
//!     .on_call("/name", |_, _| "Ann")
//!     .connect(server.local_address())?;
//! assert_eq!(client.call_as::<String>("/greet", "hello")?, "hello, Ann");
//! # Ok(())
//! # }
//! ```
//!
//! The thread that reads a connection runs its handlers, one after the other, in the order of
//! arrival; handlers of different sessions run at the same time. A handler may push and call,
//! also on its own session. Long work belongs to a thread of your own: [`Context::defer`] lets
//! the handler return now and another thread answer later; or to a [`Pool`], on which handlers
//! run instead. See [`guide::threads`].
//!
//! An [`Interceptor`] sees every handled message and every call of this side: to log, to measure,
//! to refuse. [`Session::set_data`] keeps values of your own with a session.
//!
//! # Pull instead of handlers
//!
//! A builder that is asked for an [`inbox`](ServerBuilder::inbox) keeps the messages of all
//! routes without a handler until threads of your own receive them. The [`Inbox`] is bounded:
//! a push without room waits, and in time its sender does.
//!
//! ```
//! # use trunkline::{Client, Error, Kind, Server};
//! # fn main() -> Result<(), Error> {
//! let server = Server::builder().inbox(1024).bind("127.0.0.1:0")?;
//! let inbox = server.inbox()?;
//! let worker = std::thread::spawn(move || -> Result<(), Error> {
//!     for message in inbox {
//!         if message.kind() == Kind::Call {
//!             let answer = message.body().to_ascii_uppercase();
//!             message.reply(answer)?;
//!         }
//!     }
//!     Ok(())
//! });
//! let client = Client::connect(server.local_address())?;
//! assert_eq!(client.call("/shout", "hello")?.body(), b"HELLO");
//! # client.shutdown(std::time::Duration::from_secs(5))?;
//! // The inbox ends with the server and its sessions, and the loop with it.
//! drop(server);
//! # worker.join().unwrap()?;
//! # Ok(())
//! # }
//! ```
//!
//! A thread that works an inbox may push and call as it likes. What it calls for the sake of a
//! received call it calls with [`Received::request`], so that a peer whose handler waits for the
//! answer lets it through. If a peer's own calls are to be served while the only thread that
//! works the inbox waits for a call, their routes need handlers, or the inbox another thread.
//!
//! # Calls
//!
//! | to | use |
//! |---|---|
//! | wait for the reply | [`Session::call`] |
//! | look at the reply without copying it | [`Session::call_with`] |
//! | have it decoded | [`Session::call_as`] |
//! | add metadata, or a time limit for this call | [`Session::request`] |
//! | send now and wait later | [`Request::start`], then [`Pending::wait`] |
//! | be told | [`Request::call_then`], [`Pending::on_reply`] |
//! | give up | [`Pending::cancel`], or drop it |
//!
//! Every call has a time limit: `timeouts.call`, unless it sets its own. It ends once, and a
//! reply that comes later is dropped and counted. The handler sees what is left of the limit
//! ([`Context::time_left`]) and whether the caller has given up ([`Context::cancelled`]), and
//! passes both on to the calls that it makes.
//!
//! # Errors
//!
//! There is one [`Error`]. Its [`kind`](Error::kind) is for decisions: [`guide::errors`] says for
//! each whose fault it is, whether to try again, and what to do. Its text is for people and names
//! the limit that was passed.
//!
//! ```
//! # use trunkline::{Client, Error, ErrorKind, Status};
//! # fn example(client: &Client) -> Result<(), Error> {
//! match client.call("/greet", "hello") {
//!     Ok(reply) => assert!(!reply.body().is_empty()),
//!     Err(error) if error.is_timeout() => { /* it may have been executed all the same */ }
//!     Err(error) if error.status().is_some_and(|status| status.code() == 1000) => {}
//!     Err(error) => return Err(error),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! [`Limits`] bound sizes and counts, [`Timeouts`] how long things take, and a [`Heartbeat`] finds
//! peers that are gone without a word. A full send queue makes
//! [`push`](Session::push) wait, and [`try_push`](Session::try_push) give the body back; with
//! another policy for [slow peers](SlowPeer) it drops the push or ends the session.
//!
//! ```
//! # use std::time::Duration;
//! # use trunkline::{Client, Limits, Timeouts};
//! let mut timeouts = Timeouts::default();
//! timeouts.call = Duration::from_secs(2);
//! let builder = Client::builder().limits(Limits::embedded()).timeouts(timeouts);
//! # drop(builder);
//! ```
//!
//! With feature `config`, `Settings` reads all of them from a TOML file.
//!
//! # Closing
//!
//! [`Session::shutdown`] sends what is queued, says goodbye, waits for what the peer still sends
//! and for its goodbye, and returns a [`CloseReport`]. [`Session::close`] does the same without
//! waiting, [`Session::close_with`] also tells the peer why, [`Session::abort`] cuts the line.
//! Dropping the last handle of a client writes what the system takes at once and says goodbye: a
//! program that connects, pushes a few messages and ends has sent them.
//!
//! The report counts messages and bytes: those *not written* never left this process, those
//! *confirmed* were received by the peer, and of the *unconfirmed* between none and all were.
//! After a clean close in the native protocol all are confirmed.
//!
//! # Reconnecting
//!
//! By default a client is over with its session. With [`ClientBuilder::reconnect`] it dials again
//! when that is lost, after waits that grow ([`Backoff`]), and goes from one [`Session`] to the
//! next; [`also_at`](ClientBuilder::also_at) adds addresses, and
//! [`connect_later`](ClientBuilder::connect_later) does not wait for the first. Meanwhile pushes
//! and calls fail at once, or are held or wait ([`ClientBuilder::hold`]); nothing is sent twice.
//! [`on_login`](ClientBuilder::on_login) introduces each session to the server, and
//! [`on_state`](ClientBuilder::on_state) tells how it goes. [`guide::promises`] has the rules.
//!
//! # Figures and log
//!
//! [`Session::stats`] counts one session, [`Hub::stats`] and [`Server::stats`] all of them, with
//! those that are over. [`Stats`] prints as text, [`Stats::rates_since`] compares two snapshots,
//! and [`Stats::prometheus`] is for a monitoring system: [`guide::statistics`]. What happens to
//! servers and sessions is recorded through the `log` crate: [`guide::logging`].
//!
//! # Sockets
//!
//! | for | use |
//! |---|---|
//! | TCP | `127.0.0.1:2500`, `[::1]:2500`, `example.org:2500` |
//! | a Unix socket | `unix:/run/app.sock`, or `unix:@name` without a file |
//! | several addresses of one server | [`ServerBuilder::also_on`] |
//! | a socket pair, or a stream that was opened elsewhere | [`Server::serve`], [`Client::from_stream`] |
//! | a listener that was opened elsewhere, as by systemd | [`ServerBuilder::from_listener`] |
//! | options of the sockets | [`SocketOptions`], [`Session::socket`] |
//! | who may come in | [`ServerBuilder::on_accept`], which sees the [`Address`] |
//!
//! Of a peer on a Unix socket the address tells the user and the process, as the system vouches
//! for them. A descriptor from systemd is taken over by a crate such as `listenfd`, without
//! unsafe code.
//!
//! # Protocols
//!
//! By default both ends speak Trunkline's own protocol, [`protocol::native`]. With
//! [`Framing`] a client or server speaks a simpler one to other programs; the table in
//! [`protocol`] says what each can carry, and what it cannot is refused with
//! [`ErrorKind::Unsupported`].
//!
//! [`Framed`] reads and writes messages on anything else that carries bytes, such as a serial
//! line or a pipe, in one of these protocols or in one of your own; without threads, and without
//! calls and heartbeats.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `config` | no | `Settings`: limits, time limits, heartbeats and socket options from a TOML file, and serde's traits for them |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod address;
pub mod client;
pub mod codec;
pub mod config;
mod connection;
pub mod error;
mod escape;
pub mod guide;
pub mod hub;
mod link;
mod memory;
pub mod message;
pub mod protocol;
mod queue;
mod records;
pub mod router;
pub mod server;
pub mod session;
pub mod stats;
pub mod status;
mod timer;

pub use address::Address;
pub use client::{Client, ClientBuilder, ClientState, StateChange, Totals};
pub use codec::{Body, FromBody, IntoBody};
#[cfg(feature = "config")]
pub use config::Settings;
pub use config::{
    Backoff, Dispatch, Heartbeat, Hold, Limits, Pool, SlowPeer, SocketOptions, StartedThread,
    ThreadRole, Timeouts,
};
pub use connection::{CloseReason, CloseReport, OpenSocket};
pub use error::{Error, ErrorKind, TryPushError};
pub use hub::{Duplicate, Hub, Sent};
pub use message::{CodecId, Kind, Metadata, MetadataRef, Route, SessionId};
pub use protocol::{Framed, Framing};
pub use router::{Context, IntoReply, Replied, ReplyTo};
pub use server::{Server, ServerBuilder, ShutdownReport};
pub use session::{
    Deferred, Direction, Exchange, Inbox, Interceptor, Outcome, Pending, Received, Reply, Request,
    Responder, Session, SessionSnapshot,
};
pub use stats::{Count, HandlerTime, Rates, Stats};
pub use status::Status;

/// The program in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
