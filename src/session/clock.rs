//! A cheap clock for time limits that the timer watches.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The present time, at most a few milliseconds late; reading it costs a tenth of the precise
/// clock's time on virtual machines.
#[cfg(target_os = "linux")]
pub(super) fn coarse_now() -> Instant {
    use rustix::time::{ClockId, clock_gettime};

    static BASE: OnceLock<(Instant, Duration)> = OnceLock::new();
    let read = || {
        let time = clock_gettime(ClockId::MonotonicCoarse);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    };
    let (instant, base) = BASE.get_or_init(|| (Instant::now(), read()));
    *instant + read().saturating_sub(*base)
}

/// The present time.
#[cfg(not(target_os = "linux"))]
pub(super) fn coarse_now() -> Instant {
    Instant::now()
}
