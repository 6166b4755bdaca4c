//! The schedule under a clock that is only a number.

use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use super::*;

fn at(start: Instant, millis: u64) -> Instant {
    start + Duration::from_millis(millis)
}

/// The longest waits: those for the largest random number.
fn longest(schedule: &mut Schedule, now: Instant, count: usize) -> Vec<u128> {
    let next = |_| schedule.next(now, u64::MAX).unwrap();
    (0..count).map(next).map(round).collect()
}

fn round(wait: Duration) -> u128 {
    (wait + Duration::from_nanos(1)).as_millis()
}

#[test]
fn the_bound_of_the_waits_grows_up_to_the_most_and_the_jitter_comes_after() {
    let now = Instant::now();
    let mut schedule = Schedule::new(Backoff::default(), now);
    let waits = longest(&mut schedule, now, 12);
    assert_eq!(
        waits,
        [
            100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000
        ]
    );
    assert_eq!(schedule.attempt(), 12);
    // The wait of half the random range is half the bound, also where the bound is the most.
    let half = schedule.next(now, u64::MAX / 2).unwrap();
    assert_eq!(round(half), 15_000);
    assert_eq!(schedule.next(now, 0), Some(Duration::ZERO));
}

#[test]
fn a_thousand_clients_that_lose_their_server_at_once_do_not_come_back_at_once() {
    let start = Instant::now();
    let mut random = StdRng::seed_from_u64(7);
    // The server is away for a minute: by then all clients wait up to half a minute.
    let mut dials = Vec::new();
    for _ in 0..1000 {
        let mut schedule = Schedule::new(Backoff::default(), start);
        let mut now = start;
        while now < at(start, 60_000) {
            now += schedule.next(now, random.next_u64()).unwrap();
        }
        dials.push((now - start).as_millis() as usize / 100);
    }
    let count = |slot| dials.iter().filter(|dial| **dial == slot).count();
    let busiest = dials.iter().map(|slot| count(*slot)).max().unwrap();
    assert!(busiest < 50, "{busiest} of 1000 dials within 100 ms");
}

#[test]
fn only_a_session_that_was_stable_lets_everything_begin_anew() {
    let start = Instant::now();
    let mut schedule = Schedule::new(Backoff::default(), start);
    longest(&mut schedule, start, 3);
    schedule.connected(at(start, 1000));
    schedule.lost(at(start, 10_999));
    assert_eq!(longest(&mut schedule, at(start, 10_999), 1), [800]);
    assert_eq!(schedule.attempt(), 4);
    schedule.connected(at(start, 20_000));
    schedule.lost(at(start, 30_000));
    assert_eq!(schedule.attempt(), 0);
    assert_eq!(longest(&mut schedule, at(start, 30_000), 2), [100, 200]);
}

#[test]
fn the_attempts_and_the_total_time_are_limited() {
    let start = Instant::now();
    let few = Backoff {
        attempts: 2,
        ..Backoff::default()
    };
    let mut schedule = Schedule::new(few, start);
    longest(&mut schedule, start, 2);
    assert_eq!(schedule.next(start, 1), None);
    schedule.connected(start);
    schedule.lost(at(start, 10_000));
    assert!(schedule.next(at(start, 10_000), 1).is_some());

    let short = Backoff {
        total: Duration::from_millis(250),
        ..Backoff::default()
    };
    let mut schedule = Schedule::new(short, start);
    assert_eq!(longest(&mut schedule, at(start, 0), 2), [100, 200]);
    // What is left of the total bounds the wait.
    assert_eq!(longest(&mut schedule, at(start, 150), 1), [100]);
    assert_eq!(schedule.next(at(start, 250), 1), None);
}

#[test]
fn the_time_of_a_session_is_not_spent_however_short_it_was() {
    let start = Instant::now();
    let backoff = Backoff {
        total: Duration::from_secs(5),
        stable: Duration::from_secs(10),
        ..Backoff::default()
    };
    let mut schedule = Schedule::new(backoff, start);
    schedule.connected(start);
    schedule.lost(at(start, 6_000));
    assert!(schedule.next(at(start, 6_000), 0).is_some());
    schedule.connected(at(start, 8_000));
    schedule.lost(at(start, 9_000));
    // Two seconds were spent without a session, and three are left.
    assert!(schedule.next(at(start, 11_999), 0).is_some());
    assert_eq!(schedule.next(at(start, 12_000), 0), None);
}

#[test]
fn extreme_values_do_not_overflow() {
    let now = Instant::now();
    let extreme = Backoff {
        first: Duration::MAX,
        factor: u32::MAX,
        most: Duration::MAX,
        attempts: u32::MAX,
        total: Duration::MAX,
        stable: Duration::MAX,
    };
    let mut schedule = Schedule::new(extreme, now);
    for _ in 0..100 {
        let wait = schedule.next(now, u64::MAX).unwrap();
        assert!(wait > Duration::from_secs(1 << 33), "{wait:?}");
    }
    schedule.connected(now);
    schedule.lost(now + Duration::from_secs(1 << 33));
    schedule.attempts = u32::MAX;
    assert!(schedule.next(now, u64::MAX).is_some());
    let steady = Backoff {
        first: Duration::from_nanos(1),
        factor: 1,
        ..Backoff::default()
    };
    let mut schedule = Schedule::new(steady, now);
    schedule.attempts = u32::MAX - 1;
    assert_eq!(schedule.next(now, u64::MAX), Some(Duration::ZERO));
}
