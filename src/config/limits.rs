//! How much is accepted and held.

#[cfg(feature = "config")]
use super::notation::{Notation, Size};

/// How much of everything one side accepts and holds.
///
/// Every limit is named in the error that it causes. Counts are messages or pairs, sizes are
/// bytes. [`guide::limits`](crate::guide::limits) says what happens when each is passed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one frame on the wire, header included. Default 16 MiB; embedded 1 MiB; on
    /// machines of 32 bits below 2 GiB.
    /// A peer that announces more is cut off before a byte of the body is read.
    #[doc(alias = "MAXMSGSIZE")]
    #[doc(alias = "RECVMAXSZ")]
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub frame_bytes: u32,
    /// Bytes of one decoded body. Default 16 MiB; embedded 1 MiB.
    /// It differs from `frame_bytes` once filters compress.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub body_bytes: u32,
    /// Bytes of all metadata of one message, as encoded. Default 8 KiB; embedded 1 KiB.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub metadata_bytes: u32,
    /// Metadata pairs of one message. Default 64; embedded 16.
    pub metadata_pairs: u32,
    /// Bytes of a route's name. Default 256; embedded 128.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub route_name_bytes: u32,
    /// Calls of this side that wait for replies on one session. Default 65,536; embedded 256.
    /// A call that timed out counts until its late reply comes.
    pub pending_calls: u32,
    /// Calls of the peer in flight on one session, announced to it. Default 65,536; embedded 256.
    pub incoming_calls: u32,
    /// Bytes of those calls, 64 beside each body, announced to the peer. Default 4 MiB; embedded
    /// 256 KiB. A single larger call is admitted alone.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub incoming_call_bytes: u32,
    /// Bytes that wait in the send queue of one session. Default 1 MiB; embedded 64 KiB.
    /// A single larger message is admitted when the queue is empty.
    #[doc(alias = "SNDHWM")]
    #[doc(alias = "high-water mark")]
    #[doc(alias = "SENDBUF")]
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub queued_bytes: u32,
    /// Messages that wait in the send queue of one session. Default 65,536; embedded 1,024.
    pub queued_messages: u32,
    /// Bytes beyond `queued_bytes` that only replies may use. Default 4 MiB; embedded 256 KiB.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub reply_reserve_bytes: u32,
    /// Bytes of messages held in order while a handler waits for a call, or a push for room in
    /// the inbox or pool. Default 1 MiB; embedded 64 KiB.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub backlog_bytes: u32,
    /// Messages held in order while a handler waits for a call, or a push for room in the inbox
    /// or pool. Default 4,096; embedded 256.
    pub backlog_messages: u32,
    /// Bytes of pushes that wait in an inbox, beside the number of them that the builder is
    /// given; one inbox serves all sessions of a server. Default 8 MiB; embedded 256 KiB. A
    /// single larger push is admitted when no other waits. A push without room waits, and
    /// reading pauses once the backlog is full too; what was read goes in all the same when its
    /// session ends. Calls in the inbox are bounded by `incoming_calls` and
    /// `incoming_call_bytes` of their session.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub inbox_bytes: u32,
    /// Bytes that the peer of one session makes this side hold: in the send queue, in the backlog,
    /// and in the part of the read buffer beyond `read_buffer_most`, as for a large frame that
    /// comes. Default 64 MiB; embedded 4 MiB; at least twice `frame_bytes`. Of queue and backlog
    /// the first 16 KiB each are not counted.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub session_bytes: u64,
    /// The same bytes of all sessions of one server, or of one client. Default 1 GiB; embedded
    /// 32 MiB; at least `session_bytes`.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub total_bytes: u64,
    /// Bytes of pushes that wait for a thread of a [`Pool`](crate::Pool), beside its `messages`;
    /// one pool serves all sessions of a server. Default 8 MiB; embedded 256 KiB. What passes it
    /// waits as at `inbox_bytes`, and calls are bounded as they are there.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub pool_bytes: u32,
    /// Sessions of one server. Default 10,000; embedded 64. With an inbox a session counts until
    /// all it sent is received.
    pub sessions: u32,
    /// Sessions of one server from one IP address, or of one user on Unix sockets. Default 8,192;
    /// embedded 16.
    pub sessions_per_address: u32,
    /// Control frames and stray replies of one peer in a second. Default 1,000. 16 at least.
    /// No honest peer comes near it; beyond it the session is closed.
    pub control_frames_per_second: u32,
}

impl Limits {
    /// The default: for servers and desktop programs.
    pub fn server() -> Self {
        Limits {
            frame_bytes: 16 << 20,
            body_bytes: 16 << 20,
            metadata_bytes: 8 << 10,
            metadata_pairs: 64,
            route_name_bytes: 256,
            pending_calls: 65_536,
            incoming_calls: 65_536,
            incoming_call_bytes: 4 << 20,
            queued_bytes: 1 << 20,
            queued_messages: 65_536,
            reply_reserve_bytes: 4 << 20,
            backlog_bytes: 1 << 20,
            backlog_messages: 4_096,
            inbox_bytes: 8 << 20,
            session_bytes: 64 << 20,
            total_bytes: 1 << 30,
            pool_bytes: 8 << 20,
            sessions: 10_000,
            sessions_per_address: 8_192,
            control_frames_per_second: 1_000,
        }
    }

    /// For small machines: at most about 0.6 MiB of queues a session, 64 sessions, and an
    /// inbox and a pool of 256 KiB each if there are.
    pub fn embedded() -> Self {
        Limits {
            frame_bytes: 1 << 20,
            body_bytes: 1 << 20,
            metadata_bytes: 1 << 10,
            metadata_pairs: 16,
            route_name_bytes: 128,
            pending_calls: 256,
            incoming_calls: 256,
            incoming_call_bytes: 256 << 10,
            queued_bytes: 64 << 10,
            queued_messages: 1_024,
            reply_reserve_bytes: 256 << 10,
            backlog_bytes: 64 << 10,
            backlog_messages: 256,
            inbox_bytes: 256 << 10,
            session_bytes: 4 << 20,
            total_bytes: 32 << 20,
            pool_bytes: 256 << 10,
            sessions: 64,
            sessions_per_address: 16,
            control_frames_per_second: 1_000,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits::server()
    }
}
