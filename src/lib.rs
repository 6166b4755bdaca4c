//! Trunkline gives synchronous programs fast, safe messaging over TCP: pushes, calls with
//! replies in both directions, and server push, on plain threads.

pub mod client;
pub mod codec;
pub mod config;
mod connection;
pub mod error;
pub mod hub;
mod link;
pub mod message;
pub mod protocol;
mod queue;
pub mod router;
pub mod server;
pub mod session;
pub mod stats;
pub mod status;
mod timer;

pub use client::{Client, ClientBuilder};
pub use codec::{Body, FromBody, IntoBody};
pub use config::{Limits, SocketOptions, Timeouts};
pub use connection::{CloseReason, CloseReport};
pub use error::{Error, ErrorKind, TryPushError};
pub use hub::{Hub, Sent};
pub use message::{CodecId, Kind, Metadata, MetadataRef, Route, SessionId};
pub use protocol::Framing;
pub use router::{Context, IntoReply, Replied, ReplyTo};
pub use server::{Server, ServerBuilder, ShutdownReport};
pub use session::{Deferred, Pending, Reply, Request, Responder, Session};
pub use stats::{Count, Rates, Stats};
pub use status::Status;
