//! Peers that read too slowly, under each policy: what becomes of the pushes to them, and that
//! nobody else notices.

mod disconnected;
mod dropped;
mod memory;
mod resident;

use std::thread;

use trunkline::{
    Client, Error, ErrorKind, Limits, Server, ServerBuilder, Session, SlowPeer, SocketOptions,
    Timeouts,
};

use crate::support::bodies::number;
use crate::support::{LIMIT, RawPeer, eventually, millis, server_session, within};

const NOTE: u32 = 1;
const ECHO: u32 = 2;
const QUEUE: u32 = 100_000;
const SMALL: usize = 1_000;
/// It finds no room before nearly everything else is written, even if the kernel takes a little
/// more meanwhile.
const LARGE: usize = 90_000;

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.queued_bytes = QUEUE;
    limits
}

/// A server whose sockets hold little and whose sessions outlive a stall.
fn builder(limits: Limits) -> ServerBuilder {
    let mut options = SocketOptions::default();
    options.send_buffer = Some(16 << 10);
    let mut timeouts = Timeouts::default();
    (timeouts.write, timeouts.push, timeouts.close) = (6 * LIMIT, 6 * LIMIT, 6 * LIMIT);
    Server::builder()
        .limits(limits)
        .timeouts(timeouts)
        .socket_options(options)
        .on_call(ECHO, |_, body| body.to_vec())
}

/// A peer that reads only when the test has it read, and its session.
fn deaf(server: &Server) -> (RawPeer, Session) {
    let peer = RawPeer::dial(server.local_address());
    let session = server_session(server, peer.session);
    (peer, session)
}

/// A body that begins with its number.
fn numbered(number: u32, size: usize) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.resize(size, number as u8);
    body
}

/// Pushes numbered messages of this size until there is no room; how many went in, and why the
/// next did not. Afterwards not even the system takes more.
fn fill(session: &Session, size: usize) -> (u32, Error) {
    let mut pushed = 0;
    loop {
        let full = loop {
            match session.try_push(NOTE, numbered(pushed, size)) {
                Ok(()) => pushed += 1,
                Err(unsent) => break unsent,
            }
        };
        assert!(full.is_full(), "{full}");
        let is_stuck = !eventually(millis(200), || {
            let went_in = session.try_push(NOTE, numbered(pushed, size)).is_ok();
            pushed += u32::from(went_in);
            went_in
        });
        if is_stuck {
            return (pushed, full.into());
        }
    }
}

#[test]
fn one_stalled_peer_of_a_hundred_makes_only_its_own_pushers_wait() {
    const ROUNDS: u32 = 20;
    within(6 * LIMIT, || {
        let server = builder(limits()).bind("127.0.0.1:0").unwrap();
        let (_deaf, stalled) = deaf(&server);
        assert_eq!(stalled.slow_peer(), SlowPeer::Block);
        fill(&stalled, SMALL);
        let mut others: Vec<RawPeer> = (0..99)
            .map(|_| RawPeer::dial(server.local_address()))
            .collect();
        let unsent = stalled.push_timeout(NOTE, vec![1; LARGE], millis(100));
        assert_eq!(unsent.unwrap_err().error().kind(), ErrorKind::Timeout);
        let waiting = {
            let stalled = stalled.clone();
            thread::spawn(move || stalled.push(NOTE, vec![1; LARGE]))
        };
        for round in 0..ROUNDS {
            let sent = server
                .hub()
                .broadcast(NOTE, numbered(round, LARGE))
                .unwrap();
            assert_eq!((sent.queued, sent.full, sent.closed), (99, 1, 0));
            for peer in &mut others {
                assert_eq!(peer.next().unwrap().body, numbered(round, LARGE));
            }
        }
        assert!(!waiting.is_finished());
        stalled.abort();
        let error = waiting.join().unwrap().unwrap_err();
        assert!(error.is_closed(), "{error:#}");
        let sent = server.hub().broadcast(NOTE, numbered(0, SMALL)).unwrap();
        assert_eq!(sent.queued, 99);
    });
}

#[test]
fn a_policy_that_changes_holds_for_the_next_push_and_not_for_one_that_waits() {
    within(6 * LIMIT, || {
        let server = builder(limits()).bind("127.0.0.1:0").unwrap();
        let (mut peer, session) = deaf(&server);
        let (queued, _) = fill(&session, SMALL);
        let waiting = {
            let session = session.clone();
            thread::spawn(move || session.push(NOTE, numbered(queued, LARGE)))
        };
        // Who comes behind one that waits finds no room.
        assert!(eventually(LIMIT, || session
            .try_push(NOTE, [0; 0])
            .is_err()));
        session.set_slow_peer(SlowPeer::DropNewest);
        assert_eq!(session.slow_peer(), SlowPeer::DropNewest);
        session.push(NOTE, numbered(queued + 1, SMALL)).unwrap();
        assert_eq!(session.stats().slow_peer_drops, 1);
        assert!(!waiting.is_finished());
        let mut seen = 0;
        loop {
            let note = peer.next().unwrap();
            if note.body.is_empty() {
                continue;
            }
            assert_eq!(number(&note.body), seen);
            if seen == queued {
                break;
            }
            seen += 1;
        }
        waiting.join().unwrap().unwrap();
        session.set_slow_peer(SlowPeer::Block);
        session.push(NOTE, numbered(queued + 2, SMALL)).unwrap();
        assert_eq!(number(&peer.next().unwrap().body), queued + 2);
    });
}

#[test]
fn each_session_may_have_its_own_policy_from_the_connected_event_on() {
    within(6 * LIMIT, || {
        let server = builder(limits())
            .slow_peer(SlowPeer::Disconnect)
            .on_connected(|session| session.set_slow_peer(SlowPeer::DropNewest))
            .bind("127.0.0.1:0")
            .unwrap();
        let (_peer, session) = deaf(&server);
        let is_set = || session.slow_peer() == SlowPeer::DropNewest;
        assert!(eventually(LIMIT, is_set));
        fill(&session, SMALL);
        session.push(NOTE, vec![1; LARGE]).unwrap();
        assert_eq!(session.stats().slow_peer_drops, 1);
        assert!(!session.is_closed());

        let client = Client::builder()
            .slow_peer(SlowPeer::Disconnect)
            .connect(server.local_address())
            .unwrap();
        assert_eq!(client.session().slow_peer(), SlowPeer::Disconnect);
        let client = Client::connect(server.local_address()).unwrap();
        assert_eq!(client.session().slow_peer(), SlowPeer::Block);
    });
}
