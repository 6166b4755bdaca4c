use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::memory::Cap;

fn queue(bytes: usize, messages: usize, reply_reserve: usize) -> SendQueue {
    let bound = Bound {
        bytes,
        messages,
        reply_reserve,
        replies: 1000,
        uncounted: 0,
    };
    SendQueue::new(bound, account(u64::MAX))
}

fn account(bytes: u64) -> Arc<Account> {
    Account::new(Cap::new("limits.session_bytes", bytes), None)
}

/// Appends a frame for which room is reserved.
fn put(queue: &SendQueue, frame: &[u8]) {
    let appended = queue.append(Admission::Reserved, true, |bytes| {
        bytes.extend_from_slice(frame);
        Ok(())
    });
    appended.unwrap();
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(10))
}

#[test]
fn the_bound_holds_in_bytes_and_in_messages() {
    let queue = queue(100, 2, 0);
    queue.reserve(60, Class::Request).unwrap();
    let full = queue.reserve(60, Class::Request).unwrap_err();
    assert_eq!(full, Refusal::Full(Shortage::Queue));
    queue.reserve(40, Class::Request).unwrap();
    queue.release(99, 0);
    let full = queue.reserve(1, Class::Request).unwrap_err();
    assert_eq!(full, Refusal::Full(Shortage::Queue));
}

#[test]
fn one_frame_over_the_bound_is_admitted_when_the_queue_is_empty() {
    let queue = queue(100, 10, 0);
    queue.reserve(1000, Class::Request).unwrap();
    assert!(queue.reserve(1, Class::Request).is_err());
    queue.release(1000, 1);
    queue.reserve(1, Class::Request).unwrap();
}

#[test]
fn replies_have_a_reserve_and_control_frames_always_room() {
    let queue = queue(100, 10, 50);
    queue.reserve(100, Class::Request).unwrap();
    queue.reserve(50, Class::Reply).unwrap();
    assert!(queue.reserve(1, Class::Reply).is_err());
    queue.reserve(20, Class::Control).unwrap();
}

#[test]
fn the_fill_is_a_part_of_the_bound_and_the_peak_stays() {
    let queue = queue(100, 4, 50);
    assert_eq!((queue.fill(), queue.peak_bytes()), (0.0, 0));
    queue.reserve(1, Class::Request).unwrap();
    assert_eq!(queue.fill(), 0.25);
    queue.reserve(49, Class::Request).unwrap();
    assert_eq!((queue.fill(), queue.peak_bytes()), (0.5, 50));
    queue.reserve(100, Class::Reply).unwrap();
    assert_eq!((queue.fill(), queue.peak_bytes()), (1.5, 150));
    assert!(queue.reserve(1, Class::Request).is_err());
    queue.release(150, 3);
    assert_eq!((queue.fill(), queue.peak_bytes()), (0.0, 150));
}

#[test]
fn a_waiter_gets_room_when_it_is_released_and_an_error_when_the_queue_closes() {
    let queue = Arc::new(queue(100, 10, 0));
    queue.reserve(100, Class::Request).unwrap();
    let waiter = {
        let queue = queue.clone();
        thread::spawn(move || queue.reserve_by(10, soon()))
    };
    queue.release(100, 1);
    waiter.join().unwrap().unwrap();
    let waiter = {
        let queue = queue.clone();
        thread::spawn(move || queue.reserve_by(1000, soon()))
    };
    queue.close();
    let error = waiter.join().unwrap().unwrap_err();
    assert_eq!(error, Refusal::Closed);
}

#[test]
fn a_waiter_gives_up_at_its_deadline() {
    let queue = queue(100, 10, 0);
    queue.reserve(100, Class::Request).unwrap();
    let deadline = Some(Instant::now() + Duration::from_millis(20));
    let error = queue.reserve_by(10, deadline).unwrap_err();
    assert_eq!(error, Refusal::Full(Shortage::Queue));
}

#[test]
fn waiters_share_a_narrow_queue_fairly() {
    let queue = Arc::new(queue(4, 1000, 0));
    // A busy machine starts some threads late: none begins before all are there.
    let all_there = Arc::new(Barrier::new(8));
    let senders: Vec<_> = (0..8)
        .map(|_| {
            let (queue, all_there) = (queue.clone(), all_there.clone());
            thread::spawn(move || {
                let mut sent = 0_u64;
                all_there.wait();
                let end = Instant::now() + Duration::from_millis(500);
                while Instant::now() < end {
                    if queue.reserve(1, Class::Request).is_err()
                        && queue.reserve_by(1, soon()).is_err()
                    {
                        break;
                    }
                    put(&queue, &[0]);
                    sent += 1;
                }
                sent
            })
        })
        .collect();
    let mut senders_left = true;
    while senders_left {
        while let Some(chunk) = queue.take(Chunk::default()) {
            let (bytes, frames) = chunk.room();
            queue.release(bytes, frames);
        }
        thread::yield_now();
        senders_left = senders.iter().any(|sender| !sender.is_finished());
    }
    let shares: Vec<u64> = senders.into_iter().map(|s| s.join().unwrap()).collect();
    let mean = shares.iter().sum::<u64>() / 8;
    let least = *shares.iter().min().unwrap();
    assert!(least > mean / 5, "shares {shares:?}");
}

#[test]
fn each_senders_frames_keep_their_order() {
    let queue = Arc::new(queue(1 << 20, 1 << 20, 0));
    let senders: Vec<_> = (0..4u32)
        .map(|sender| {
            let queue = queue.clone();
            thread::spawn(move || {
                for number in 0..5_000u32 {
                    let size = if number % 3 == 0 { 300 } else { 8 };
                    let mut bytes = vec![0; size];
                    bytes[..4].copy_from_slice(&sender.to_le_bytes());
                    bytes[4..8].copy_from_slice(&number.to_le_bytes());
                    queue.reserve_by(size, soon()).unwrap();
                    match number % 10 {
                        0 => queue.append_alone(bytes),
                        1 => queue.append_shared(bytes.into()),
                        _ => put(&queue, &bytes),
                    }
                }
            })
        })
        .collect();
    let mut next = [0u32; 4];
    while next.iter().sum::<u32>() < 20_000 {
        let Some(chunk) = queue.take(Chunk::default()) else {
            thread::yield_now();
            continue;
        };
        chunk.split(0, |bytes| {
            let sender = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
            let number = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
            assert_eq!(number, next[sender]);
            next[sender] += 1;
        });
        let (bytes, frames) = chunk.room();
        queue.release(bytes, frames);
    }
    for sender in senders {
        sender.join().unwrap();
    }
    assert!(queue.is_settled());
}

#[test]
fn a_rung_sleeper_wakes() {
    let bell = Arc::new(Bell::new());
    let sleeper = {
        let bell = bell.clone();
        thread::spawn(move || bell.sleep(|| false))
    };
    let end = Instant::now() + Duration::from_secs(10);
    while !sleeper.is_finished() {
        bell.ring();
        thread::yield_now();
        assert!(Instant::now() < end, "the sleeper was never woken");
    }
    sleeper.join().unwrap();
}

#[test]
fn what_encodes_to_nothing_leaves_nothing_behind() {
    let queue = queue(100, 10, 0);
    let within = Admission::Within(Class::Request);
    queue.append(within, true, |_| Ok(())).unwrap();
    assert!(queue.is_empty() && queue.is_settled());
    assert!(queue.take(Chunk::default()).is_none());
}

#[test]
fn what_is_written_of_a_chunk_gives_its_room_back_once() {
    let queue = queue(100, 10, 0);
    for frame in [[1; 10], [2; 10], [3; 10]] {
        queue.reserve(frame.len(), Class::Request).unwrap();
        put(&queue, &frame);
    }
    let mut chunk = queue.take(Chunk::default()).unwrap();
    assert_eq!(chunk.free(9), (0, 0));
    assert_eq!(chunk.free(25), (20, 2));
    assert_eq!(chunk.free(25), (0, 0));
    assert_eq!(chunk.room(), (10, 1));
    assert_eq!(chunk.free(30), (10, 1));
    assert_eq!(chunk.room(), (0, 0));
    assert_eq!(chunk.messages().messages, 3);
}

/// A queue of 1 MiB of which this much is not counted.
fn counted(account: &Arc<Account>, uncounted: usize) -> SendQueue {
    let bound = Bound {
        bytes: 1 << 20,
        messages: 1000,
        reply_reserve: 1 << 20,
        replies: 1000,
        uncounted,
    };
    SendQueue::new(bound, account.clone())
}

#[test]
fn memory_is_leased_in_steps_and_given_back_by_an_empty_queue() {
    let account = account(1 << 20);
    let queue = counted(&account, 1000);
    queue.reserve(1000, Class::Request).unwrap();
    assert_eq!(account.used(), 0);
    queue.reserve(1, Class::Request).unwrap();
    assert_eq!(account.used(), 64 << 10);
    queue.reserve(64 << 10, Class::Request).unwrap();
    assert_eq!(account.used(), 128 << 10);
    queue.release(64 << 10, 1);
    assert_eq!(account.used(), 128 << 10);
    queue.release(1001, 2);
    assert_eq!(account.used(), 0);
    queue.reserve(70_000, Class::Request).unwrap();
    drop(queue);
    assert_eq!(account.used(), 0);
}

#[test]
fn without_memory_only_what_is_not_counted_has_room_and_control_frames_always_do() {
    let account = account(10_000);
    let queue = counted(&account, 1000);
    account.take(9_000).unwrap();
    // Less than a step is left, and can be used up.
    queue.reserve(2_000, Class::Request).unwrap();
    let full = |class| queue.reserve(1, class).unwrap_err();
    let Refusal::Full(Shortage::Memory(cap)) = full(Class::Request) else {
        panic!("no memory was refused");
    };
    assert_eq!(cap.to_string(), "limits.session_bytes is 10000");
    assert_eq!(full(Class::Reply), Refusal::Full(Shortage::Memory(cap)));
    queue.reserve(500, Class::Control).unwrap();
    queue.release(2_500, 2);
    assert_eq!(account.used(), 9_000);
    let large = queue.reserve(2_001, Class::Request).unwrap_err();
    assert_eq!(large, Refusal::Full(Shortage::Memory(cap)));
    queue.reserve(1_000, Class::Reply).unwrap();
}

#[test]
fn who_waits_for_memory_gets_it_when_another_queue_gives_it_back() {
    let account = account(100_000);
    let (one, other) = (counted(&account, 1000), counted(&account, 1000));
    one.reserve(90_000, Class::Request).unwrap();
    let short = other.reserve_by(50_000, Some(Instant::now())).unwrap_err();
    assert!(matches!(short, Refusal::Full(Shortage::Memory(_))));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.reserve_by(50_000, soon()));
        while other.reserve(1, Class::Request).is_ok() {
            other.release(1, 1);
            thread::yield_now();
        }
        one.release(90_000, 1);
        waiter.join().unwrap().unwrap();
    });
}

#[test]
fn leases_that_end_while_others_begin_lose_nothing() {
    let account = account(1 << 20);
    let queue = counted(&account, 100);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    queue.reserve(1_000, Class::Request).unwrap();
                    assert!(account.used() > 0);
                    queue.release(1_000, 1);
                }
            });
        }
    });
    assert_eq!(account.used(), 0);
}
