//! How long handlers run: samples, and what they say.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// Shorter times are told apart no more.
const SHORTEST: Duration = Duration::from_nanos(64);
/// Longer times count as this one in the distribution; the maximum is exact.
const LONGEST: Duration = Duration::from_secs(3600);
/// One significant digit: the distribution is within a sixteenth of the truth.
const DIGITS: u8 = 1;

/// How long handlers ran, from a sample of them.
///
/// A handler is timed when it is the first after a read from the socket, and every 64th after
/// that until the next read. So where messages come one by one, every handler is timed; of
/// those that come in a run, few are, and the first of a run, which finds cold caches and a
/// thread that has just woken, weighs more than its share. Two handlers that alternate in step
/// with the sampling are not told apart.
///
/// On a [`Pool`](crate::Pool) the same holds for each of its threads, with a wait for work in the
/// place of the read. The time that a message waits there does not count.
///
/// The time is the handler's own, with whatever it waits for; what a deferred answer takes
/// afterwards does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerTime {
    /// How many handlers were timed.
    pub samples: u64,
    /// The time of all of them together.
    pub total: Duration,
    /// The mean.
    pub mean: Duration,
    /// 99 of 100 were not slower, give or take 7 percent. Once there are 4,294,967,295 samples
    /// it is begun anew with the later ones.
    pub p99: Duration,
    /// The slowest.
    pub maximum: Duration,
}

impl fmt::Display for HandlerTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mean {:?}, p99 {:?}, maximum {:?} of {} samples",
            self.mean, self.p99, self.maximum, self.samples
        )
    }
}

/// The live samples of a session: 16 bytes, and 2.3 KiB more from the first sample on.
#[derive(Default)]
pub(crate) struct HandlerTimes(Mutex<Samples>);

impl HandlerTimes {
    pub(crate) fn note(&self, time: Duration) {
        self.0.lock().note(time);
    }

    pub(super) fn snapshot(&self) -> Samples {
        self.0.lock().clone()
    }
}

/// Samples that add up.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Samples(Option<Box<Recorded>>);

#[derive(Clone, PartialEq)]
struct Recorded {
    samples: u64,
    total: Duration,
    maximum: Duration,
    /// In nanoseconds.
    distribution: Histogram<u32>,
}

impl Samples {
    fn recorded(&mut self) -> Option<&mut Recorded> {
        if self.0.is_none() {
            self.0 = Recorded::new().map(Box::new);
        }
        self.0.as_deref_mut()
    }

    fn note(&mut self, time: Duration) {
        if let Some(recorded) = self.recorded() {
            recorded.sum_up(1, time, time);
            recorded.make_room(1);
            recorded.distribution.saturating_record(nanos(time));
        }
    }

    pub(super) fn add(&mut self, other: &Samples) {
        let Some(other) = &other.0 else {
            return;
        };
        if let Some(recorded) = self.recorded() {
            recorded.sum_up(other.samples, other.total, other.maximum);
            recorded.make_room(other.distribution.len());
            // All distributions have the same bounds, so any can be added to any other.
            let _ = recorded.distribution.add(&other.distribution);
        }
    }

    pub(super) fn summary(&self) -> Option<HandlerTime> {
        let recorded = self.0.as_deref()?;
        let p99 = Duration::from_nanos(recorded.distribution.value_at_quantile(0.99));
        let mean = recorded.total.as_nanos() / u128::from(recorded.samples.max(1));
        Some(HandlerTime {
            samples: recorded.samples,
            total: recorded.total,
            mean: Duration::from_nanos(mean as u64),
            p99: p99.min(recorded.maximum),
            maximum: recorded.maximum,
        })
    }
}

impl fmt::Debug for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.summary().fmt(f)
    }
}

impl Recorded {
    fn new() -> Option<Self> {
        let distribution = Histogram::new_with_bounds(nanos(SHORTEST), nanos(LONGEST), DIGITS);
        Some(Recorded {
            samples: 0,
            total: Duration::ZERO,
            maximum: Duration::ZERO,
            distribution: distribution.ok()?,
        })
    }

    fn sum_up(&mut self, samples: u64, total: Duration, maximum: Duration) {
        self.samples = self.samples.saturating_add(samples);
        self.total = self.total.saturating_add(total);
        self.maximum = self.maximum.max(maximum);
    }

    /// A distribution whose counts could overflow is begun anew.
    fn make_room(&mut self, more: u64) {
        if self.distribution.len().saturating_add(more) > u64::from(u32::MAX) {
            self.distribution.reset();
        }
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn samples(times: impl IntoIterator<Item = Duration>) -> Samples {
        let live = HandlerTimes::default();
        times.into_iter().for_each(|time| live.note(time));
        live.snapshot()
    }

    fn is_near(time: Duration, expected: Duration) -> bool {
        time >= expected.mul_f64(0.93) && time <= expected.mul_f64(1.07)
    }

    #[test]
    fn mean_and_maximum_are_exact_and_the_p99_is_near() {
        assert_eq!(samples([]).summary(), None);
        let times = (0..1000).map(|n| micros(if n < 980 { 10 } else { 4000 }));
        let time = samples(times).summary().unwrap();
        assert_eq!(time.samples, 1000);
        assert_eq!(time.mean, (micros(10) * 980 + micros(4000) * 20) / 1000);
        assert_eq!(time.maximum, micros(4000));
        assert!(is_near(time.p99, micros(4000)), "{time}");
        let times = (0..1000).map(|n| micros(if n < 995 { 10 } else { 4000 }));
        let time = samples(times).summary().unwrap();
        assert!(is_near(time.p99, micros(10)), "{time}");
    }

    #[test]
    fn samples_add_up() {
        let mut sum = samples([micros(10), micros(30)]);
        sum.add(&samples([]));
        sum.add(&samples([micros(80)]));
        assert_eq!(sum, samples([micros(10), micros(30), micros(80)]));
        let mut none = samples([]);
        none.add(&sum);
        assert_eq!(none, sum);
    }

    #[test]
    fn times_beyond_the_bounds_are_counted() {
        let times = [Duration::ZERO, Duration::MAX, Duration::MAX];
        let time = samples(times).summary().unwrap();
        assert_eq!((time.samples, time.maximum), (3, Duration::MAX));
        assert!(time.p99 >= LONGEST.mul_f64(0.93));
    }

    #[test]
    fn a_distribution_whose_counts_could_overflow_begins_anew() {
        let mut many = samples([micros(1)]);
        let recorded = many.0.as_deref_mut().unwrap();
        recorded.samples = u64::from(u32::MAX);
        recorded.distribution.record_n(1000, u32::MAX - 1).unwrap();
        let mut one_more = many.clone();
        one_more.note(micros(500));
        many.add(&samples([micros(500)]));
        for time in [one_more, many].map(|samples| samples.summary().unwrap()) {
            assert_eq!(time.samples, u64::from(u32::MAX) + 1);
            assert!(is_near(time.p99, micros(500)), "{time}");
        }
    }

    #[test]
    fn the_samples_take_the_memory_that_the_documentation_says() {
        let recorded = Recorded::new().unwrap();
        let bytes = size_of::<Recorded>() + recorded.distribution.distinct_values() * 4;
        assert!(bytes <= 2355, "{bytes} bytes");
    }
}
