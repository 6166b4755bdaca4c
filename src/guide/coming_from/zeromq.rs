//! Coming from ZeroMQ.
//!
//! | there | here |
//! |---|---|
//! | context, `io_threads` | nothing: there is no global state, and each connection has its [threads](crate::guide::threads) |
//! | `zmq_bind` | [`ServerBuilder::bind`](crate::ServerBuilder::bind), on several addresses with [`also_on`](crate::ServerBuilder::also_on) |
//! | `zmq_connect` | [`Client::connect`](crate::Client::connect); it waits for the server, or fails |
//! | connecting again, and before the server is there; `ZMQ_RECONNECT_IVL` | [`ClientBuilder::reconnect`](crate::ClientBuilder::reconnect), [`connect_later`](crate::ClientBuilder::connect_later); what is pushed meanwhile is [held](crate::ClientBuilder::hold) if you ask for it |
//! | `tcp://`, `ipc://`, abstract names | `HOST:PORT`, `unix:/PATH`, `unix:@NAME` |
//! | REQ: send, then receive | [`Session::call`](crate::Session::call) |
//! | REP | [`on_call`](crate::ServerBuilder::on_call) |
//! | DEALER: many requests in flight | [`Request::start`](crate::Request::start) and [`Pending`](crate::Pending), or calls of several threads |
//! | ROUTER: answer later, in any order | [`Context::defer`](crate::Context::defer) |
//! | ROUTER: send to a routing id | [`Hub::session`](crate::Hub::session), then push or call |
//! | PUSH | [`Session::push`](crate::Session::push) |
//! | PULL | an [`Inbox`](crate::Inbox), or [`on_push`](crate::ServerBuilder::on_push) |
//! | PUB | [`Hub::broadcast`](crate::Hub::broadcast), or [`Hub::push_to_group`](crate::Hub::push_to_group) |
//! | SUB | [`on_push`](crate::ClientBuilder::on_push), with the topic as route |
//! | PAIR | any session: both ends push and call |
//! | STREAM | [`Framing::Stream`](crate::Framing::Stream) |
//! | message of several parts | one body, with a [route](crate::Route) and [metadata](crate::Metadata) beside it |
//! | `ZMQ_DONTWAIT`, `ZMQ_SNDTIMEO` | [`try_push`](crate::Session::try_push), [`push_timeout`](crate::Session::push_timeout) |
//! | `ZMQ_RCVTIMEO` | the time limit of a call: [`Request::timeout`](crate::Request::timeout) |
//! | `ZMQ_SNDHWM` (messages) | [`queued_bytes`](crate::Limits::queued_bytes) and [`queued_messages`](crate::Limits::queued_messages) |
//! | `ZMQ_MAXMSGSIZE` | [`frame_bytes`](crate::Limits::frame_bytes) |
//! | `ZMQ_LINGER` | [`shutdown`](crate::Session::shutdown)'s limit, or [`timeouts.close`](crate::Timeouts::close) |
//! | `ZMQ_HEARTBEAT_IVL`, `ZMQ_HEARTBEAT_TIMEOUT` | [`Heartbeat`](crate::Heartbeat), on by default |
//! | `zmq_socket_monitor` | `on_connected`, `on_closed`, `on_error`, the [log](crate::guide::logging) and [figures](crate::guide::statistics) |
//! | `zmq_poll` | handlers; several threads; one [`Inbox`](crate::Inbox) for all sessions of a server |
//!
//! # What is different
//!
//! - **Sessions may be shared.** Most ZeroMQ sockets belong to one thread at a time; clones of a
//!   session are used by as many threads as you like, and 32 threads that call over one
//!   connection each get their own answer.
//! - **Receiving is a handler**, on the thread that reads the connection; or an inbox, from which
//!   any thread receives.
//! - **A call is whole.** It has a time limit, an error status, and a number that pairs it with
//!   its reply; a REQ socket that lost its reply need not be thrown away.
//! - **Nothing is dropped silently.** A PUB socket drops for a slow subscriber, and a ROUTER for an
//!   unknown one, without a word; a broadcast returns how many had no room, and a push to a closed
//!   session is an error. [`SlowPeer::DropNewest`](crate::SlowPeer::DropNewest) drops, and counts.
//! - **Every peer has its own queue, in bytes**, where ZeroMQ counts messages. It ends with the
//!   session: what waits for a peer that is gone is reported, not kept for its return.
//! - **Closing waits at most as long as you say**; ZeroMQ's default is to wait for ever.
//!
//! ```
//! # use std::thread;
//! # use trunkline::{Client, Error, Server};
//! # fn main() -> Result<(), Error> {
//! // ROUTER and DEALER: several requests in flight, answered in any order.
//! let server = Server::builder()
//!     .on_call("/work", |cx, body| {
//!         let (responder, deferred) = cx.defer();
//!         let work = body.to_vec();
//!         thread::spawn(move || responder.reply(work));
//!         deferred
//!     })
//!     .bind("127.0.0.1:0")?;
//! let client = Client::connect(server.local_address())?;
//! let first = client.request("/work").start("first")?;
//! let second = client.request("/work").start("second")?;
//! assert_eq!(second.wait()?.body(), b"second");
//! assert_eq!(first.wait()?.body(), b"first");
//! # Ok(())
//! # }
//! ```
//!
//! # What is missing here
//!
//! | there | here today |
//! |---|---|
//! | spreading over several peers (PUSH, DEALER, REQ) | choose among your sessions |
//! | fair queueing from several peers into one receive | an [`Inbox`](crate::Inbox): in the order of coming |
//! | subscriptions by prefix of the message | groups: the server [adds](crate::Hub::join) a session when it asks for a topic |
//! | `inproc://`, multicast, datagrams | a socket pair with [`from_stream`](crate::Client::from_stream); no |
//! | CURVE, GSSAPI, ZAP | no encryption; [`on_accept`](crate::ServerBuilder::on_accept) by address or Unix user |
//! | proxies and devices | no |
//! | ZMTP | no: both ends change over |
