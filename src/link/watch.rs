//! Watching the peer: is it there, does it finish what it begins, does it send too much.

use std::time::{Duration, Instant};

use crate::config::Timeouts;
use crate::error::{Error, ErrorKind};

/// A peer that seems to be gone is looked at once more after this time: its bytes may have come
/// and their reader not have run yet.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A look that comes later than this, or than a third of the limit of silence, tells of a process
/// that was stopped, or could not run.
const PAUSE: Duration = Duration::from_secs(1);

/// The deadlines that a peer must keep.
#[derive(Debug)]
pub(crate) struct Watch {
    idle: Duration,
    /// `heartbeat.limit`.
    silence: Duration,
    frame: Duration,
    lowest_rate: u32,
    /// Since when the reader waits for bytes; a reader that is busy cannot judge its peer.
    waiting: Option<Instant>,
    unfinished: Option<Unfinished>,
    /// The last time at which this process went on after a pause. What began before begins anew.
    resumed: Option<Instant>,
    /// The present wait has begun anew already.
    excused: bool,
    /// A deadline that was found broken at the last look.
    suspected: Option<Instant>,
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
    /// `silence` is how long nothing may come.
    pub(crate) fn new(timeouts: &Timeouts, silence: Duration) -> Self {
        Watch {
            idle: timeouts.idle,
            silence,
            frame: timeouts.frame,
            lowest_rate: timeouts.lowest_rate,
            waiting: None,
            unfinished: None,
            resumed: None,
            excused: false,
            suspected: None,
        }
    }

    /// The reader waits for bytes from now on. The time of an unfinished frame runs from its
    /// first byte and grows with what is announced, not with what trickles in.
    pub(crate) fn reader_waits(&mut self, now: Instant, unfinished: Option<Unfinished>) {
        self.waiting = Some(now);
        self.unfinished = unfinished;
        self.excused = false;
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
        let waiting = self.since(self.waiting?);
        let silent = waiting.checked_add(self.idle.min(self.silence));
        match (silent, self.frame_deadline()) {
            (Some(silent), Some(frame)) => Some(silent.min(frame)),
            (silent, frame) => silent.or(frame),
        }
    }

    fn frame_deadline(&self) -> Option<Instant> {
        let Unfinished { begun, needed } = self.unfinished?;
        let transfer = match (needed, self.lowest_rate) {
            (Some(needed), rate) if rate > 0 => {
                Duration::from_secs_f64(needed as f64 / f64::from(rate))
            }
            _ => Duration::ZERO,
        };
        self.since(begun)
            .checked_add(self.frame.saturating_add(transfer))
    }

    /// From when on a time that began then is counted.
    fn since(&self, begun: Instant) -> Instant {
        self.resumed.map_or(begun, |resumed| begun.max(resumed))
    }

    /// Looks at the peer, `late` after the time that was planned for it; the answer is when to
    /// look again. `has_unread` says whether bytes wait for the reader.
    ///
    /// # Errors
    /// What the peer failed to keep.
    pub(crate) fn check(
        &mut self,
        now: Instant,
        late: Duration,
        has_unread: impl FnOnce() -> bool,
    ) -> Result<Option<Instant>, Error> {
        if late > PAUSE.min(self.silence / 3) && !self.excused {
            self.resumed = Some(now);
            self.excused = true;
        }
        let Some(broken) = self.deadline().filter(|deadline| *deadline <= now) else {
            return Ok(self.deadline());
        };
        let was_suspected = self.suspected.replace(broken) == Some(broken);
        if !was_suspected || has_unread() {
            return Ok(now.checked_add(LOOK_AGAIN));
        }
        Err(self.failure(broken))
    }

    /// What the peer failed to keep by this deadline.
    fn failure(&self, broken: Instant) -> Error {
        let (kind, text) = if self.frame_deadline() == Some(broken) {
            let (frame, rate) = (self.frame, self.lowest_rate);
            let text = format!(
                "the peer did not finish a frame within timeouts.frame = {frame:?} (plus its size at {rate} bytes/s)"
            );
            (ErrorKind::FrameTimeout, text)
        } else if self.idle <= self.silence {
            let text = format!("nothing came within timeouts.idle = {:?}", self.idle);
            (ErrorKind::Timeout, text)
        } else {
            let limit = self.silence;
            let text = format!("nothing came from the peer within heartbeat.limit = {limit:?}");
            (ErrorKind::Timeout, text)
        };
        Error::new(kind, text)
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

    const ON_TIME: Duration = Duration::ZERO;

    fn watch(idle: Duration, silence: Duration) -> Watch {
        let timeouts = Timeouts {
            idle,
            frame: Duration::from_secs(1),
            lowest_rate: 1000,
            ..Timeouts::default()
        };
        Watch::new(&timeouts, silence)
    }

    fn unfinished(begun: Instant, needed: Option<usize>) -> Option<Unfinished> {
        Some(Unfinished { begun, needed })
    }

    /// Looks twice, as the timer does.
    fn judge(watch: &mut Watch, now: Instant) -> Result<(), Error> {
        match watch.check(now, ON_TIME, || false)? {
            Some(again) if again == now + LOOK_AGAIN => {
                watch.check(again, ON_TIME, || false).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    #[test]
    fn a_frame_has_its_base_time_and_the_time_of_its_size() {
        let now = Instant::now();
        let mut watch = watch(Duration::MAX, Duration::MAX);
        watch.reader_waits(now, unfinished(now, Some(2000)));
        assert_eq!(watch.deadline(), Some(now + Duration::from_secs(3)));
        judge(&mut watch, now + Duration::from_millis(2999)).unwrap();
        let error = judge(&mut watch, now + Duration::from_secs(3)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FrameTimeout);
        watch.reader_came_back();
        watch.reader_waits(now + Duration::from_secs(3), None);
        judge(&mut watch, now + Duration::from_secs(9)).unwrap();
    }

    #[test]
    fn trickling_does_not_move_the_deadline_of_a_frame() {
        let now = Instant::now();
        let at = |millis| now + Duration::from_millis(millis);
        let mut watch = watch(Duration::MAX, Duration::MAX);
        for step in 0..10 {
            watch.reader_came_back();
            watch.reader_waits(at(100 * step), unfinished(now, None));
        }
        assert_eq!(
            watch.check(at(1_000), ON_TIME, || false).unwrap(),
            Some(at(1_050))
        );
        // Not even between the two looks.
        watch.reader_came_back();
        watch.reader_waits(at(1_020), unfinished(now, None));
        assert!(watch.check(at(1_050), ON_TIME, || false).is_err());
    }

    #[test]
    fn any_byte_is_life_and_a_busy_reader_does_not_judge() {
        let now = Instant::now();
        let at = |millis| now + Duration::from_millis(millis);
        let mut watch = watch(Duration::from_secs(2), Duration::MAX);
        watch.reader_waits(now, None);
        watch.reader_came_back();
        judge(&mut watch, at(60_000)).unwrap();
        assert_eq!(watch.silence(at(60_000)), Duration::ZERO);
        watch.reader_waits(at(60_000), None);
        assert_eq!(watch.silence(at(60_700)), Duration::from_millis(700));
        judge(&mut watch, at(61_900)).unwrap();
        let error = judge(&mut watch, at(62_000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.to_string().contains("timeouts.idle = 2s"), "{error}");
    }

    #[test]
    fn silence_is_found_soon_after_its_limit_and_never_before() {
        let now = Instant::now();
        let limit = Duration::from_secs(30);
        let mut watch = watch(Duration::MAX, limit);
        watch.reader_waits(now, None);
        assert_eq!(watch.deadline(), Some(now + limit));
        let found = now + limit + LOOK_AGAIN;
        for (look, again) in [(now + limit / 2, now + limit), (now + limit, found)] {
            assert_eq!(watch.check(look, ON_TIME, || false).unwrap(), Some(again));
        }
        let error = watch.check(found, ON_TIME, || false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(
            error.to_string().contains("heartbeat.limit = 30s"),
            "{error}"
        );
    }

    #[test]
    fn what_came_and_was_not_read_yet_is_life() {
        let now = Instant::now();
        let at = |millis| now + Duration::from_millis(millis);
        let mut watch = watch(Duration::MAX, Duration::from_secs(3));
        watch.reader_waits(now, unfinished(now, None));
        for look in 0..20 {
            let look = at(1_000 + 50 * look);
            let again = watch.check(look, ON_TIME, || true).unwrap();
            assert_eq!(again, Some(look + LOOK_AGAIN));
        }
        // A reader that comes back between the two looks clears its peer of suspicion.
        watch.reader_came_back();
        watch.reader_waits(at(2_000), None);
        watch.check(at(5_000), ON_TIME, || false).unwrap();
        watch.reader_came_back();
        watch.reader_waits(at(5_020), None);
        let again = watch.check(at(5_050), ON_TIME, || false).unwrap();
        assert_eq!(again, Some(at(8_020)));
    }

    #[test]
    fn after_a_pause_of_this_process_the_wait_begins_anew_once() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let seconds = Duration::from_secs;
        let mut watch = watch(Duration::MAX, seconds(30));
        watch.reader_waits(now, unfinished(now, None));
        // Stopped before a look at 1 s, until long after both limits.
        let again = watch.check(at(100), seconds(99), || false).unwrap();
        assert_eq!(again, Some(at(101)));
        // The reader gets more of the frame, and the frame keeps its new time.
        watch.reader_came_back();
        watch.reader_waits(at(100), unfinished(now, None));
        assert_eq!(watch.deadline(), Some(at(101)));
        watch.reader_came_back();
        watch.reader_waits(at(100), None);
        assert_eq!(watch.deadline(), Some(at(130)));
        // Stopped, and continued before the limit: the peer may have been stopped, too.
        let again = watch.check(at(125), seconds(20), || false).unwrap();
        assert_eq!(again, Some(at(155)));
        // Not again before something has come; and a look that is hardly late is no pause.
        judge(&mut watch, at(154)).unwrap();
        watch.check(at(200), seconds(45), || false).unwrap();
        assert!(watch.check(at(201), ON_TIME, || false).is_err());
        watch.reader_came_back();
        watch.reader_waits(at(200), None);
        let little = Duration::from_millis(900);
        watch.check(at(230), little, || false).unwrap();
        assert!(watch.check(at(231), little, || false).is_err());
    }

    #[test]
    fn the_slack_of_a_short_limit_is_short() {
        let now = Instant::now();
        let at = |millis| now + Duration::from_millis(millis);
        let millis = Duration::from_millis;
        let mut watch = watch(Duration::MAX, millis(300));
        watch.reader_waits(now, None);
        let again = watch.check(at(400), millis(100), || false).unwrap();
        assert_eq!(again, Some(at(450)));
        let again = watch.check(at(401), millis(101), || false).unwrap();
        assert_eq!(again, Some(at(701)));
    }

    #[test]
    fn extreme_durations_mean_no_limit() {
        let now = Instant::now();
        let mut watch = watch(Duration::MAX, Duration::MAX);
        watch.frame = Duration::MAX;
        watch.reader_waits(now, unfinished(now, Some(usize::MAX)));
        assert_eq!(watch.deadline(), None);
        judge(&mut watch, now + Duration::from_secs(1 << 40)).unwrap();
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
