//! What becomes of pushes to a peer that reads too slowly.

/// What happens to a push when the send queue of its session is full.
///
/// It is full without room within `limits.queued_bytes` and `limits.queued_messages`, or without
/// memory under `limits.session_bytes` and `limits.total_bytes`. One in which a call or push
/// waits for room is full for all that come later, until it has emptied to a half.
///
/// | | [`Block`](SlowPeer::Block) | [`DropNewest`](SlowPeer::DropNewest) | [`Disconnect`](SlowPeer::Disconnect) |
/// |---|---|---|---|
/// | `push`, `push_timeout` | waits up to its limit | succeeds, and nothing is sent | ends the session |
/// | `try_push` | gives the body back | gives the body back | gives the body back |
/// | a broadcast, a push to a group | counts the session as full | counts the session as full | counts the session as full, and ends it |
/// | a call | waits up to its limit | waits up to its limit | waits up to its limit |
///
/// Either builder has `slow_peer` for all its sessions, and a session
/// [`set_slow_peer`](crate::Session::set_slow_peer) for itself.
///
/// To wait is the default of servers, too: one that pushes in a loop fills a queue faster than
/// an honest peer reads, and a dead peer is cut off by `timeouts.write` anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum SlowPeer {
    /// The push waits for room: the peer slows down its own senders. The default.
    #[default]
    Block,
    /// The push is dropped: counted in [`Stats::slow_peer_drops`](crate::Stats::slow_peer_drops)
    /// and [`CloseReport::dropped`](crate::CloseReport::dropped), and recorded in the log at most
    /// once a second. What is queued stays, in its order. For news that the next one makes
    /// worthless.
    #[doc(alias = "lossy")]
    DropNewest,
    /// The session ends at once, with an error of kind
    /// [`SlowPeer`](crate::ErrorKind::SlowPeer). For peers that are to keep up or come again. A
    /// message larger than `limits.queued_bytes` needs an empty queue: set that high enough for
    /// what is pushed at once.
    Disconnect,
}

impl SlowPeer {
    pub(crate) const ALL: [SlowPeer; 3] =
        [SlowPeer::Block, SlowPeer::DropNewest, SlowPeer::Disconnect];
}
