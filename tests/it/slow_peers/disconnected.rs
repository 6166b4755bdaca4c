//! `SlowPeer::Disconnect`: a push that finds no room ends the session, and no other.

use std::sync::mpsc::{self, Receiver};
use std::thread;

use trunkline::{
    Client, CloseReason, CloseReport, ErrorKind, Limits, Server, SlowPeer, SocketOptions,
};

use super::{ECHO, LARGE, NOTE, SMALL, builder, deaf, fill, limits, numbered};
use crate::support::bodies::number;
use crate::support::{LIMIT, eventually, millis, within};

fn server() -> (Server, Receiver<CloseReport>) {
    let (sender, reports) = mpsc::channel();
    let server = builder(limits())
        .slow_peer(SlowPeer::Disconnect)
        .on_closed(move |_, report| sender.send(report.clone()).unwrap())
        .bind("127.0.0.1:0")
        .unwrap();
    (server, reports)
}

/// A client that reads, and what it gets.
fn listening(server: &Server) -> (Client, Receiver<u32>) {
    let (sender, received) = mpsc::channel();
    let client = Client::builder()
        .on_push(NOTE, move |_, body| sender.send(number(&body)).unwrap())
        .connect(server.local_address())
        .unwrap();
    (client, received)
}

#[track_caller]
fn is_for_slowness(report: &CloseReport) {
    assert_eq!(report.reason, CloseReason::Cut, "{report}");
    let error = report.error.clone().unwrap();
    assert_eq!(error.kind(), ErrorKind::SlowPeer);
    let text = format!("{error:#}");
    for part in [
        "SlowPeer::Disconnect",
        "limits.queued_bytes is 100000",
        "limits.queued_messages 65536",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_push_without_room_ends_the_session_with_counts_and_reason() {
    within(6 * LIMIT, || {
        let (server, reports) = server();
        let (client, received) = listening(&server);
        let (_peer, session) = deaf(&server);
        let mut accepted = 0;
        let error = loop {
            match session.push(NOTE, numbered(accepted, SMALL)) {
                Ok(()) => accepted += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::SlowPeer);
        assert!(error.is_closed() && error.is_retryable() && !error.is_peer_fault());
        let report = reports.recv_timeout(LIMIT).unwrap();
        assert_eq!(report.session, session.id());
        is_for_slowness(&report);
        let written = report.unconfirmed.messages + report.confirmed.messages;
        assert_eq!(written + report.not_written.messages, u64::from(accepted));
        assert!(report.not_written.messages > 0);
        assert_eq!(report.dropped.messages, 0);

        let error = session.push(NOTE, "more").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Disconnected);
        assert!(format!("{error:#}").contains("SlowPeer::Disconnect"));
        let sent = server.hub().broadcast(NOTE, numbered(7, SMALL)).unwrap();
        assert_eq!(sent.queued, 1);
        assert_eq!(received.recv_timeout(LIMIT).unwrap(), 7);
        assert_eq!(
            client.session().call(ECHO, "still").unwrap().body(),
            b"still"
        );
        assert_eq!(server.stats().closed_cut, 1);
        assert!(reports.recv_timeout(millis(20)).is_err());
    });
}

#[test]
fn a_broadcast_ends_who_has_no_room_and_counts_it_as_full() {
    within(6 * LIMIT, || {
        let (server, reports) = server();
        let (_client, received) = listening(&server);
        let (_peer, session) = deaf(&server);
        fill(&session, SMALL);
        let sent = server.hub().broadcast(NOTE, numbered(8, LARGE)).unwrap();
        assert_eq!((sent.queued, sent.full, sent.closed), (1, 1, 0));
        is_for_slowness(&reports.recv_timeout(LIMIT).unwrap());
        assert!(eventually(LIMIT, || server.hub().len() == 1));
        let sent = server.hub().broadcast(NOTE, numbered(9, LARGE)).unwrap();
        assert_eq!((sent.queued, sent.full, sent.closed), (1, 0, 0));
        for number in [8, 9] {
            assert_eq!(received.recv_timeout(LIMIT).unwrap(), number);
        }
    });
}

#[test]
fn try_push_and_calls_end_no_session() {
    within(6 * LIMIT, || {
        let (server, reports) = server();
        let (_peer, session) = deaf(&server);
        fill(&session, SMALL);
        let unsent = session.try_push(NOTE, vec![1; LARGE]).unwrap_err();
        assert!(unsent.is_full());
        let call = session.request(ECHO).timeout(millis(50));
        assert!(call.call(vec![1; LARGE]).unwrap_err().is_timeout());
        assert!(reports.recv_timeout(millis(20)).is_err());
        assert!(!session.is_closed());
        // The calls that wait for room learn why there will be none.
        let waiting = {
            let session = session.clone();
            thread::spawn(move || session.call(ECHO, vec![1; LARGE]))
        };
        // Who comes behind one that waits finds no room, however small.
        assert!(eventually(LIMIT, || session
            .try_push(NOTE, [0; 0])
            .is_err()));
        session.push(NOTE, "small").unwrap_err();
        let error = waiting.join().unwrap().unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error:#}");
        is_for_slowness(&reports.recv_timeout(LIMIT).unwrap());
    });
}

#[test]
fn what_a_handler_only_gathered_is_no_fault_of_the_peer() {
    const COUNT: u32 = 100;
    within(6 * LIMIT, || {
        // The queue holds less than a handler gathers, and the system takes all of it.
        let mut options = SocketOptions::default();
        options.send_buffer = Some(1 << 20);
        let server = Server::builder()
            .limits(Limits::embedded())
            .socket_options(options)
            .slow_peer(SlowPeer::Disconnect)
            .on_call(ECHO, |cx, _| {
                for number in 0..COUNT {
                    cx.session().push(NOTE, numbered(number, SMALL)).unwrap();
                }
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let (client, received) = listening(&server);
        client.session().call(ECHO, "").unwrap();
        let received: Vec<u32> = received.try_iter().collect();
        assert_eq!(received, (0..COUNT).collect::<Vec<_>>());
    });
}
