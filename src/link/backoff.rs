//! When to dial again: waits that grow, drawn at random so that clients spread out.

use std::time::{Duration, Instant};

use crate::config::Backoff;

/// The attempts to get a session back.
#[derive(Debug)]
pub(crate) struct Schedule {
    backoff: Backoff,
    /// Attempts since the last stable session.
    attempts: u32,
    /// When that was lost; later by the time that others have lived since.
    since: Instant,
    /// Since when there is a session.
    connected: Option<Instant>,
}

impl Schedule {
    pub(crate) fn new(backoff: Backoff, now: Instant) -> Self {
        Schedule {
            backoff,
            attempts: 0,
            since: now,
            connected: None,
        }
    }

    /// There is a session.
    pub(crate) fn connected(&mut self, now: Instant) {
        self.connected = Some(now);
    }

    /// It is lost; if it was stable, everything begins anew.
    pub(crate) fn lost(&mut self, now: Instant) {
        let lived = self
            .connected
            .take()
            .map(|connected| now.saturating_duration_since(connected));
        match lived {
            Some(lived) if lived >= self.backoff.stable => {
                self.attempts = 0;
                self.since = now;
            }
            // Only the time without a session is spent.
            Some(lived) => self.since += lived,
            None => {}
        }
    }

    /// How long to wait for the next attempt; `None` if there is none. `random` is any number.
    pub(crate) fn next(&mut self, now: Instant, random: u64) -> Option<Duration> {
        let spent = now.saturating_duration_since(self.since);
        let left = self.backoff.total.checked_sub(spent)?;
        let is_limited = self.backoff.attempts != u32::MAX;
        if left.is_zero() || (is_limited && self.attempts >= self.backoff.attempts) {
            return None;
        }
        let longest = self.longest();
        self.attempts = self.attempts.saturating_add(1);
        let nanos = (u128::from(longest) * u128::from(random)) >> 64;
        let delay = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Some(delay.min(left))
    }

    /// The number of the attempt that was given out last, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempts
    }

    /// The upper bound of the next wait, in nanoseconds; 500 years at most.
    fn longest(&self) -> u64 {
        let growth = u128::from(self.backoff.factor).saturating_pow(self.attempts);
        let grown = self.backoff.first.as_nanos().saturating_mul(growth);
        let longest = grown.min(self.backoff.most.as_nanos());
        u64::try_from(longest).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
