//! The figures of live sessions and servers: how full it was, what was refused.

mod ends;
mod handler_time;
mod prometheus;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use trunkline::{Client, ErrorKind, Limits, Pending, Server, Status};

use crate::backpressure::{fill, small_queue, unread};
use crate::support::{LIMIT, RawPeer, eventually, millis, server_session, within};

const ECHO: u32 = 1;
const HOLD: u32 = 2;
/// Pushes of this route are never read here.
const NOTE: u32 = 9;

/// Answers `HOLD` when the test lets it.
fn holding(limits: Limits) -> (Server, mpsc::Receiver<trunkline::Responder>) {
    let (sender, held) = mpsc::channel();
    let server = Server::builder()
        .limits(limits)
        .on_call(ECHO, |_, body| body.to_vec())
        .on_call(HOLD, move |cx, _| {
            let (responder, deferred) = cx.defer();
            sender.send(responder).unwrap();
            deferred
        })
        .bind("127.0.0.1:0")
        .unwrap();
    (server, held)
}

fn start(session: &trunkline::Session, calls: usize) -> Vec<Pending> {
    let request = |_| session.request(HOLD).start(b"").unwrap();
    (0..calls).map(request).collect()
}

fn release(held: &mpsc::Receiver<trunkline::Responder>, calls: Vec<Pending>) {
    for _ in 0..calls.len() {
        held.recv_timeout(LIMIT).unwrap().reply(b"");
    }
    for call in calls {
        call.wait().unwrap();
    }
}

#[test]
fn a_queue_fills_while_its_peer_does_not_read_and_the_peak_stays() {
    within(Duration::from_secs(30), || {
        let (client, mut peer) = unread(small_queue());
        assert_eq!(client.stats().queue_fill(), 0.0);
        let queued = fill(&client, 1_000);
        let full = client.stats();
        assert!(full.queue_fill() > 0.9 && full.queue_fill() <= 1.0);
        assert!((90_000..=100_000).contains(&full.queued_bytes_peak));
        assert!(full.queued_bytes_peak >= full.queued_bytes);
        // What is refused is counted, whether it waited or not.
        assert!(client.try_push(NOTE, [0; 50_000]).is_err());
        assert!(client.push_timeout(NOTE, [0; 50_000], millis(1)).is_err());
        let refused = client.request(NOTE).timeout(millis(1)).call([0; 50_000]);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(client.stats().queue_full, full.queue_full + 3);
        for _ in 0..queued {
            peer.next().unwrap();
        }
        assert!(eventually(LIMIT, || client.stats().queue_fill() == 0.0));
        let empty = client.stats();
        assert_eq!(empty.queued_bytes, 0);
        assert_eq!(empty.queued_bytes_peak, full.queued_bytes_peak);
    });
}

/// Nor do they take answers back: a counter that goes backwards has begun anew to whoever reads
/// it.
#[test]
fn calls_that_come_during_a_snapshot_are_no_answers() {
    within(Duration::from_secs(30), || {
        const ANSWERED: u64 = 500;
        const HELD: usize = 5_000;
        let (server, held) = holding(Limits::default());
        let client = Client::connect(server.local_address()).unwrap();
        let session = server_session(&server, client.id());
        for _ in 0..ANSWERED {
            client.call(ECHO, b"").unwrap();
        }
        let calls = thread::scope(|scope| {
            let calls = scope.spawn(|| start(&client.session(), HELD));
            while !calls.is_finished() {
                assert_eq!(session.stats().calls_answered, ANSWERED);
            }
            calls.join().unwrap()
        });
        release(&held, calls);
        let all = ANSWERED + HELD as u64;
        assert!(eventually(LIMIT, || session.stats().calls_answered == all));
    });
}

#[test]
fn messages_fill_a_queue_as_bytes_do() {
    within(Duration::from_secs(30), || {
        let mut limits = Limits::default();
        limits.queued_messages = 50;
        let (client, _peer) = unread(limits);
        fill(&client, 10_000);
        let stats = client.stats();
        assert!(stats.queue_fill() > 0.9 && stats.queue_fill() <= 1.0);
        client.abort();
    });
}

#[test]
fn of_a_server_the_fullest_queue_counts_and_what_a_broadcast_could_not_place() {
    within(Duration::from_secs(30), || {
        let mut limits = Limits::default();
        limits.queued_bytes = 10_000;
        let (server, _held) = holding(limits);
        let _idle = Client::connect(server.local_address()).unwrap();
        let deaf = RawPeer::dial(server.local_address());
        let deaf = server_session(&server, deaf.session);
        // Until it is refused, and what waits for it stays.
        while deaf.stats().queue_full == 0
            || eventually(millis(500), || deaf.stats().queue_fill() < 0.8)
        {
            let sent = server.hub().broadcast(NOTE, [0; 9_000]).unwrap();
            assert_eq!(sent.queued + sent.full, 2);
        }
        assert!(server.stats().queue_full >= deaf.stats().queue_full);
        assert!(server.stats().queue_fill() > 0.8);
        let all = server.stats();
        assert!(all.queued_bytes_peak >= deaf.stats().queued_bytes);
        assert!(all.queued_bytes_peak <= 10_000);
        deaf.abort();
        assert!(eventually(LIMIT, || server.stats().queue_fill() == 0.0));
        assert!(server.stats().queued_bytes_peak >= 9_000);
    });
}

#[test]
fn the_peaks_of_calls_and_sessions_stay() {
    within(LIMIT, || {
        let (server, held) = holding(Limits::default());
        let connect = |_| Client::connect(server.local_address()).unwrap();
        let clients: Vec<Client> = (0..3).map(connect).collect();
        let calls = start(&clients[0].session(), 5);
        assert_eq!(clients[0].stats().calls_in_flight, 5);
        release(&held, calls);
        release(&held, start(&clients[0].session(), 2));
        let stats = clients[0].stats();
        assert_eq!((stats.calls_in_flight, stats.calls_in_flight_peak), (0, 5));
        assert_eq!((stats.sessions, stats.sessions_peak), (1, 1));
        for client in clients {
            client.shutdown(LIMIT).unwrap();
        }
        assert!(eventually(LIMIT, || server.hub().is_empty()));
        let _late = Client::connect(server.local_address()).unwrap();
        let stats = server.stats();
        assert_eq!((stats.sessions, stats.sessions_peak), (1, 3));
        assert_eq!(stats.calls_in_flight_peak, 0, "it made no calls");
    });
}

#[test]
fn of_a_server_the_highest_peak_of_calls_counts() {
    within(LIMIT, || {
        let (server, _) = holding(Limits::default());
        let (sender, held) = mpsc::channel();
        let connect = |_| {
            let sender = sender.clone();
            Client::builder()
                .on_call(HOLD, move |cx, _| {
                    let (responder, deferred) = cx.defer();
                    sender.send(responder).unwrap();
                    deferred
                })
                .connect(server.local_address())
                .unwrap()
        };
        let clients: Vec<Client> = (0..2).map(connect).collect();
        for (client, calls) in clients.iter().zip([4, 2]) {
            release(&held, start(&server_session(&server, client.id()), calls));
        }
        assert_eq!(server.stats().calls_in_flight_peak, 4);
    });
}

#[test]
fn calls_that_find_no_place_are_counted_at_both_ends() {
    within(LIMIT, || {
        let mut limits = Limits::default();
        limits.incoming_calls = 2;
        let (server, held) = holding(limits);
        let client = Client::connect(server.local_address()).unwrap();
        let calls = start(&client.session(), 2);
        let error = client.request(ECHO).timeout(millis(1)).call(b"");
        assert_eq!(error.unwrap_err().kind(), ErrorKind::TooManyInFlight);
        assert_eq!(client.stats().calls_refused, 1);
        release(&held, calls);
        // One who does not keep to the limit.
        let mut peer = RawPeer::dial(server.local_address());
        for sequence in 1..=3 {
            peer.call(HOLD, sequence, b"");
        }
        let reply = peer.next().unwrap();
        assert_eq!(reply.status.unwrap().code(), Status::OVERLOADED);
        let stats = server.stats();
        assert_eq!((stats.calls_overloaded, stats.calls_refused), (1, 0));
    });
}
