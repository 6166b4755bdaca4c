//! Coming from NTCPMSG.
//!
//! | there | here |
//! |---|---|
//! | `SingleConnection`, `Connect` | [`Client::connect`](crate::Client::connect) |
//! | connecting again | [`ClientBuilder::reconnect`](crate::ClientBuilder::reconnect) |
//! | `NTcpListener`, `Listen` | [`ServerBuilder::bind`](crate::ServerBuilder::bind) |
//! | event number | [route](crate::Route): a number below `u32::MAX`, or a name |
//! | `AsyncSend(event, data)` | [`Session::push`](crate::Session::push) |
//! | `SyncSend(event, data, timeout)` | [`Session::call`](crate::Session::call), or a [request](crate::Session::request) with a time limit |
//! | `listener.AsyncSend(endpoint, ..)` | [`Hub::session_at`](crate::Hub::session_at), then push; it may call as well |
//! | `GetRemoteEndPoints`, `GetCableIds` | [`Hub::sessions`](crate::Hub::sessions) |
//! | loop over all end points | [`Hub::broadcast`](crate::Hub::broadcast) |
//! | `DataReceived` and `switch (args.Event)` | a handler for each route: [`on_push`](crate::ServerBuilder::on_push), [`on_call`](crate::ServerBuilder::on_call); or a loop over an [`Inbox`](crate::Inbox) |
//! | `args.ReturnData` | what the handler returns |
//! | `ReceiveEventHandler` of a client | [`on_push`](crate::ClientBuilder::on_push) of its builder |
//! | `Accepted`, `RemoteDisconnected` | `on_connected`, `on_closed` |
//! | `ErrorEventHandler` | `on_error` |
//! | channel | the sequence number of a call; you never see it |
//! | serializers | [`codec`](crate::codec): bytes and text, and formats of your own |
//!
//! ```
//! # use trunkline::{Client, Error, Server, Status};
//! # fn main() -> Result<(), Error> {
//! const ONE_WAY: u32 = 10;
//! const ADD_ONE: u32 = 11;
//!
//! let server = Server::builder()
//!     .on_push(ONE_WAY, |cx, body| println!("{}: {body}", cx.peer_address()))
//!     .on_call(ADD_ONE, |_, body| -> Result<[u8; 4], Status> {
//!         let number = u32::from_le_bytes(body.decode()?);
//!         Ok((number + 1).to_le_bytes())
//!     })
//!     .bind("127.0.0.1:0")?;
//! let client = Client::connect(server.local_address())?;
//! client.push(ONE_WAY, "hello")?;
//! let answer: [u8; 4] = client.call_as(ADD_ONE, 41_u32.to_le_bytes())?;
//! assert_eq!(u32::from_le_bytes(answer), 42);
//! # Ok(())
//! # }
//! ```
//!
//! # What is different
//!
//! - **Errors travel.** Where a failed handler there could only answer with nothing, here it
//!   answers a [`Status`](crate::Status) with code, text and cause.
//! - **The server calls, too**, and calls work from inside handlers, in both directions.
//! - **Sending is bounded.** `AsyncSend` becomes a push that waits when the peer is slower, or
//!   [`try_push`](crate::Session::try_push) that gives the data back.
//! - **Sessions have numbers** that are the same at both ends and never used again while a server
//!   runs, in place of end points and cable ids.
//! - **Handlers are in place before the first byte**: no request that comes right after the
//!   connection is lost.
//! - **A broken stream ends its session** with a clear error; nothing searches for the next start
//!   of a frame.
//! - **Bodies** may have 16 MiB by default, as there, and more if the limits say so.
//! - **Small messages are combined** while a connection is busy; no timer holds them back.
//!
//! # What is missing here
//!
//! | there | here today |
//! |---|---|
//! | `SingleConnectionCable`: several connections used as one | one connection for each session. It carries the calls of many threads at once, so most programs need no more |
//! | sending of objects with `BinSerializer` and others | encode by yourself, or implement two traits |
//! | NTCPMSG's wire format | no: both ends change over |
//! | Windows, .NET | Linux and Rust at both ends |
