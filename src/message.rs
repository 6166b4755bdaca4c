//! The model: what a message is made of, owned and borrowed.

mod display;
mod metadata;
mod route;

use std::fmt;
use std::time::Duration;

use crate::status::{Status, StatusRef};

pub(crate) use display::{BodyBytes, Payload};
pub(crate) use metadata::{Items, PAIR, pair};
pub use metadata::{Metadata, MetadataIter, MetadataRef};
pub use route::{OwnedRoute, Route};

/// What a message is for. The numbers are those of the native wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// One way.
    Push = 1,
    /// Wants a reply.
    Call = 2,
    /// Answers a call.
    Reply = 3,
    /// Asks for a pong.
    Ping = 8,
    /// Says how much was received.
    Pong = 9,
    /// No push or call follows; says how much was received.
    Goodbye = 10,
    /// The caller gave up on its call.
    Cancel = 11,
}

impl Kind {
    /// Pushes, calls and replies count in the delivery counts; control frames do not.
    pub fn is_message(self) -> bool {
        matches!(self, Kind::Push | Kind::Call | Kind::Reply)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Push => "push",
            Kind::Call => "call",
            Kind::Reply => "reply",
            Kind::Ping => "ping",
            Kind::Pong => "pong",
            Kind::Goodbye => "goodbye",
            Kind::Cancel => "cancel",
        })
    }
}

/// The format of a body, by number: 0 to 127 are this crate's, 128 to 255 the application's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodecId(pub u8);

impl CodecId {
    /// Plain bytes.
    pub const BYTES: CodecId = CodecId(0);
    /// UTF-8 text.
    pub const TEXT: CodecId = CodecId(1);
}

/// The number of a session, unique in its server for the server's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A message whose parts borrow from the buffer it was read from, or from its sender.
///
/// `Display` and `Debug` are for logs: they show at most 64 bytes of the body, and escape control
/// characters.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct MessageRef<'a> {
    /// What it is for.
    pub kind: Kind,
    /// What it is about; number 0 in replies and control frames.
    pub route: Route<'a>,
    /// Pairs a reply or cancel with its call; 0 in pushes.
    pub sequence: u32,
    /// The format of the body.
    pub codec: CodecId,
    /// How a call ended; `None` means success and is the rule.
    pub status: Option<StatusRef<'a>>,
    /// Key and value pairs.
    pub metadata: MetadataRef<'a>,
    /// In a call made by a handler: the sequence of the call that the handler serves.
    pub parent: Option<u32>,
    /// In a call: how long its caller will still wait.
    pub time_left: Option<Duration>,
    /// The payload.
    pub body: &'a [u8],
}

impl<'a> MessageRef<'a> {
    /// A message without status, metadata, parent and time left.
    pub fn new(
        kind: Kind,
        route: Route<'a>,
        sequence: u32,
        codec: CodecId,
        body: &'a [u8],
    ) -> Self {
        MessageRef {
            kind,
            route,
            sequence,
            codec,
            status: None,
            metadata: MetadataRef::EMPTY,
            parent: None,
            time_left: None,
            body,
        }
    }

    /// A control frame.
    pub(crate) fn control(kind: Kind, sequence: u32, body: &'a [u8]) -> Self {
        MessageRef::new(kind, Route::Number(0), sequence, CodecId::BYTES, body)
    }

    /// An owned copy.
    pub fn to_message(&self) -> Message {
        Message {
            kind: self.kind,
            route: self.route.to_owned_route(),
            sequence: self.sequence,
            codec: self.codec,
            status: self.status.map(StatusRef::to_status),
            metadata: self.metadata.to_metadata(),
            parent: self.parent,
            time_left: self.time_left,
            body: self.body.to_vec(),
        }
    }
}

/// An owned message. `Display` and `Debug` are those of [`MessageRef`].
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// What it is for.
    pub kind: Kind,
    /// What it is about.
    pub route: OwnedRoute,
    /// Pairs a reply with its call; 0 in pushes.
    pub sequence: u32,
    /// The format of the body.
    pub codec: CodecId,
    /// How a call ended; `None` means success.
    pub status: Option<Status>,
    /// Key and value pairs.
    pub metadata: Metadata,
    /// In a call made by a handler: the sequence of the call that the handler serves.
    pub parent: Option<u32>,
    /// In a call: how long its caller would still wait when it was sent.
    pub time_left: Option<Duration>,
    /// The payload.
    pub body: Vec<u8>,
}

impl Message {
    /// A view of the message.
    pub fn as_ref(&self) -> MessageRef<'_> {
        MessageRef {
            kind: self.kind,
            route: self.route.as_route(),
            sequence: self.sequence,
            codec: self.codec,
            status: self.status.as_ref().map(Status::as_ref),
            metadata: self.metadata.as_ref(),
            parent: self.parent,
            time_left: self.time_left,
            body: &self.body,
        }
    }
}
