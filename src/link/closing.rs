//! The close handshake.
//!
//! Either side, or both at once: after the last request it has accepted a side sends a
//! goodbye. Who receives one begins to close too. Once a side has sent and received a goodbye,
//! all its own calls are answered and it has answered all calls of the peer, nothing but the
//! peer's last frame can still come: it sends a final pong, which confirms everything, and
//! closes its writing half. Then it reads to the end.

use std::time::{Duration, Instant};

/// What the closing waits for, from the side of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// Calls of this side that are not answered.
    pub(crate) outgoing: usize,
    /// Calls of the peer that are not answered, and pushes that are held back.
    pub(crate) incoming: usize,
}

/// Where the close handshake stands.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    begun: bool,
    deadline: Option<Instant>,
    goodbye_sent: bool,
    goodbye_received: bool,
    final_due: bool,
}

impl Closing {
    /// This side wants to close by the deadline; `true` if that begins it. An earlier deadline
    /// than the one that runs takes its place.
    pub(crate) fn begin(&mut self, now: Instant, limit: Duration) -> bool {
        let deadline = now.checked_add(limit);
        self.deadline = match (self.deadline, deadline) {
            (Some(runs), Some(new)) => Some(runs.min(new)),
            (runs, new) => runs.or(new),
        };
        !std::mem::replace(&mut self.begun, true)
    }

    /// When the connection is cut, if closing has not ended by then.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) fn goodbye_sent(&mut self) {
        self.goodbye_sent = true;
    }

    pub(crate) fn goodbye_received(&mut self) {
        self.goodbye_received = true;
    }

    /// Whether the peer has said that it sends no more requests.
    pub(crate) fn has_received_goodbye(&self) -> bool {
        self.goodbye_received
    }

    /// Whether the final pong is due; `true` at most once.
    pub(crate) fn final_is_due(&mut self, open: Open) -> bool {
        let due = self.goodbye_sent
            && self.goodbye_received
            && open.outgoing == 0
            && open.incoming == 0
            && !self.final_due;
        self.final_due |= due;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Open = Open {
        outgoing: 0,
        incoming: 0,
    };

    #[test]
    fn the_final_pong_waits_for_both_goodbyes_and_all_answers() {
        let mut closing = Closing::default();
        assert!(closing.begin(Instant::now(), Duration::from_secs(1)));
        assert!(!closing.begin(Instant::now(), Duration::from_secs(1)));
        closing.goodbye_sent();
        assert!(!closing.final_is_due(NOTHING));
        closing.goodbye_received();
        let one_out = Open {
            outgoing: 1,
            incoming: 0,
        };
        let one_in = Open {
            outgoing: 0,
            incoming: 1,
        };
        assert!(!closing.final_is_due(one_out));
        assert!(!closing.final_is_due(one_in));
        assert!(closing.final_is_due(NOTHING));
        assert!(!closing.final_is_due(NOTHING));
    }

    #[test]
    fn the_earlier_deadline_wins() {
        let mut closing = Closing::default();
        let now = Instant::now();
        closing.begin(now, Duration::MAX);
        assert_eq!(closing.deadline(), None);
        closing.begin(now, Duration::from_secs(5));
        closing.begin(now, Duration::from_secs(9));
        assert_eq!(closing.deadline(), Some(now + Duration::from_secs(5)));
    }
}
