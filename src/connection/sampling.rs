//! Which handlers are timed: few of those that run in a row, so that the clock costs nothing
//! where it counts.

use std::cell::Cell;
use std::time::Instant;

/// Of handlers that run without a read between them, one of so many is timed.
const EVERY: u32 = 64;

/// Begins with a handler that is timed.
#[derive(Default)]
pub(crate) struct Sampling {
    /// Handlers since the one that was timed last; 0 if the next is timed.
    since: Cell<u32>,
}

impl Sampling {
    /// A read, or a wait for work, came between.
    pub(crate) fn begin_anew(&self) {
        self.since.set(0);
    }

    /// The next handler; when it begins, if it is timed. `now` is for one who has just looked.
    pub(crate) fn next(&self, now: Option<Instant>) -> Option<Instant> {
        let since = self.since.get();
        self.since.set((since + 1) % EVERY);
        (since == 0).then(|| now.unwrap_or_else(Instant::now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(sampling: &Sampling, handlers: usize) -> usize {
        (0..handlers)
            .filter(|_| sampling.next(None).is_some())
            .count()
    }

    #[test]
    fn the_first_handler_after_a_read_and_every_64th_after_that_are_timed() {
        let sampling = Sampling::default();
        assert_eq!(timed(&sampling, 1), 1);
        assert_eq!(timed(&sampling, 63), 0);
        assert_eq!(timed(&sampling, 128), 2);
        assert_eq!(timed(&sampling, 30), 1);
        sampling.begin_anew();
        assert_eq!(timed(&sampling, 64), 1);
    }
}
