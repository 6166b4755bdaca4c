//! The close handshake.
//!
//! Either side, or both at once: after the last request it has accepted a side sends a
//! goodbye. Who receives one begins to close too. Once a side has sent and received a goodbye,
//! all its own calls are answered and it has answered all calls of the peer, nothing but the
//! peer's last frame can still come: it sends a final pong, which confirms everything, and
//! closes its writing half. Then it reads to the end.

use std::time::{Duration, Instant};

use crate::status::{Status, StatusRef};

/// Characters of each text of a farewell, sent or received.
const FAREWELL_TEXT: usize = 512;

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
    /// What this side says with its goodbye.
    dismissal: Option<Status>,
    /// What the peer has said with its goodbye.
    farewell: Option<Status>,
}

impl Closing {
    /// This side wants to close by the deadline; `true` if that begins it. An earlier deadline
    /// than the one that runs takes its place; a reason is given only by who begins.
    pub(crate) fn begin(&mut self, now: Instant, limit: Duration, reason: Option<&Status>) -> bool {
        let deadline = now.checked_add(limit);
        self.deadline = match (self.deadline, deadline) {
            (Some(runs), Some(new)) => Some(runs.min(new)),
            (runs, new) => runs.or(new),
        };
        if std::mem::replace(&mut self.begun, true) {
            return false;
        }
        self.dismissal = reason.map(|reason| short(reason.as_ref()));
        true
    }

    /// When the connection is cut, if closing has not ended by then.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) fn goodbye_sent(&mut self) {
        self.goodbye_sent = true;
    }

    /// The peer says goodbye, perhaps with a reason; only its first counts.
    pub(crate) fn goodbye_received(&mut self, reason: Option<StatusRef<'_>>) {
        if !self.goodbye_received {
            self.goodbye_received = true;
            self.farewell = reason.map(short);
        }
    }

    pub(crate) fn dismissal(&self) -> Option<&Status> {
        self.dismissal.as_ref()
    }

    pub(crate) fn farewell(&self) -> Option<&Status> {
        self.farewell.as_ref()
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

fn short(reason: StatusRef<'_>) -> Status {
    reason.shortened(FAREWELL_TEXT).to_status()
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
        assert!(closing.begin(Instant::now(), Duration::from_secs(1), None));
        assert!(!closing.begin(Instant::now(), Duration::from_secs(1), None));
        closing.goodbye_sent();
        assert!(!closing.final_is_due(NOTHING));
        closing.goodbye_received(None);
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
        closing.begin(now, Duration::MAX, None);
        assert_eq!(closing.deadline(), None);
        closing.begin(now, Duration::from_secs(5), None);
        closing.begin(now, Duration::from_secs(9), None);
        assert_eq!(closing.deadline(), Some(now + Duration::from_secs(5)));
    }
    #[test]
    fn the_first_reason_stays_and_its_texts_are_short() {
        let mut closing = Closing::default();
        let now = Instant::now();
        let long = Status::new(7, "\u{e9}".repeat(600)).with_cause("c".repeat(600));
        assert!(closing.begin(now, Duration::MAX, Some(&long)));
        assert!(!closing.begin(now, Duration::MAX, Some(&Status::new(8, "other"))));
        closing.goodbye_received(Some(long.as_ref()));
        closing.goodbye_received(Some(Status::new(9, "again").as_ref()));
        for said in [closing.dismissal(), closing.farewell()] {
            let said = said.unwrap();
            assert_eq!((said.code(), said.cause()), (7, &*"c".repeat(512)));
            assert_eq!(said.text(), "\u{e9}".repeat(512));
        }
    }
}
