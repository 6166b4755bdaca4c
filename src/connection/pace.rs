//! Whether polling pays: how soon what was waited for has come lately.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What comes within this time comes sooner than a sleeping thread could be woken for it.
const QUICK: Duration = Duration::from_micros(100);
/// After so many slow ones in a row nobody polls.
const PATIENCE: usize = 64;
/// Of so many slow ones in a row the first few are polled for, so that it shows when it would
/// pay again.
const PERIOD: usize = 4096;

/// How many in a row were slow. One quick one is enough to poll again: an average would make the
/// callers of a crowd sleep, which wakes them one by one and keeps them slow.
#[derive(Default)]
pub(super) struct Pace {
    slow: AtomicUsize,
}

impl Pace {
    /// Whether what is waited for now is likely to come while one polls.
    pub(super) fn is_quick(&self) -> bool {
        self.slow.load(Ordering::Relaxed) % PERIOD < PATIENCE
    }

    /// Something has come, so long after it was waited for.
    pub(super) fn note(&self, waited: Duration) {
        if waited >= QUICK {
            self.slow.fetch_add(1, Ordering::Relaxed);
        } else if self.slow.load(Ordering::Relaxed) > 0 {
            self.slow.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Duration = Duration::from_millis(5);

    fn noted(pace: &Pace, slow: usize) {
        (0..slow).for_each(|_| pace.note(SLOW));
    }

    #[test]
    fn patience_ends_after_many_slow_ones_in_a_row() {
        let pace = Pace::default();
        assert!(pace.is_quick());
        noted(&pace, PATIENCE - 1);
        assert!(pace.is_quick());
        noted(&pace, 1);
        assert!(!pace.is_quick());
    }

    #[test]
    fn one_quick_one_is_enough_to_begin_anew() {
        let pace = Pace::default();
        noted(&pace, 1_000);
        pace.note(QUICK - Duration::from_nanos(1));
        assert!(pace.is_quick());
        noted(&pace, PATIENCE - 1);
        assert!(pace.is_quick());
        pace.note(QUICK);
        assert!(!pace.is_quick());
    }

    #[test]
    fn few_of_many_slow_ones_are_polled_for() {
        let pace = Pace::default();
        let polled = (0..10 * PERIOD).filter(|_| {
            let polls = pace.is_quick();
            pace.note(SLOW);
            polls
        });
        assert_eq!(polled.count(), 10 * PATIENCE);
    }
}
