//! A full pool: its bounds, who waits, and that nothing is lost.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use trunkline::{Client, ErrorKind, Limits, Server, Session, Status};

use super::{ASK, Gate, NOTE, WAIT, pool};
use crate::support::bodies::number;
use crate::support::{LIMIT, RawPeer, eventually, millis, server_session, tcp_address, within};

type Numbers = Arc<Mutex<Vec<u32>>>;

/// A server with one worker, whose push handler passes the gate first, and what it handled.
fn gated(messages: usize, limits: Limits) -> (Server, Gate, Numbers) {
    let (gate, numbers) = (Gate::default(), Numbers::default());
    let (keep, handled) = (gate.clone(), numbers.clone());
    let kept = gate.clone();
    let server = Server::builder()
        .limits(limits)
        .dispatch(pool(1, messages, true))
        .on_push(NOTE, move |_, body| {
            keep.pass();
            handled.lock().unwrap().push(number(&body));
        })
        .on_call(WAIT, move |_, _| kept.pass())
        .bind("127.0.0.1:0")
        .unwrap();
    (server, gate, numbers)
}

/// Pushes until the sender has to wait; how many were sent.
fn fill(session: &Session, size: usize) -> u32 {
    for round in 0..u32::MAX {
        let mut body = vec![0; size];
        body[..4].copy_from_slice(&round.to_le_bytes());
        if let Err(refused) = session.push_timeout(NOTE, body, millis(300)) {
            assert_eq!(refused.error().kind(), ErrorKind::Timeout);
            return round;
        }
    }
    unreachable!("the bound is far below");
}

/// Fills the pool, of which so many messages are beyond the gate or on their way in.
fn pushes_wait(messages: usize, limits: Limits, received: u64) {
    let (server, gate, numbers) = gated(messages, limits);
    let client = Client::connect(server.local_address()).unwrap();
    let sent = fill(&client.session(), 16 << 10);
    assert!(u64::from(sent) * (16 << 10) < 24 << 20, "{sent} were sent");
    // What is held in the backlog does not count.
    let session = server_session(&server, client.id());
    assert_eq!(session.stats().received_messages, received);
    gate.open();
    client.push(NOTE, sent.to_le_bytes()).unwrap();
    let count = sent as usize + 1;
    assert!(eventually(LIMIT, || numbers.lock().unwrap().len() == count));
    assert!(numbers.lock().unwrap().iter().copied().eq(0..=sent));
}

fn small_backlog() -> Limits {
    let mut limits = Limits::default();
    limits.backlog_bytes = 256 << 10;
    limits
}

#[test]
fn pushes_wait_at_the_sender_once_the_pool_is_full_by_messages() {
    within(Duration::from_secs(60), || {
        // One runs, four wait, and one waits for room.
        pushes_wait(4, small_backlog(), 6);
    });
}

#[test]
fn pushes_wait_at_the_sender_once_the_pool_is_full_by_bytes() {
    within(Duration::from_secs(60), || {
        let mut limits = small_backlog();
        limits.pool_bytes = 100_000;
        pushes_wait(1_000, limits, 1 + 6 + 1);
    });
}

#[test]
fn ten_thousand_pushes_pass_a_small_pool() {
    within(Duration::from_secs(60), || {
        let (server, gate, numbers) = gated(4, Limits::default());
        gate.open();
        let client = Client::connect(server.local_address()).unwrap();
        for round in 0..10_000u32 {
            client.push(NOTE, round.to_le_bytes()).unwrap();
        }
        client.shutdown(LIMIT).unwrap();
        assert!(eventually(LIMIT, || numbers.lock().unwrap().len() == 10_000));
        assert!(numbers.lock().unwrap().iter().copied().eq(0..10_000));
    });
}

#[test]
fn replies_come_while_the_pool_is_full() {
    within(LIMIT, || {
        let (server, gate, numbers) = gated(1, Limits::default());
        let client = Client::builder()
            .on_call(ASK, |_, body| body.to_vec())
            .connect(server.local_address())
            .unwrap();
        for round in 0..100u32 {
            client.push(NOTE, round.to_le_bytes()).unwrap();
        }
        gate.wait_for(1);
        let session = server_session(&server, client.id());
        for _ in 0..100 {
            assert_eq!(session.call(ASK, "past").unwrap().body(), b"past");
        }
        assert!(numbers.lock().unwrap().is_empty());
        gate.open();
        assert!(eventually(LIMIT, || numbers.lock().unwrap().len() == 100));
        assert!(numbers.lock().unwrap().iter().copied().eq(0..100));
    });
}

/// What came back for the call with this sequence: 0 for a reply without error.
fn outcome(peer: &mut RawPeer, sequence: u32) -> i32 {
    let reply = peer.next().unwrap();
    assert_eq!(reply.sequence, sequence);
    reply.status.map_or(0, |status| status.code())
}

#[test]
fn calls_beyond_the_byte_allowance_are_answered_overloaded_and_keep_no_push_waiting() {
    within(LIMIT, || {
        let mut limits = Limits::default();
        limits.incoming_call_bytes = 1_000;
        let (server, gate, numbers) = gated(16, limits);
        let mut peer = RawPeer::dial(tcp_address(&server));
        peer.call(WAIT, 1, &[0; 400]);
        // It waits no more, and so does not count.
        gate.wait_for(1);
        for sequence in 2..=5 {
            peer.call(WAIT, sequence, &[0; 400]);
        }
        peer.push(NOTE, &7u32.to_le_bytes());
        for sequence in 4..=5 {
            assert_eq!(outcome(&mut peer, sequence), Status::OVERLOADED);
        }
        assert_eq!(server.stats().calls_overloaded, 2);
        gate.open();
        for sequence in 1..=3 {
            assert_eq!(outcome(&mut peer, sequence), 0);
        }
        assert!(eventually(LIMIT, || *numbers.lock().unwrap() == [7]));
        // A single larger one is admitted alone.
        peer.call(WAIT, 6, &[0; 5_000]);
        assert_eq!(outcome(&mut peer, 6), 0);
    });
}

#[test]
fn two_peers_with_pools_that_flood_each_other_with_calls_finish() {
    within(Duration::from_secs(60), || {
        let server = Server::builder()
            .dispatch(pool(2, 4, true))
            .on_call(ASK, |_, body| body.to_vec())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .dispatch(pool(2, 4, false))
            .on_call(ASK, |_, body| body.to_vec())
            .connect(server.local_address())
            .unwrap();
        let session = server_session(&server, client.id());
        thread::scope(|scope| {
            for side in [client.session(), session.clone()] {
                scope.spawn(move || {
                    let start = |round: u32| {
                        let request = side.request(ASK);
                        request.start([round as u8; 3_000]).unwrap()
                    };
                    let pending: Vec<_> = (0..4_000).map(start).collect();
                    for (round, pending) in pending.into_iter().enumerate() {
                        assert_eq!(pending.wait().unwrap().body(), [round as u8; 3_000]);
                    }
                });
            }
        });
    });
}
