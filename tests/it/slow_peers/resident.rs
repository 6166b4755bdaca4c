//! What a peer that does not read costs this process in memory and processor time. In processes
//! of their own.

use std::thread;

use trunkline::{Error, Limits, SlowPeer};

use super::{NOTE, builder, deaf};
use crate::support::{LIMIT, millis, processor_time, resident_bytes};
use crate::threads::alone;

#[test]
fn a_quarter_of_a_gigabyte_pushed_to_a_stalled_peer_stays_within_the_queue() {
    const TEST: &str = "slow_peers::resident::a_quarter_of_a_gigabyte_pushed_to_a_stalled_peer_stays_within_the_queue";
    alone(TEST, 6 * LIMIT, push_to_the_stalled);
}

fn push_to_the_stalled() {
    const PIECE: usize = 64 << 10;
    const PIECES: u64 = 4_096;
    let limits = Limits::default();
    let queue = limits.queued_bytes as usize;
    let server = builder(limits)
        .slow_peer(SlowPeer::DropNewest)
        .bind("127.0.0.1:0")
        .unwrap();
    let (_peer, session) = deaf(&server);
    let before = resident_bytes();
    let piece = vec![7; PIECE];
    let mut most = 0;
    for _ in 0..PIECES {
        session.push(NOTE, &piece[..]).unwrap();
        let _ = session.try_push(NOTE, &piece[..]);
        most = most.max(resident_bytes());
    }
    let stats = session.stats();
    println!(
        "{} KiB more at most, {} of {PIECES} dropped",
        most.saturating_sub(before) >> 10,
        stats.slow_peer_drops
    );
    // Into the buffers of the system and the queue went little.
    assert!(stats.slow_peer_drops > PIECES / 2, "{stats}");
    assert!(stats.queue_full > PIECES / 2, "{stats}");
    assert!(most.saturating_sub(before) < queue + (4 << 20));
}

#[test]
fn waiting_for_memory_uses_no_processor_time() {
    const TEST: &str = "slow_peers::resident::waiting_for_memory_uses_no_processor_time";
    alone(TEST, 6 * LIMIT, wait_for_memory);
}

fn wait_for_memory() {
    let mut limits = Limits::default();
    (limits.frame_bytes, limits.body_bytes) = (100_000, 100_000);
    (limits.session_bytes, limits.total_bytes) = (200_000, 200_000);
    let server = builder(limits).bind("127.0.0.1:0").unwrap();
    let (_greedy, greedy) = deaf(&server);
    while greedy.try_push(NOTE, [1; 10_000]).is_ok() {}
    let (_peer, session) = deaf(&server);
    let before = processor_time();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let unsent = session.push_timeout(NOTE, [1; 60_000], millis(2_000));
                let error = Error::from(unsent.unwrap_err());
                let text = format!("{error:#}");
                assert!(text.contains("limits.total_bytes is 200000"), "{text}");
            });
        }
    });
    let used = processor_time() - before;
    println!("{used:?} of processor time");
    assert!(used < millis(200), "{used:?}");
}
