//! A cheap clock for time limits that the timer watches.

use std::time::Instant;

/// The present time to within a tick of the system (10 ms or less), early or late; reading it
/// costs a tenth of the precise clock's time on virtual machines.
#[cfg(target_os = "linux")]
pub(super) fn coarse_now() -> Instant {
    use std::sync::OnceLock;
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    static BASE: OnceLock<(Duration, Instant)> = OnceLock::new();
    let read = || {
        let time = clock_gettime(ClockId::MonotonicCoarse);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    };
    let (base, instant) = BASE.get_or_init(|| (read(), Instant::now()));
    *instant + read().saturating_sub(*base)
}

/// The present time.
#[cfg(not(target_os = "linux"))]
pub(super) fn coarse_now() -> Instant {
    Instant::now()
}
