//! What became of everything that a client has sent, over all its sessions.

use std::fmt;
use std::time::Instant;

use crate::connection::CloseReport;
use crate::session::Session;
use crate::stats::{Count, Stats};

/// The counts of all sessions of a client together; see [`Client::totals`](crate::Client::totals).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Sessions so far, the running one included.
    pub sessions: u64,
    /// Never handed to the system, and lost with their session.
    pub not_written: Count,
    /// Written, and the peer has not said that it came.
    pub unconfirmed: Count,
    /// Received by the peer.
    pub confirmed: Count,
    /// Dropped: held until it was too late, or kept from a peer that read too slowly
    /// ([`SlowPeer::DropNewest`](crate::SlowPeer::DropNewest)).
    pub dropped: Count,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} sessions: confirmed {}, unconfirmed {}, not written {}, dropped {}",
            self.sessions, self.confirmed, self.unconfirmed, self.not_written, self.dropped
        )
    }
}

/// The sums over the sessions that are over, and the one that is not.
#[derive(Default)]
pub(super) struct Sums {
    totals: Totals,
    /// The session whose report is not among the totals yet.
    running: Option<Session>,
    /// The figures of those that are over to the last step.
    past: Option<Stats>,
    /// The session whose figures are not among them yet.
    open: Option<Session>,
}

impl Sums {
    pub(super) fn begin(&mut self, session: &Session) {
        self.totals.sessions += 1;
        self.running = Some(session.clone());
        self.open = Some(session.clone());
    }

    /// The session has ended; its last steps are still to come.
    pub(super) fn end(&mut self, report: &CloseReport) {
        self.totals.not_written.add(report.not_written);
        self.totals.unconfirmed.add(report.unconfirmed);
        self.totals.confirmed.add(report.confirmed);
        self.totals.dropped.add(report.dropped);
        self.running = None;
    }

    /// Nothing is counted in the session any more.
    pub(super) fn settle(&mut self, now: Instant) {
        if let Some(session) = self.open.take() {
            let mut stats = session.connection.stats(now);
            if let Some(past) = &self.past {
                stats.add(past);
            }
            stats.queued_bytes = 0;
            self.past = Some(stats);
        }
    }

    pub(super) fn drop_held(&mut self, dropped: Count) {
        self.totals.dropped.add(dropped);
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.totals;
        if let Some(session) = &self.running {
            let (unconfirmed, confirmed) = session.connection.delivered();
            totals.unconfirmed.add(unconfirmed);
            totals.confirmed.add(confirmed);
        }
        totals
    }

    /// The figures of all sessions; `last` is one of them.
    pub(super) fn stats(&self, last: &Session, now: Instant) -> Stats {
        match (&self.open, &self.past) {
            (None, Some(past)) => {
                let mut stats = past.clone();
                stats.taken = now;
                stats
            }
            (open, past) => {
                let session = open.as_ref().unwrap_or(last);
                let mut stats = session.connection.stats(now);
                if let Some(past) = past {
                    stats.add(past);
                }
                stats
            }
        }
    }
}
