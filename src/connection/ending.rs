//! How a connection ends: failures, the end of the stream, and those who wait for it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::Connection;
use super::closing::close_timeout;
use super::framed_before::{PushFrame, counted};
use super::report::{CloseReason, CloseReport};
use crate::error::{Error, ErrorKind};
use crate::message::Kind;
use crate::protocol::Decoded;
use crate::stats::Count;

/// How long the last steps of what was cut off are waited for.
const LAST_STEPS: Duration = Duration::from_millis(100);

/// Until when the last steps of a close are waited for. What has ended within its limit is kept
/// by no handler any more, only by a slow system: that may take what is left of the limit.
pub(crate) fn last_steps(limit_end: Option<Instant>) -> Instant {
    let least = Instant::now() + LAST_STEPS;
    limit_end.map_or(least, |limit_end| limit_end.max(least))
}

/// How the stream of bytes from the peer ended.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// Between two frames.
    Whole,
    /// Inside a frame.
    Cut,
    /// With an error of the socket.
    Error(Error),
}

/// How the end came about, as it becomes known.
#[derive(Default)]
pub(super) struct Ending {
    pub(super) reason: Option<(CloseReason, Error)>,
    not_written: Count,
    /// Pushes that were dropped.
    dropped: Count,
    /// Of what is not written, the pushes are kept for another connection.
    pub(super) keeps_pushes: bool,
    pub(super) kept: Vec<PushFrame>,
    held: Count,
    /// `not_written` is known.
    accounted: bool,
    report: Option<CloseReport>,
    /// The writing half is closed, after all that was to be written.
    written_out: bool,
    threads: usize,
}

/// Counts a thread of the connection while it lives.
pub(super) struct ThreadGuard(Arc<Connection>);

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        self.0.ending.lock().threads -= 1;
        self.0.ended.notify_all();
    }
}

impl Connection {
    pub(super) fn count_thread(&self) -> Option<ThreadGuard> {
        let me = self.me.upgrade()?;
        self.ending.lock().threads += 1;
        Some(ThreadGuard(me))
    }

    /// Whether this side has cut the line: what is still there to be read is not handed on.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Whether the line is dead.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Counts a push that was dropped; `false` if the report may have been made already.
    pub(super) fn note_dropped(&self, bytes: usize) -> bool {
        let mut ending = self.ending.lock();
        let counts = ending.reason.is_none();
        if counts {
            ending.dropped.add(Count {
                messages: 1,
                bytes: bytes as u64,
            });
        }
        counts
    }

    /// What ended the line, if it is dead.
    pub(super) fn end_reason(&self) -> Option<Error> {
        let ending = self.ending.lock();
        ending.reason.as_ref().map(|(_, error)| error.clone())
    }

    /// The error of an operation on a session that closes or is over.
    pub(crate) fn closed_error(&self) -> Error {
        let error = match (self.end_reason(), self.dismissal()) {
            (Some(reason), _) if reason.kind() != ErrorKind::Closed => {
                Error::with_source(ErrorKind::Disconnected, "the connection has ended", reason)
            }
            (_, Some(dismissal)) => {
                let message = "this side has closed the session with a reason";
                Error::with_source(ErrorKind::Closed, message, dismissal)
            }
            _ => Error::new(ErrorKind::Closed, "the session is closed"),
        };
        error.with_farewell(self.farewell())
    }

    /// Ends the connection at once; what is not written is lost, and counted.
    pub(crate) fn abort(&self) {
        self.fail(Error::new(ErrorKind::Closed, "the session was aborted"));
    }

    /// The line is dead, by this side's doing or because writing failed.
    pub(crate) fn fail(&self, error: Error) {
        let reason = match error.kind() {
            ErrorKind::Disconnected => CloseReason::Reset,
            _ => CloseReason::Cut,
        };
        self.end(reason, error);
    }

    /// The line is dead: everybody who waits returns, and what was not written is counted. The
    /// first reason is the one that stays.
    fn end(&self, reason: CloseReason, error: Error) {
        let mut ending = self.ending.lock();
        if ending.reason.is_some() {
            return;
        }
        ending.reason = Some((reason, error.clone()));
        let keeps = ending.keeps_pushes;
        drop(ending);
        if reason == CloseReason::Cut {
            self.cut.store(true, Ordering::SeqCst);
        }
        self.queue.close();
        if let Some(socket) = self.socket.lock().take() {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        let mut unsent = HashSet::new();
        let mut kept = Vec::new();
        let lost = self.give_up_output(|frames| {
            self.note_calls(frames, &mut unsent);
            if keeps {
                self.keep_pushes_of(frames, &mut kept);
            }
        });
        self.over.store(true, Ordering::SeqCst);
        self.wake_at_inlets();
        // Before the report, so that no outcome comes after the closed event.
        self.fail_calls(&error, |sequence| !unsent.contains(&sequence));
        self.cancel_all_nested();
        let mut ending = self.ending.lock();
        ending.held = counted(&kept);
        ending.not_written = lost.less(ending.held);
        ending.kept = kept;
        ending.accounted = true;
        drop(ending);
        self.ended.notify_all();
        self.bell.ring();
    }

    /// Notes the calls among frames that were not written: nobody can have executed them.
    fn note_calls(&self, mut frames: &[u8], unsent: &mut HashSet<u32>) {
        while let Ok(Decoded::Message { message, size }) =
            self.framing.decode(frames, &self.config.limits)
        {
            if message.kind == Kind::Call {
                unsent.insert(message.sequence);
            }
            frames = frames.get(size..).unwrap_or_default();
        }
    }

    /// The writing half is closed.
    pub(super) fn written_out(&self) {
        self.ending.lock().written_out = true;
        self.ended.notify_all();
    }

    /// The stream from the peer has ended: between two frames, inside one, or by an error.
    ///
    /// A peer that has said all it had to say may still listen: what is owed to it is written
    /// first, within the limit for closing.
    pub(super) fn stream_ended(&self, how: StreamEnd) {
        let has_goodbye = self.framing.protocol().carries(Kind::Goodbye);
        let said_goodbye = self.closing.lock().has_received_goodbye();
        if matches!(how, StreamEnd::Whole) && (said_goodbye || !has_goodbye) {
            self.close_too();
            // No reply can come any more.
            let gone = Error::new(ErrorKind::Disconnected, "the peer has closed its side");
            self.fail_calls(&gone, |_| true);
            self.update_closing();
            let ending = self.ending.lock();
            drop(self.wait_until(ending, None, |ending| {
                ending.written_out || ending.reason.is_some()
            }));
        }
        let (reason, error) = match how {
            StreamEnd::Cut => (
                CloseReason::Truncated,
                Error::new(ErrorKind::Disconnected, "the stream ended inside a frame"),
            ),
            StreamEnd::Error(error) => (CloseReason::Reset, error),
            StreamEnd::Whole if has_goodbye && !said_goodbye => (
                CloseReason::Ended,
                Error::new(
                    ErrorKind::Disconnected,
                    "the peer closed the connection without a goodbye",
                ),
            ),
            StreamEnd::Whole => (
                CloseReason::Clean,
                Error::new(ErrorKind::Closed, "the session is closed"),
            ),
        };
        self.end(reason, error);
    }

    /// The report; everything that came has been handed on.
    pub(super) fn report(&self) -> CloseReport {
        // Whoever ended the line may still be counting what was not written.
        let ending = self.wait_until(self.ending.lock(), None, |ending| ending.accounted);
        drop(ending);
        let sent = self.counters.sent();
        let confirmed = self.delivery.lock().confirmed(sent);
        let has_goodbye = self.framing.protocol().carries(Kind::Goodbye);
        let closing = self.closing.lock();
        let said_goodbye = closing.has_received_goodbye();
        let (dismissal, farewell) = (closing.dismissal().cloned(), closing.farewell().cloned());
        drop(closing);
        let ending = self.ending.lock();
        let unconfirmed = sent.less(confirmed);
        let unsent = ending.not_written.messages + ending.held.messages;
        let nothing_lost = unconfirmed.messages == 0 && unsent == 0;
        let (reason, error) = match &ending.reason {
            // The peer left after its goodbye without waiting for ours.
            Some((CloseReason::Reset, _)) if said_goodbye && nothing_lost => {
                (CloseReason::Clean, None)
            }
            None | Some((CloseReason::Clean, _)) if nothing_lost || !has_goodbye => {
                (CloseReason::Clean, None)
            }
            None | Some((CloseReason::Clean, _)) => (
                CloseReason::Ended,
                Some(Error::new(
                    ErrorKind::Disconnected,
                    "the peer ended the session before it had confirmed everything",
                )),
            ),
            Some((reason, error)) => (*reason, Some(error.clone())),
        };
        CloseReport {
            session: self.id,
            reason,
            error,
            farewell,
            dismissal,
            not_written: ending.not_written,
            dropped: ending.dropped,
            held: ending.held,
            unconfirmed,
            confirmed,
            received: self.counters.received(),
        }
    }

    /// What was written so far: not confirmed yet, and confirmed.
    pub(crate) fn delivered(&self) -> (Count, Count) {
        let sent = self.counters.sent();
        let confirmed = self.delivery.lock().confirmed(sent);
        (sent.less(confirmed), confirmed)
    }

    pub(super) fn count_end(&self, reason: CloseReason) {
        let counters = &self.counters.others;
        let counter = match reason {
            CloseReason::Clean => &counters.closed_clean,
            CloseReason::Ended => &counters.closed_ended,
            CloseReason::Truncated => &counters.closed_truncated,
            CloseReason::Reset => &counters.closed_reset,
            CloseReason::Cut => &counters.closed_cut,
        };
        counter.fetch_add(1);
    }

    /// The closed event has been delivered: everybody who waits for the end may go on.
    pub(super) fn announce_end(&self, report: CloseReport) {
        self.ending.lock().report = Some(report);
        self.ended.notify_all();
        // A handle that somebody keeps shall keep no thread.
        *self.timer.lock() = None;
    }

    /// Waits for the report.
    pub(crate) fn wait_ended(&self, deadline: Option<Instant>) -> Option<CloseReport> {
        let ending = self.ending.lock();
        let ending = self.wait_until(ending, deadline, |ending| ending.report.is_some());
        ending.report.clone()
    }

    /// After the report: waits for the last steps of the threads.
    pub(crate) fn wait_threads(&self, deadline: impl Into<Option<Instant>>) {
        let ending = self.ending.lock();
        drop(self.wait_until(ending, deadline.into(), |ending| ending.threads == 0));
    }

    fn wait_until<'a>(
        &'a self,
        mut ending: MutexGuard<'a, Ending>,
        deadline: Option<Instant>,
        is_reached: impl Fn(&Ending) -> bool,
    ) -> MutexGuard<'a, Ending> {
        while !is_reached(&ending) {
            match deadline {
                Some(deadline) => {
                    if self.ended.wait_until(&mut ending, deadline).timed_out() {
                        break;
                    }
                }
                None => self.ended.wait(&mut ending),
            }
        }
        ending
    }

    /// Ends the connection, which did not close in time; the report is what is known by the
    /// deadline.
    pub(crate) fn cut(&self, deadline: Instant) -> CloseReport {
        self.fail(close_timeout());
        self.wait_ended(Some(deadline))
            .unwrap_or_else(|| self.report())
    }
}
