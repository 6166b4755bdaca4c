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
    /// Held, and dropped before there was a session for them.
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
    stats: Option<Stats>,
    running: Option<Session>,
}

impl Sums {
    pub(super) fn begin(&mut self, session: &Session) {
        self.totals.sessions += 1;
        self.running = Some(session.clone());
    }

    pub(super) fn end(&mut self, report: &CloseReport, now: Instant) {
        self.totals.not_written.add(report.not_written);
        self.totals.unconfirmed.add(report.unconfirmed);
        self.totals.confirmed.add(report.confirmed);
        if let Some(session) = self.running.take() {
            let mut stats = session.connection.stats(now);
            if let Some(past) = &self.stats {
                stats.add(past);
            }
            stats.queued_bytes = 0;
            self.stats = Some(stats);
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
        match (&self.running, &self.stats) {
            (None, Some(past)) => {
                let mut stats = past.clone();
                stats.taken = now;
                stats
            }
            (running, past) => {
                let session = running.as_ref().unwrap_or(last);
                let mut stats = session.connection.stats(now);
                if let Some(past) = past {
                    stats.add(past);
                }
                stats
            }
        }
    }
}
