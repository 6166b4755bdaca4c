//! A group of a thousand, of whom ten do not read. In a process of its own, for the threads and
//! descriptors that it takes.

use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use trunkline::{Kind, Limits, Server, Session, SocketOptions, Timeouts};

use super::NOTE;
use crate::support::bodies::number;
use crate::support::{LIMIT, RawPeer, eventually};
use crate::threads::alone;

const SESSIONS: usize = 1_000;
const DEAF: usize = 10;
const SIZE: usize = 16_000;
const MOST_ROUNDS: u32 = 100;

#[test]
fn ten_of_a_thousand_that_do_not_read_stall_nobody_and_the_counts_add_up() {
    const TEST: &str =
        "hub::crowd::ten_of_a_thousand_that_do_not_read_stall_nobody_and_the_counts_add_up";
    alone(TEST, Duration::from_secs(180), push_to_the_crowd);
}

fn push_to_the_crowd() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most.min(8_192), most).unwrap();
    let mut limits = Limits::default();
    limits.queued_bytes = 4 * SIZE as u32;
    let mut options = SocketOptions::default();
    options.send_buffer = Some(16 << 10);
    let mut timeouts = Timeouts::default();
    (timeouts.write, timeouts.close) = (6 * LIMIT, 6 * LIMIT);
    let server = Server::builder()
        .limits(limits)
        .timeouts(timeouts)
        .socket_options(options)
        .bind("127.0.0.1:0")
        .unwrap();
    let hub = server.hub();
    let mut peers: Vec<RawPeer> = (0..SESSIONS)
        .map(|_| RawPeer::dial(server.local_address()))
        .collect();
    for session in hub.sessions() {
        hub.join(&session, "crowd").unwrap();
    }
    assert_eq!(hub.group("crowd").len(), SESSIONS);
    let mut deaf = peers.split_off(SESSIONS - DEAF);
    let (mut queued, mut to_deaf, mut rounds) = (0, 0, 0);
    let mut longest = Duration::ZERO;
    // Until none of the ten has room.
    for round in 0..MOST_ROUNDS {
        let mut body = round.to_le_bytes().to_vec();
        body.resize(SIZE, 3);
        let begun = Instant::now();
        let sent = hub.push_to_group("crowd", NOTE, body).unwrap();
        longest = longest.max(begun.elapsed());
        assert_eq!(sent.queued + sent.full, SESSIONS, "{sent:?}");
        assert!(sent.full <= DEAF && sent.closed == 0, "{sent:?}");
        queued += sent.queued;
        to_deaf += DEAF - sent.full;
        rounds = round + 1;
        for peer in &mut peers {
            let push = peer.next().unwrap();
            assert_eq!((number(&push.body), push.body.len()), (round, SIZE));
        }
        if sent.full == DEAF {
            break;
        }
    }
    println!("{rounds} rounds, {to_deaf} of them to the ten");
    assert!(rounds < MOST_ROUNDS, "their queues were never full");
    assert!(longest < LIMIT / 2, "a push to the group took {longest:?}");
    assert_eq!(queued, peers.len() * rounds as usize + to_deaf);
    // What was counted as queued for the ten is there, and nothing else.
    hub.sessions().iter().for_each(Session::close);
    for peer in &mut deaf {
        while let Some(push) = peer.next().filter(|next| next.kind == Kind::Push) {
            assert_eq!(push.body.len(), SIZE);
            to_deaf -= 1;
        }
    }
    assert_eq!(to_deaf, 0);
    drop((peers, deaf));
    assert!(eventually(LIMIT, || hub.is_empty()), "{}", hub.len());
    assert!(hub.groups().is_empty());
}
