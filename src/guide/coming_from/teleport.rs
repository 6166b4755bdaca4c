//! Coming from teleport (henrylee2cn/teleport for Go, later andeya/erpc).
//!
//! | there | here |
//! |---|---|
//! | peer: `NewPeer`, `PeerConfig` | [`Client::builder`](crate::Client::builder) and [`Server::builder`](crate::Server::builder) |
//! | `Dial` | [`ClientBuilder::connect`](crate::ClientBuilder::connect) |
//! | `RedialTimes`, `RedialInterval` | [`ClientBuilder::reconnect`](crate::ClientBuilder::reconnect) |
//! | `ListenAndServe` | [`ServerBuilder::bind`](crate::ServerBuilder::bind), then [`Server::wait`](crate::Server::wait) |
//! | `ServeConn` | [`Server::serve`](crate::Server::serve) |
//! | session | [`Session`](crate::Session) |
//! | `sess.Call(method, arg, &result)` | [`Session::call_as`](crate::Session::call_as) |
//! | `sess.AsyncCall` | [`Request::start`](crate::Request::start), or [`Request::call_then`](crate::Request::call_then) |
//! | `sess.Push` | [`Session::push`](crate::Session::push) |
//! | service method `/math/add` | [route](crate::Route), written in full: nothing is made of the names of types |
//! | `RouteCall`, `RouteCallFunc` | [`on_call`](crate::ServerBuilder::on_call) |
//! | `RoutePush`, `RoutePushFunc` | [`on_push`](crate::ServerBuilder::on_push) |
//! | `SetUnknownCall`, `SetUnknownPush` | [`on_other_calls`](crate::ServerBuilder::on_other_calls), [`on_other_pushes`](crate::ServerBuilder::on_other_pushes) |
//! | `CallCtx`, `PushCtx` | [`Context`](crate::Context) |
//! | `WithAddMeta`, `PeekMeta` | [`Request::meta`](crate::Request::meta), [`Context::metadata`](crate::Context::metadata) |
//! | `*Status`, code, msg, cause | [`Status`](crate::Status), with the same three |
//! | `RangeSession`, `CountSession` | [`Hub::sessions`](crate::Hub::sessions), [`Hub::len`](crate::Hub::len) |
//! | `sess.SetId`, `GetSession(id)` | [`Hub::set_name`](crate::Hub::set_name), [`Hub::named`](crate::Hub::named) |
//! | `sess.Swap()` | [`Session::set_data`](crate::Session::set_data): a value of each type |
//! | plugins around messages | [`Interceptor`](crate::Interceptor) |
//! | plugins at accept, dial, disconnect | [`on_accept`](crate::ServerBuilder::on_accept), `on_connected`, `on_closed` |
//! | `Proto` | [`Framing`](crate::Framing); of your own: [`Protocol`](crate::protocol::Protocol) with [`Framed`](crate::Framed) |
//! | `DefaultDialTimeout`, `DefaultContextAge` | [`timeouts.connect`](crate::Timeouts::connect), [`timeouts.call`](crate::Timeouts::call) |
//! | `SetMessageSizeLimit` | [`frame_bytes`](crate::Limits::frame_bytes) |
//! | the plugin `heartbeat` | [`Heartbeat`](crate::Heartbeat), on by default |
//! | `SetSocketNoDelay` and others | [`SocketOptions`](crate::SocketOptions), of each client or server |
//! | `SlowCometDuration`, `CountTime` | an interceptor; [`Stats::handler_time`](crate::Stats::handler_time) |
//! | peer.Close | [`Session::shutdown`](crate::Session::shutdown), [`Server::shutdown`](crate::Server::shutdown) |
//!
//! ```
//! # use trunkline::{Client, Error, Server, Status};
//! # fn main() -> Result<(), Error> {
//! let server = Server::builder()
//!     .on_call("/math/add", |cx, body| -> Result<String, Status> {
//!         println!("author: {:?}", cx.metadata().get("author"));
//!         let mut sum = 0;
//!         for number in body.decode::<&str>()?.split(',') {
//!             let number: i64 = number
//!                 .parse()
//!                 .map_err(|_| Status::new(Status::BAD_BODY, "numbers are expected"))?;
//!             sum += number;
//!         }
//!         Ok(sum.to_string())
//!     })
//!     .bind("127.0.0.1:0")?;
//! let client = Client::builder()
//!     .on_push("/push/status", |_, body| println!("{body}"))
//!     .connect(server.local_address())?;
//! let reply = client.request("/math/add").meta("author", "Ann").call("1,2,3")?;
//! assert_eq!(reply.decode::<&str>()?, "6");
//! server.hub().broadcast("/push/status", "all is well")?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is different
//!
//! - **Handlers of a session run in order**, one after the other, on the thread that reads it;
//!   there each message gets a goroutine. What takes long is [deferred](crate::Context::defer).
//! - **Threads, not goroutines**: a connection costs one or two, so a process holds a few thousand
//!   sessions, not a hundred thousand.
//! - **Every call has a time limit**, 30 s by default; there it has none unless it is set.
//! - **Limits are those of a client or server**, not of the process, and lower: a frame has 16 MiB
//!   at most by default.
//! - **A full queue is visible**: a push waits, or comes back.
//! - **A side that closes still gets its answers**: calls that run are finished first.
//! - **Status codes** are other ones for the same mistakes; see [`status`](crate::status). Those of
//!   your own begin at 1000, or are negative.
//! - **A session's number** is given by the server and fixed. An id of the application's own is
//!   its name, and who gives one says what becomes of another session that has it.
//!
//! # What is missing here
//!
//! | there | here today |
//! |---|---|
//! | JSON, Protobuf, Thrift, XML, form | encode by yourself, or implement two [traits](crate::codec) |
//! | transfer filters: gzip, md5 | no |
//! | TLS, the plugins `auth` and `secure` | no encryption; [`on_accept`](crate::ServerBuilder::on_accept) by address or Unix user |
//! | QUIC, WebSocket, HTTP | no |
//! | restarting without a gap (`Reboot`) | hand the listener over: [`ServerBuilder::from_listener`](crate::ServerBuilder::from_listener) |
//! | teleport's wire format | no: both ends change over |
