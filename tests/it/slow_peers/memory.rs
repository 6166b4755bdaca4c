//! The caps on what peers make this process hold: of one session, and of a whole server.

use std::sync::mpsc;
use std::thread;

use trunkline::{
    Client, CloseReason, CloseReport, Error, ErrorKind, Kind, Limits, Server, ServerBuilder,
    Session, SlowPeer, Status,
};

use super::{ECHO, NOTE, builder, deaf, fill};
use crate::support::{LIMIT, RawPeer, eventually, frame, millis, within};

const STALLED: usize = 50;
const FRAME: u32 = 256 << 10;
const SESSION: u64 = 2 * FRAME as u64;
const TOTAL: u64 = 2 << 20;
/// What of a queue is not counted.
const UNCOUNTED: u64 = 16 << 10;

/// Caps that are reached long before the queues are full.
fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.frame_bytes, limits.body_bytes) = (FRAME, FRAME);
    limits.queued_bytes = 4 << 20;
    (limits.session_bytes, limits.total_bytes) = (SESSION, TOTAL);
    limits
}

/// Sessions whose peers do not read and that have used up what there is for all of them.
fn stall(server: &Server) -> Vec<(RawPeer, Session)> {
    let stalled: Vec<_> = (0..STALLED).map(|_| deaf(server)).collect();
    let mut full = 0;
    // Each gets what the system does not take; in the end none gets anything.
    while full < STALLED {
        full = 0;
        for (_, session) in &stalled {
            let mut pushed = 0;
            while let Ok(()) = session.try_push(NOTE, [1; 8_000]) {
                pushed += 1;
            }
            full += usize::from(pushed == 0);
        }
        let held = server.stats().held_bytes;
        assert!(held <= TOTAL, "{held}");
    }
    stalled
}

#[track_caller]
fn names(error: &Error, limit: &str) {
    let text = format!("{error:#}");
    assert!(text.contains(limit), "{text}");
}

fn closed_reports(builder: ServerBuilder) -> (Server, mpsc::Receiver<CloseReport>) {
    let (sender, reports) = mpsc::channel();
    let server = builder
        .on_closed(move |_, report| drop(sender.send(report.clone())))
        .bind("127.0.0.1:0")
        .unwrap();
    (server, reports)
}

#[test]
fn stalled_sessions_stop_at_the_cap_of_the_server_and_small_messages_go_on() {
    within(6 * LIMIT, || {
        let server = builder(limits())
            .on_call(3, |_, _| vec![1; 60_000])
            .bind("127.0.0.1:0")
            .unwrap();
        let stalled = stall(&server);
        let stats = server.stats();
        assert!(stats.held_bytes > TOTAL - (64 << 10), "{stats}");
        assert!(stats.queued_bytes <= TOTAL + STALLED as u64 * UNCOUNTED);
        // The first have as much as one session may have.
        let (_, session) = &stalled[STALLED - 1];
        let error = session.try_push(NOTE, [1; 60_000]).unwrap_err().into();
        names(&error, "limits.total_bytes is 2097152");
        let unsent = session.push_timeout(NOTE, [1; 60_000], millis(120));
        let error: Error = unsent.unwrap_err().into();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        names(&error, "limits.total_bytes is 2097152");

        let (sender, received) = mpsc::channel();
        let client = Client::builder()
            .on_push(NOTE, move |_, body| sender.send(body.len()).unwrap())
            .on_call(ECHO, |_, body| body.to_vec())
            .connect(server.local_address())
            .unwrap();
        let client = client.session();
        let idle = server.hub().session(client.id()).unwrap();
        for _ in 0..100 {
            idle.try_push(NOTE, [2; 10_000]).unwrap();
            assert_eq!(received.recv_timeout(LIMIT).unwrap(), 10_000);
            assert_eq!(client.call(ECHO, "to").unwrap().body(), b"to");
            assert_eq!(idle.call(ECHO, "fro").unwrap().body(), b"fro");
        }
        let refused = client.call(3, "").unwrap_err();
        assert_eq!(refused.status().unwrap().code(), Status::OVERLOADED);
        assert!(
            refused
                .status()
                .unwrap()
                .text()
                .contains("limits.total_bytes")
        );

        // Who waits for memory gets it when the others are gone.
        let waiting = {
            let idle = idle.clone();
            thread::spawn(move || idle.push(NOTE, [3; 60_000]))
        };
        assert!(eventually(LIMIT, || idle.try_push(NOTE, [0; 0]).is_err()));
        for (_, session) in &stalled {
            session.abort();
        }
        waiting.join().unwrap().unwrap();
        let large = || received.recv_timeout(LIMIT).unwrap() == 60_000;
        assert!(eventually(LIMIT, large));
        assert_eq!(client.call(3, "").unwrap().body().len(), 60_000);
        assert!(eventually(LIMIT, || server.stats().held_bytes == 0));
    });
}

#[test]
fn the_policy_for_slow_peers_holds_where_memory_is_short() {
    within(6 * LIMIT, || {
        let (server, reports) = closed_reports(builder(limits()));
        let stalled = stall(&server);
        let (_, dropping) = &stalled[STALLED - 1];
        dropping.set_slow_peer(SlowPeer::DropNewest);
        dropping.push(NOTE, [1; 60_000]).unwrap();
        assert_eq!(dropping.stats().slow_peer_drops, 1);
        let (_, ending) = &stalled[STALLED - 2];
        ending.set_slow_peer(SlowPeer::Disconnect);
        let error = ending.push(NOTE, [1; 60_000]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SlowPeer);
        names(&error, "limits.total_bytes is 2097152");
        let report = reports.recv_timeout(LIMIT).unwrap();
        assert_eq!(report.session, ending.id());
        assert_eq!(server.hub().len(), STALLED - 1);
    });
}

#[test]
fn a_large_message_for_which_there_is_no_memory_ends_its_session_alone() {
    within(6 * LIMIT, || {
        let (server, reports) = closed_reports(builder(limits()));
        let stalled = stall(&server);
        let (mut large, _) = deaf(&server);
        let push = frame(Kind::Push, NOTE, 0, &vec![5; 250_000]);
        large.send(&push[..200_000]);
        let report = reports.recv_timeout(LIMIT).unwrap();
        assert_eq!(report.session, large.session);
        assert_eq!(report.reason, CloseReason::Cut);
        let error = report.error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Overloaded);
        names(&error, "limits.total_bytes is 2097152");
        assert_eq!(server.hub().len(), STALLED);
        assert!(stalled.iter().all(|(_, session)| !session.is_closed()));
    });
}

#[test]
fn what_one_session_may_hold_is_shared_by_what_goes_and_what_comes() {
    within(6 * LIMIT, || {
        let (server, reports) = closed_reports(builder(limits()));
        let (mut peer, session) = deaf(&server);
        let (_, error) = fill(&session, 8_000);
        names(&error, "limits.session_bytes is 524288");
        assert!(session.stats().held_bytes <= SESSION);
        assert!(session.stats().queued_bytes <= SESSION + UNCOUNTED);
        // Others have their own.
        let client = Client::connect(server.local_address()).unwrap();
        let call = client.session().call(ECHO, [1; 200_000]);
        assert_eq!(call.unwrap().body().len(), 200_000);
        let push = frame(Kind::Push, NOTE, 0, &vec![5; 250_000]);
        peer.send(&push[..200_000]);
        let error = reports.recv_timeout(LIMIT).unwrap().error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Overloaded);
        names(&error, "limits.session_bytes is 524288");
        assert!(eventually(LIMIT, || server.stats().held_bytes == 0));
    });
}

#[test]
fn a_large_message_is_counted_while_it_is_there() {
    within(6 * LIMIT, || {
        let (sender, held) = mpsc::channel();
        let server = Server::builder()
            .on_push(NOTE, move |cx, _| {
                sender.send(cx.session().stats().held_bytes).unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        for _ in 0..10 {
            client.session().push(NOTE, vec![1; 1 << 20]).unwrap();
            let held = held.recv_timeout(LIMIT).unwrap();
            assert!((900_000..1_200_000).contains(&held), "{held}");
        }
        assert!(eventually(LIMIT, || server.stats().held_bytes == 0));
        let own = || client.session().stats().held_bytes;
        assert!(eventually(LIMIT, || own() == 0));
    });
}

#[test]
fn what_is_held_back_for_a_handler_that_waits_is_counted() {
    within(6 * LIMIT, || {
        let server = Server::builder()
            .on_push(NOTE, |_, _| ())
            .on_call(3, |cx, _| drop(cx.session().call(ECHO, "").unwrap()))
            .bind("127.0.0.1:0")
            .unwrap();
        let (mut peer, session) = deaf(&server);
        peer.call(3, 1, b"");
        let call = peer.next().unwrap();
        assert_eq!(call.kind, Kind::Call);
        for _ in 0..100 {
            peer.push(NOTE, &[4; 5_000]);
        }
        let held = || session.stats().held_bytes;
        assert!(eventually(LIMIT, || held() > 480_000), "{}", held());
        peer.send(&frame(Kind::Reply, 0, call.sequence, b""));
        assert_eq!(peer.next().unwrap().kind, Kind::Reply);
        assert!(eventually(LIMIT, || held() == 0), "{}", held());
    });
}

#[test]
fn caps_under_which_nothing_could_work_are_refused() {
    let refused = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        let error = Server::builder().limits(limits).start().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    let text = refused(|limits| limits.session_bytes = (32 << 20) - 1);
    let expected = "limits.session_bytes = 33554431 is below 33554432, twice limits.frame_bytes";
    assert_eq!(text, expected);
    let text = refused(|limits| limits.total_bytes = (64 << 20) - 1);
    let expected = "limits.total_bytes = 67108863 is below 67108864, limits.session_bytes";
    assert_eq!(text, expected);
}

#[test]
fn a_session_that_ends_inside_a_large_message_leaves_nothing_counted() {
    within(6 * LIMIT, || {
        let (server, reports) = closed_reports(builder(Limits::server()));
        let (mut peer, session) = deaf(&server);
        let push = frame(Kind::Push, NOTE, 0, &vec![5; 1 << 20]);
        peer.send(&push[..300_000]);
        assert!(eventually(LIMIT, || session.stats().held_bytes > 0));
        drop(peer);
        let report = reports.recv_timeout(LIMIT).unwrap();
        assert_eq!(report.reason, CloseReason::Truncated, "{report}");
        assert!(eventually(LIMIT, || server.hub().is_empty()));
        server.shutdown(LIMIT).unwrap();
        assert_eq!(server.stats().held_bytes, 0);
    });
}

#[test]
fn a_thread_that_rests_after_a_large_call_holds_nothing_of_it() {
    within(6 * LIMIT, || {
        let server = Server::builder()
            .on_call(NOTE, |cx, _| {
                cx.session().call(ECHO, ()).unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .on_call(ECHO, |_, _| ())
            .connect(server.local_address())
            .unwrap();
        client.call(NOTE, vec![1; 1 << 20]).unwrap();
        client.call(NOTE, ()).unwrap();
        assert!(eventually(LIMIT, || server.stats().held_bytes == 0));
    });
}
