//! When this side says that it is there: on a schedule of its own, whatever else is sent.

use std::time::{Duration, Instant};

use crate::config::Heartbeat;

/// No peer can ask for more than one ping in this time.
const LEAST_PERIOD: Duration = Duration::from_millis(100);
/// So many pings of a side come within the limit of its peer: two may be late.
const WITHIN_LIMIT: u32 = 3;

/// When the next ping is due.
#[derive(Debug)]
pub(crate) struct Schedule {
    period: Duration,
    next: Option<Instant>,
}

impl Schedule {
    /// `peer_limit` is the silence after which the peer takes this side for lost, in
    /// milliseconds; 0 for never.
    pub(crate) fn new(own: &Heartbeat, peer_limit: u32, now: Instant) -> Self {
        let asked = match peer_limit {
            0 => Duration::MAX,
            limit => Duration::from_millis(limit.into()) / WITHIN_LIMIT,
        };
        let period = own.interval.min(asked).max(LEAST_PERIOD);
        Schedule {
            period,
            next: now.checked_add(period),
        }
    }

    /// Nothing is sent unasked.
    pub(crate) fn never() -> Self {
        Schedule {
            period: Duration::MAX,
            next: None,
        }
    }

    /// When the next ping is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Whether a ping is due; then the next one is planned. Those that were missed are not made
    /// up for.
    pub(crate) fn take_due(&mut self, now: Instant) -> bool {
        let Some(due) = self.next.filter(|due| *due <= now) else {
            return false;
        };
        let next = due.checked_add(self.period).filter(|next| *next > now);
        self.next = next.or_else(|| now.checked_add(self.period));
        true
    }
}

/// How many pings an honest peer can have sent in this time. They may come all at once, from the
/// socket of a side that was busy.
pub(crate) fn most_pings(age: Duration) -> u128 {
    age.as_millis() / LEAST_PERIOD.as_millis() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heartbeat(interval: Duration) -> Heartbeat {
        Heartbeat {
            interval,
            ..Heartbeat::default()
        }
    }

    fn period(interval: Duration, peer_limit: u32) -> Option<Duration> {
        let now = Instant::now();
        let schedule = Schedule::new(&heartbeat(interval), peer_limit, now);
        schedule.next().map(|next| next - now)
    }

    #[test]
    fn the_peer_may_ask_for_more_and_not_for_less_nor_for_a_flood() {
        let seconds = Duration::from_secs;
        let millis = Duration::from_millis;
        for (interval, peer_limit, expected) in [
            (seconds(10), 30_000, Some(seconds(10))),
            (seconds(10), 3_000, Some(seconds(1))),
            (seconds(1), 30_000, Some(seconds(1))),
            (seconds(10), 0, Some(seconds(10))),
            (Duration::MAX, 300, Some(millis(100))),
            (Duration::MAX, 1, Some(millis(100))),
            (millis(1), 30_000, Some(millis(100))),
            (Duration::MAX, 0, None),
        ] {
            assert_eq!(period(interval, peer_limit), expected);
        }
    }

    #[test]
    fn pings_keep_their_schedule_and_those_missed_in_a_pause_are_not_made_up_for() {
        let now = Instant::now();
        let at = |millis| now + Duration::from_millis(millis);
        let mut schedule = Schedule::new(&heartbeat(Duration::from_secs(1)), 0, now);
        assert!(!schedule.take_due(at(999)));
        assert!(schedule.take_due(at(1_003)));
        assert_eq!(schedule.next(), Some(at(2_000)));
        assert!(!schedule.take_due(at(1_003)));
        assert!(schedule.take_due(at(60_500)));
        assert_eq!(schedule.next(), Some(at(61_500)));
        assert!(!schedule.take_due(at(60_500)));
        assert!(!Schedule::never().take_due(at(60_500)));
    }
}
