//! The table of all figures: live counters of a session, and their snapshots.

use std::fmt;
use std::time::Instant;

use crossbeam::atomic::AtomicCell;
use crossbeam::utils::CachePadded;

use super::Count;
use super::handler_time::{HandlerTime, HandlerTimes, Samples};

/// One figure, as it is shown.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) value: u64,
    /// Whether it only grows.
    pub(super) is_counter: bool,
}

macro_rules! figures {
    (
        gauges { $($(#[doc = $gauge_doc:literal])* $gauge:ident,)* }
        peaks { $($(#[doc = $peak_doc:literal])* $peak:ident,)* }
        $(
            $(#[doc = $group_doc:literal])*
            counters $group:ident: $Group:ident { $($(#[doc = $doc:literal])* $name:ident,)* }
        )*
    ) => {
        $(
            $(#[doc = $group_doc])*
            #[derive(Default)]
            pub(crate) struct $Group {
                $(pub(crate) $name: AtomicCell<u64>,)*
            }
        )*

        /// The live counters of a session; a group for each role, so that roles which run at
        /// the same time do not write to the same cache line.
        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $group: CachePadded<$Group>,)*
            pub(crate) handler_times: HandlerTimes,
        }

        /// What was counted up to one moment, of a session or of a whole server.
        ///
        /// It prints as text, a line for each figure;
        /// [`prometheus`](Stats::prometheus) writes it for a monitoring system, and
        /// [`rates_since`](Stats::rates_since) compares two.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Stats {
            /// When the snapshot was taken.
            pub taken: Instant,
            $($(#[doc = $gauge_doc])* pub $gauge: u64,)*
            $($(#[doc = $peak_doc])* pub $peak: u64,)*
            $($($(#[doc = $doc])* pub $name: u64,)*)*
            pub(crate) queue_fill: f64,
            samples: Samples,
        }

        impl Counters {
            pub(crate) fn snapshot(&self, now: Instant) -> Stats {
                Stats {
                    taken: now,
                    $($gauge: 0,)*
                    $($peak: 0,)*
                    $($($name: self.$group.$name.load(),)*)*
                    queue_fill: 0.0,
                    samples: self.handler_times.snapshot(),
                }
            }
        }

        impl Stats {
            /// Adds the figures of another session.
            pub(crate) fn add(&mut self, other: &Stats) {
                $(self.$gauge = self.$gauge.saturating_add(other.$gauge);)*
                $(self.$peak = self.$peak.max(other.$peak);)*
                $($(self.$name = self.$name.saturating_add(other.$name);)*)*
                self.queue_fill = self.queue_fill.max(other.queue_fill);
                self.samples.add(&other.samples);
            }

            pub(super) fn figures(&self) -> Vec<Figure> {
                let gauge = |name, help, value| Figure {
                    name,
                    help,
                    value,
                    is_counter: false,
                };
                let counter = |name, help, value| Figure {
                    name,
                    help,
                    value,
                    is_counter: true,
                };
                vec![
                    $(gauge(stringify!($gauge), concat!($($gauge_doc),*), self.$gauge),)*
                    $(gauge(stringify!($peak), concat!($($peak_doc),*), self.$peak),)*
                    $($(counter(stringify!($name), concat!($($doc),*), self.$name),)*)*
                ]
            }
        }
    };
}

figures! {
    gauges {
        /// Sessions that are open; of a session, 1 or 0.
        sessions,
        /// Bytes that wait in send queues.
        queued_bytes,
        /// Bytes that count against `limits.session_bytes` and `limits.total_bytes`.
        held_bytes,
        /// Calls of this side whose reply has not come.
        calls_in_flight,
    }

    peaks {
        /// The most sessions that were open at once; of a session, 1.
        sessions_peak,
        /// The most bytes that waited at once in the send queue of one session.
        queued_bytes_peak,
        /// The most calls of this side that were in flight at once in one session.
        calls_in_flight_peak,
    }

    /// What the writer role counts.
    counters writer: WriterCounters {
        /// Pushes, calls and replies handed to the system.
        sent_messages,
        /// Bytes of the messages handed to the system.
        sent_bytes,
        /// System calls that wrote.
        writes,
        /// Heartbeats sent.
        pings_sent,
    }

    /// What the thread that reads counts.
    counters reader: ReaderCounters {
        /// Pushes, calls and replies received.
        received_messages,
        /// Bytes of the messages received.
        received_bytes,
        /// System calls that read.
        reads,
        /// Calls of the peer that came.
        calls_received,
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
        /// Heartbeats of the peer.
        pings_received,
        /// Answers to heartbeats; one may answer several.
        pongs_received,
    }

    /// What any thread counts, and what is rare.
    counters others: OtherCounters {
        /// Calls of this side that were sent.
        calls_sent,
        /// Calls of this side that ran out of time or were cancelled.
        calls_given_up,
        /// Calls of this side that were not sent because too many were in flight.
        calls_refused,
        /// Calls of the peer that were answered, with whatever status.
        calls_answered,
        /// Calls of the peer that were answered `OVERLOADED`: too many were in progress, or
        /// there was no room, for the call in the backlog or for its reply in the send queue.
        calls_overloaded,
        /// Calls of the peer that no handler saw: while they waited for one, their time limit
        /// passed or their caller gave up.
        calls_expired,
        /// Calls of the peer that waited for a thread of the pool when their session ended, and
        /// were not run.
        calls_dropped,
        /// Pushes and calls of this side that were not sent because the send queue was full:
        /// at once, or after their time limit.
        queue_full,
        /// Pushes of this side that were dropped because the send queue was full
        /// (`SlowPeer::DropNewest`); `queue_full` does not count them.
        slow_peer_drops,
        /// Handlers and callbacks that panicked.
        panics,
        /// Sessions that ended with goodbyes on both sides.
        closed_clean,
        /// Sessions that the peer ended without a goodbye.
        closed_ended,
        /// Sessions that ended inside a message.
        closed_truncated,
        /// Sessions whose connection was reset, or whose writing failed.
        closed_reset,
        /// Sessions that this side cut off: by abort, a time limit, a limit or the policy for slow
        /// peers.
        closed_cut,
        /// Connections that came; of a session, 0.
        connections_accepted,
        /// Connections that were told no, by a limit or the accept hook; of a session, 0.
        connections_refused,
        /// Connections that were let in and ended before their session began; of a session, 0.
        handshakes_failed,
        /// Failures to accept connections that are not a peer's fault, such as too many open
        /// files; of a session, 0.
        accept_failures,
    }
}

impl Counters {
    /// The messages received so far.
    pub(crate) fn received(&self) -> Count {
        Count {
            messages: self.reader.received_messages.load(),
            bytes: self.reader.received_bytes.load(),
        }
    }

    /// The messages written so far.
    pub(crate) fn sent(&self) -> Count {
        Count {
            messages: self.writer.sent_messages.load(),
            bytes: self.writer.sent_bytes.load(),
        }
    }
}

impl Stats {
    /// How full the send queue is, in bytes (`limits.queued_bytes`) or in messages
    /// (`limits.queued_messages`), whichever is more; of a server, its fullest session's.
    ///
    /// 0.0 is empty; from 1.0 on no push or call finds room. It is more while replies use their
    /// reserve (`limits.reply_reserve_bytes`), control frames wait, or a single message larger
    /// than the bound does.
    pub fn queue_fill(&self) -> f64 {
        self.queue_fill
    }

    /// How long handlers ran; `None` before the first that was timed.
    pub fn handler_time(&self) -> Option<HandlerTime> {
        self.samples.summary()
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Figure { name, value, .. } in self.figures() {
            writeln!(f, "{name:<20} {value}")?;
        }
        writeln!(f, "{:<20} {:.3}", "queue_fill", self.queue_fill)?;
        write!(f, "{:<20} ", "handler_time")?;
        match self.handler_time() {
            Some(time) => time.fmt(f),
            None => f.write_str("no samples"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_snapshot_prints_each_figure_on_a_line() {
        let counters = Counters::default();
        counters.reader.late_replies.store(7);
        let text = counters.snapshot(Instant::now()).to_string();
        for line in [
            "late_replies         7",
            "queue_fill           0.000",
            "handler_time         no samples",
        ] {
            assert!(text.lines().any(|other| other == line), "{text}");
        }
        counters.handler_times.note(Duration::from_millis(2));
        let text = counters.snapshot(Instant::now()).to_string();
        let time = "handler_time         mean 2ms, p99 2ms, maximum 2ms of 1 samples";
        assert_eq!(text.lines().last(), Some(time));
    }

    #[test]
    fn of_sessions_gauges_and_counters_add_up_and_the_highest_peak_counts() {
        let counters = Counters::default();
        counters.others.panics.store(3);
        let mut one = counters.snapshot(Instant::now());
        (one.queued_bytes, one.queued_bytes_peak, one.queue_fill) = (10, 50, 0.25);
        let mut other = one.clone();
        (other.queued_bytes_peak, other.queue_fill) = (40, 0.5);
        one.add(&other);
        assert_eq!((one.queued_bytes, one.panics), (20, 6));
        assert_eq!((one.queued_bytes_peak, one.queue_fill()), (50, 0.5));
    }
}
