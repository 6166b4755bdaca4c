//! Where a client stands between its sessions, and what its hook is told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::session::Session;
use crate::stats::Count;

/// Where a client stands; see [`Client::state`](crate::Client::state).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientState {
    /// It dials, agrees with the peer, or logs in.
    Connecting,
    /// It has a session.
    Connected,
    /// Its session is lost, and it waits before the next attempt.
    Waiting,
    /// It dials no more: it was closed, an attempt has failed in a way that trying again cannot
    /// help, or there were attempts enough.
    Stopped,
}

impl fmt::Display for ClientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClientState::Connecting => "connecting",
            ClientState::Connected => "connected",
            ClientState::Waiting => "waiting",
            ClientState::Stopped => "stopped",
        })
    }
}

/// A change of a client's state; see [`ClientBuilder::on_state`](crate::ClientBuilder::on_state).
///
/// `Display` makes one line of it, for logs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StateChange {
    /// The new state.
    pub state: ClientState,
    /// With `Connected`: the session.
    pub session: Option<Session>,
    /// With `Connecting` and `Connected`: the address, as it was given.
    pub address: Option<Arc<str>>,
    /// The number of the attempt, counted from the loss of the last session that was stable: 1
    /// is the first. 0 for what nothing was waited for: `connect`, the beginning of
    /// `connect_later`, and `reconnect_now` after a stop.
    pub attempt: u32,
    /// With `Waiting`: how long until the attempt.
    pub delay: Option<Duration>,
    /// With `Waiting`: why the session was lost or the attempt has failed. With `Connecting`: why
    /// the address before has failed. With `Stopped`: why it was; `None` if this side has closed
    /// the client.
    pub reason: Option<Error>,
    /// Held pushes that were dropped since the last change.
    pub dropped: Count,
}

impl StateChange {
    pub(super) fn to(state: ClientState) -> Self {
        StateChange {
            state,
            session: None,
            address: None,
            attempt: 0,
            delay: None,
            reason: None,
            dropped: Count::default(),
        }
    }
}

impl fmt::Display for StateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)?;
        if let Some(address) = &self.address {
            write!(f, " to {address}")?;
        }
        if let Some(session) = &self.session {
            write!(f, ", session {}", session.id())?;
        }
        if let Some(delay) = self.delay {
            write!(f, " {delay:.1?}")?;
        }
        if self.attempt > 0 {
            write!(f, ", attempt {}", self.attempt)?;
        }
        if self.dropped.messages > 0 {
            write!(f, ", dropped {}", self.dropped)?;
        }
        match &self.reason {
            Some(reason) => write!(f, ": {reason:#}"),
            None => Ok(()),
        }
    }
}
