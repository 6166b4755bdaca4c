//! Watching the peer: is it there, does it finish what it begins, does it send too much.

use std::time::{Duration, Instant};

use crate::config::Timeouts;
use crate::error::{Error, ErrorKind};

/// The deadlines that a peer must keep.
#[derive(Debug)]
pub(crate) struct Watch {
    idle: Duration,
    frame: Duration,
    lowest_rate: u32,
    /// Since when the reader waits for bytes; a reader that is busy cannot judge its peer.
    waiting: Option<Instant>,
    frame_deadline: Option<Instant>,
}

/// A frame that has begun and is not whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    /// When its first byte came.
    pub(crate) begun: Instant,
    /// Its bytes, if they are announced already.
    pub(crate) needed: Option<usize>,
}

impl Watch {
    pub(crate) fn new(timeouts: &Timeouts) -> Self {
        Watch {
            idle: timeouts.idle,
            frame: timeouts.frame,
            lowest_rate: timeouts.lowest_rate,
            waiting: None,
            frame_deadline: None,
        }
    }

    /// The reader waits for bytes from now on. The time of an unfinished frame runs from its
    /// first byte and grows with what is announced, not with what trickles in.
    pub(crate) fn reader_waits(&mut self, now: Instant, unfinished: Option<Unfinished>) {
        self.waiting = Some(now);
        self.frame_deadline = unfinished.and_then(|Unfinished { begun, needed }| {
            let transfer = match (needed, self.lowest_rate) {
                (Some(needed), rate) if rate > 0 => {
                    Duration::from_secs_f64(needed as f64 / f64::from(rate))
                }
                _ => Duration::ZERO,
            };
            begun.checked_add(self.frame.saturating_add(transfer))
        });
    }

    /// Bytes came, or the end.
    pub(crate) fn reader_came_back(&mut self) {
        self.waiting = None;
    }

    /// How long nothing has come; a reader that is busy hears its peer.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        match self.waiting {
            Some(waiting) => now.saturating_duration_since(waiting),
            None => Duration::ZERO,
        }
    }

    /// When to look again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let idle = self.waiting?.checked_add(self.idle);
        match (idle, self.frame_deadline) {
            (Some(idle), Some(frame)) => Some(idle.min(frame)),
            (idle, frame) => idle.or(frame),
        }
    }

    /// What the peer failed to keep by now.
    pub(crate) fn check(&self, now: Instant) -> Result<(), Error> {
        let Some(waiting) = self.waiting else {
            return Ok(());
        };
        if self.frame_deadline.is_some_and(|deadline| now >= deadline) {
            return Err(Error::new(
                ErrorKind::FrameTimeout,
                format!(
                    "the peer did not finish a frame within timeouts.frame = {:?} (plus its size at {} bytes/s)",
                    self.frame, self.lowest_rate
                ),
            ));
        }
        let idle = waiting.checked_add(self.idle);
        if idle.is_some_and(|deadline| now >= deadline) {
            return Err(Error::new(
                ErrorKind::Timeout,
                format!("nothing came within timeouts.idle = {:?}", self.idle),
            ));
        }
        Ok(())
    }
}

/// A budget of frames that cost the sender nothing.
#[derive(Debug)]
pub(crate) struct Budget {
    per_second: u32,
    since: Instant,
    spent: u32,
}

impl Budget {
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        Budget {
            per_second,
            since: now,
            spent: 0,
        }
    }

    /// One more such frame came.
    pub(crate) fn spend(&mut self, now: Instant) -> Result<(), Error> {
        if now.saturating_duration_since(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.spent = 0;
        }
        self.spent += 1;
        if self.spent > self.per_second {
            return Err(Error::new(
                ErrorKind::ProtocolAbuse,
                format!(
                    "the peer sent more than limits.control_frames_per_second = {} control frames and stray replies in a second",
                    self.per_second
                ),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(idle: Duration) -> Watch {
        let timeouts = Timeouts {
            idle,
            frame: Duration::from_secs(1),
            lowest_rate: 1000,
            ..Timeouts::default()
        };
        Watch::new(&timeouts)
    }

    fn unfinished(begun: Instant, needed: Option<usize>) -> Option<Unfinished> {
        Some(Unfinished { begun, needed })
    }

    #[test]
    fn a_frame_has_its_base_time_and_the_time_of_its_size() {
        let now = Instant::now();
        let mut watch = watch(Duration::MAX);
        watch.reader_waits(now, unfinished(now, Some(2000)));
        assert_eq!(watch.deadline(), Some(now + Duration::from_secs(3)));
        assert!(watch.check(now + Duration::from_millis(2999)).is_ok());
        let error = watch.check(now + Duration::from_secs(3)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FrameTimeout);
        watch.reader_came_back();
        watch.reader_waits(now + Duration::from_secs(3), None);
        assert!(watch.check(now + Duration::from_secs(9)).is_ok());
    }

    #[test]
    fn trickling_does_not_move_the_deadline_of_a_frame() {
        let now = Instant::now();
        let mut watch = watch(Duration::MAX);
        for step in 0..10 {
            watch.reader_came_back();
            let later = now + Duration::from_millis(100 * step);
            watch.reader_waits(later, unfinished(now, None));
        }
        assert!(watch.check(now + Duration::from_secs(1)).is_err());
    }

    #[test]
    fn any_byte_is_life_and_a_busy_reader_does_not_judge() {
        let now = Instant::now();
        let at = |millis| now + Duration::from_millis(millis);
        let mut watch = watch(Duration::from_secs(2));
        watch.reader_waits(now, None);
        watch.reader_came_back();
        assert!(watch.check(at(60_000)).is_ok());
        assert_eq!(watch.silence(at(60_000)), Duration::ZERO);
        watch.reader_waits(at(60_000), None);
        assert_eq!(watch.silence(at(60_700)), Duration::from_millis(700));
        assert!(watch.check(at(61_900)).is_ok());
        let error = watch.check(at(62_000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
    }

    #[test]
    fn extreme_durations_mean_no_limit() {
        let now = Instant::now();
        let mut watch = watch(Duration::MAX);
        watch.frame = Duration::MAX;
        watch.reader_waits(now, unfinished(now, Some(usize::MAX)));
        assert_eq!(watch.deadline(), None);
        assert!(watch.check(now + Duration::from_secs(1 << 40)).is_ok());
    }

    #[test]
    fn the_budget_is_per_second() {
        let now = Instant::now();
        let mut budget = Budget::new(2, now);
        budget.spend(now).unwrap();
        budget.spend(now).unwrap();
        let error = budget.spend(now).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProtocolAbuse);
        budget.spend(now + Duration::from_secs(1)).unwrap();
    }
}
