//! What happened per second, from two snapshots.

use std::fmt;

use super::Stats;

impl Stats {
    /// What happened per second between an earlier snapshot and this one.
    ///
    /// Snapshots in the wrong order give rates of zero.
    pub fn rates_since(&self, earlier: &Stats) -> Rates {
        let seconds = self
            .taken
            .saturating_duration_since(earlier.taken)
            .as_secs_f64();
        let rate = |now: u64, then: u64| match seconds > 0.0 {
            true => now.saturating_sub(then) as f64 / seconds,
            false => 0.0,
        };
        Rates {
            seconds,
            sent_messages: rate(self.sent_messages, earlier.sent_messages),
            sent_bytes: rate(self.sent_bytes, earlier.sent_bytes),
            received_messages: rate(self.received_messages, earlier.received_messages),
            received_bytes: rate(self.received_bytes, earlier.received_bytes),
            calls_sent: rate(self.calls_sent, earlier.calls_sent),
            calls_answered: rate(self.calls_answered, earlier.calls_answered),
        }
    }
}

/// Figures per second between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rates {
    /// The time between the snapshots.
    pub seconds: f64,
    /// Messages sent per second.
    pub sent_messages: f64,
    /// Bytes sent per second.
    pub sent_bytes: f64,
    /// Messages received per second.
    pub received_messages: f64,
    /// Bytes received per second.
    pub received_bytes: f64,
    /// Calls made per second.
    pub calls_sent: f64,
    /// Calls answered per second.
    pub calls_answered: f64,
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "sent {:.0} messages/s ({:.0} bytes/s), received {:.0} messages/s ({:.0} bytes/s), \
             calls {:.0}/s made, {:.0}/s answered",
            self.sent_messages,
            self.sent_bytes,
            self.received_messages,
            self.received_bytes,
            self.calls_sent,
            self.calls_answered
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::Counters;

    #[test]
    fn rates_are_per_second_and_never_negative() {
        let counters = Counters::default();
        let start = Instant::now();
        let earlier = counters.snapshot(start);
        counters.writer.sent_messages.store(100);
        let later = counters.snapshot(start + Duration::from_secs(2));
        assert_eq!(later.rates_since(&earlier).sent_messages, 50.0);
        assert_eq!(earlier.rates_since(&later).sent_messages, 0.0);
    }
}
