//! Coming from nng or nanomsg.
//!
//! | there | here |
//! |---|---|
//! | socket of a protocol | a [`Client`](crate::Client) or a [`Server`](crate::Server): either speaks all patterns |
//! | pipe | [`Session`](crate::Session) |
//! | dialer, `nng_dial` | [`Client::connect`](crate::Client::connect) |
//! | dialers that reconnect, `NNG_FLAG_NONBLOCK` of `nng_dial` | [`ClientBuilder::reconnect`](crate::ClientBuilder::reconnect), [`connect_later`](crate::ClientBuilder::connect_later) |
//! | listener, `nng_listen` | [`ServerBuilder::bind`](crate::ServerBuilder::bind) |
//! | `tcp://`, `ipc://`, `abstract://` | `HOST:PORT`, `unix:/PATH`, `unix:@NAME` |
//! | `socket://`: a descriptor that is open already | [`Client::from_stream`](crate::Client::from_stream), [`Server::serve`](crate::Server::serve) |
//! | req | [`Session::call`](crate::Session::call) |
//! | rep | [`on_call`](crate::ServerBuilder::on_call) |
//! | `nng_ctx`: several requests at a time | calls of several threads, or [`Request::start`](crate::Request::start) |
//! | push, pull | [`Session::push`](crate::Session::push), an [`Inbox`](crate::Inbox) or [`on_push`](crate::ServerBuilder::on_push) |
//! | pub | [`Hub::broadcast`](crate::Hub::broadcast), or [`Hub::push_to_group`](crate::Hub::push_to_group) |
//! | sub | [`on_push`](crate::ClientBuilder::on_push), with the topic as route |
//! | pair | any session |
//! | `nng_aio` | [`Pending`](crate::Pending); with a callback: [`Request::call_then`](crate::Request::call_then) |
//! | `nng_aio_cancel` | [`Pending::cancel`](crate::Pending::cancel) |
//! | `NNG_FLAG_NONBLOCK` | [`try_push`](crate::Session::try_push) |
//! | `NNG_OPT_SENDTIMEO`, `NNG_OPT_RECVTIMEO` | [`Timeouts`](crate::Timeouts), or a limit of the request |
//! | `NNG_OPT_SENDBUF` (messages) | [`queued_bytes`](crate::Limits::queued_bytes) and [`queued_messages`](crate::Limits::queued_messages) |
//! | `NNG_OPT_RECVMAXSZ` | [`frame_bytes`](crate::Limits::frame_bytes) |
//! | `nng_pipe_notify` | `on_connected`, `on_closed`; to refuse: [`on_accept`](crate::ServerBuilder::on_accept) |
//! | `nng_stats_get` | [`Stats`](crate::Stats) |
//! | message header and body | [route](crate::Route), [metadata](crate::Metadata), body |
//!
//! # What is different
//!
//! - **No request is repeated.** A req socket sends its request again when its connection is lost
//!   or a minute has passed without a reply, so requests there must bear repetition. Here a call
//!   is sent once, and [`maybe_executed`](crate::Error::maybe_executed) says whether repeating it
//!   could do it twice.
//! - **Pushes are queued**, within a bound in bytes; an nng push is unbuffered unless told
//!   otherwise, and waits for a peer.
//! - **The pattern is not in the socket.** One session pushes and calls in both directions at
//!   once, so a server calls its client as well as it answers.
//! - **Receiving is a handler** on a thread of the session, with the order of arrival kept.
//! - **The end is counted**: messages that are surely lost, perhaps lost and confirmed.
//! - As in nng, all threads may use a session at once.
//!
//! ```
//! # use std::time::Duration;
//! # use trunkline::{Client, Error, Server};
//! # fn main() -> Result<(), Error> {
//! // What a survey does: ask everybody, and take the answers that come in time.
//! # let server = Server::builder().on_call("/hello", |_, _| ()).bind("127.0.0.1:0")?;
//! # let client = Client::builder().on_call("/load", |_, _| "low").connect(server.local_address())?;
//! # client.call("/hello", ())?;
//! let limit = Duration::from_secs(1);
//! let asked: Vec<_> = server
//!     .hub()
//!     .sessions()
//!     .iter()
//!     .filter_map(|session| session.request("/load").timeout(limit).start(()).ok())
//!     .collect();
//! let answers: Vec<_> = asked.into_iter().filter_map(|call| call.wait().ok()).collect();
//! assert_eq!(answers.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # What is missing here
//!
//! | there | here today |
//! |---|---|
//! | spreading over several peers (req, push) | choose among your sessions |
//! | survey, bus | a few lines, as above |
//! | subscriptions at the receiver | groups at the sender: the server [adds](crate::Hub::join) a session when it asks for a topic |
//! | `inproc://`, WebSocket, TLS | a socket pair with [`from_stream`](crate::Client::from_stream); no; no |
//! | devices and raw sockets | no |
//! | nng's wire format | no: both ends change over |
//! | Windows | no |
