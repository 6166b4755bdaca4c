//! Counters, and snapshots of them that print as text.

use std::fmt;
use std::time::Instant;

use crossbeam::atomic::AtomicCell;

/// Messages (pushes, calls and replies) and their bytes on the wire, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many messages.
    pub messages: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Count {
    /// Adds another count.
    pub fn add(&mut self, other: Count) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }

    /// What remains when the other count is taken away; never below zero.
    pub fn less(self, other: Count) -> Count {
        Count {
            messages: self.messages.saturating_sub(other.messages),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} messages ({} bytes)", self.messages, self.bytes)
    }
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// The live counters of a session.
        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicCell<u64>,)*
        }

        /// What was counted up to one moment, of a session or of a whole server.
        ///
        /// It prints as text, a line for each figure; [`rates_since`](Stats::rates_since)
        /// compares two.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            /// When the snapshot was taken.
            pub taken: Instant,
            /// Sessions that are open; of a session, 1 or 0.
            pub sessions: u64,
            /// Bytes that wait in send queues.
            pub queued_bytes: u64,
            /// Calls of this side whose reply has not come.
            pub calls_in_flight: u64,
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Adds the figures of a session that is over.
            pub(crate) fn add(&self, stats: &Stats) {
                $(self.$name.fetch_add(stats.$name);)*
            }

            pub(crate) fn snapshot(&self, now: Instant) -> Stats {
                Stats {
                    taken: now,
                    sessions: 0,
                    queued_bytes: 0,
                    calls_in_flight: 0,
                    $($name: self.$name.load(),)*
                }
            }
        }

        impl Stats {
            /// Adds the figures of another session.
            pub(crate) fn add(&mut self, other: &Stats) {
                self.sessions += other.sessions;
                self.queued_bytes += other.queued_bytes;
                self.calls_in_flight += other.calls_in_flight;
                $(self.$name = self.$name.saturating_add(other.$name);)*
            }
        }

        impl fmt::Display for Stats {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                writeln!(f, "{:<18} {}", "sessions", self.sessions)?;
                writeln!(f, "{:<18} {}", "queued_bytes", self.queued_bytes)?;
                write!(f, "{:<18} {}", "calls_in_flight", self.calls_in_flight)?;
                $(write!(f, "\n{:<18} {}", stringify!($name), self.$name)?;)*
                Ok(())
            }
        }
    };
}

counters! {
    /// Pushes, calls and replies handed to the system.
    sent_messages,
    /// Their bytes.
    sent_bytes,
    /// System calls that wrote.
    writes,
    /// Pushes, calls and replies received.
    received_messages,
    /// Their bytes.
    received_bytes,
    /// System calls that read.
    reads,
    /// Calls of this side that were sent.
    calls_sent,
    /// Calls of this side that ran out of time or were cancelled.
    calls_given_up,
    /// Calls of the peer that came.
    calls_received,
    /// Calls of the peer that were answered, with whatever status.
    calls_answered,
    /// Calls that the peer gave up.
    cancels_received,
    /// Replies that came after their caller had left.
    late_replies,
    /// Replies to no call.
    unknown_replies,
    /// Pushes that nothing handled, or that could not be understood.
    dropped_pushes,
    /// Frames of unknown kinds.
    skipped_frames,
    /// Ping, pong, goodbye and cancel frames received.
    control_frames,
    /// Handlers and callbacks that panicked.
    panics,
}

impl Counters {
    /// The messages received so far.
    pub(crate) fn received(&self) -> Count {
        Count {
            messages: self.received_messages.load(),
            bytes: self.received_bytes.load(),
        }
    }

    /// The messages written so far.
    pub(crate) fn sent(&self) -> Count {
        Count {
            messages: self.sent_messages.load(),
            bytes: self.sent_bytes.load(),
        }
    }
}

/// Adds to a counter that only the caller's role writes; cheaper than an atomic addition.
pub(crate) fn bump(counter: &AtomicCell<u64>, by: u64) {
    counter.store(counter.load().wrapping_add(by));
}

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
    use std::time::Duration;

    use super::*;

    #[test]
    fn rates_are_per_second_and_never_negative() {
        let counters = Counters::default();
        let start = Instant::now();
        let earlier = counters.snapshot(start);
        counters.sent_messages.store(100);
        let later = counters.snapshot(start + Duration::from_secs(2));
        assert_eq!(later.rates_since(&earlier).sent_messages, 50.0);
        assert_eq!(earlier.rates_since(&later).sent_messages, 0.0);
    }

    #[test]
    fn a_snapshot_prints_each_figure_on_a_line() {
        let counters = Counters::default();
        counters.late_replies.store(7);
        let text = counters.snapshot(Instant::now()).to_string();
        assert!(
            text.lines().any(|line| line == "late_replies       7"),
            "{text}"
        );
    }
}
