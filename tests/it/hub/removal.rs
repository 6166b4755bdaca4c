//! Removal with a reason, which the peer sees and this side remembers.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use trunkline::protocol::{Decoded, Native, Protocol};
use trunkline::{
    Client, CloseReason, CloseReport, ErrorKind, Framing, Kind, Limits, Responder, Server,
    SessionId, Status, Timeouts,
};

use super::{NOTE, connected, server};
use crate::support::{LIMIT, RawPeer, counts_frame, eventually, millis, server_session, within};

fn reason() -> Status {
    Status::new(1001, "too many typing errors").with_cause("rule 7")
}

/// A server that reports the ends of its sessions.
fn reporting() -> (Server, mpsc::Receiver<CloseReport>) {
    let (sender, reports) = mpsc::channel();
    let server = Server::builder()
        .on_closed(move |_, report| sender.send(report.clone()).unwrap())
        .bind("127.0.0.1:0")
        .unwrap();
    (server, reports)
}

#[test]
fn a_peer_that_is_removed_learns_why_and_both_reports_say_who_said_it() {
    within(Duration::from_secs(30), || {
        let (server, reports) = reporting();
        let (sender, seen) = mpsc::channel();
        let client = Client::builder()
            .on_push(NOTE, |_, _| ())
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .connect(server.local_address())
            .unwrap();
        let session = server_session(&server, client.id());
        session.push(NOTE, b"before").unwrap();
        server.hub().remove(client.id(), reason()).unwrap();
        let at_peer = seen.recv_timeout(LIMIT).unwrap();
        assert_eq!(at_peer.reason, CloseReason::Clean);
        assert_eq!(at_peer.received.messages, 1);
        assert_eq!(
            (at_peer.farewell.as_ref(), &at_peer.dismissal),
            (Some(&reason()), &None)
        );
        assert!(
            at_peer.to_string().contains("too many typing errors"),
            "{at_peer}"
        );
        let own = reports.recv_timeout(LIMIT).unwrap();
        assert_eq!(
            (own.reason, own.confirmed.messages),
            (CloseReason::Clean, 1)
        );
        assert_eq!(
            (own.dismissal.as_ref(), &own.farewell),
            (Some(&reason()), &None)
        );
        assert!(own.to_string().contains("too many typing errors"), "{own}");

        // What is tried afterwards says it too.
        for error in [
            client.push(NOTE, b"x").unwrap_err(),
            client.call(NOTE, b"x").unwrap_err(),
        ] {
            assert!(error.is_closed());
            assert_eq!(error.status(), Some(&reason()));
            assert!(
                error.to_string().contains("too many typing errors"),
                "{error}"
            );
            // The reason is not the answer to somebody else's call.
            assert_eq!(Status::from(error).code(), Status::HANDLER_FAILED);
        }
        let error = session.push(NOTE, b"x").unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::Closed, None));
        assert!(
            format!("{error:#}").contains("too many typing errors"),
            "{error:#}"
        );
    });
}

#[test]
fn a_client_may_leave_with_a_reason_too() {
    within(Duration::from_secs(30), || {
        let (server, reports) = reporting();
        let (client, session) = connected(&server);
        client.close_with(reason());
        let at_server = reports.recv_timeout(LIMIT).unwrap();
        assert_eq!(at_server.farewell, Some(reason()));
        assert_eq!(client.wait_closed(LIMIT).unwrap().dismissal, Some(reason()));
        assert_eq!(
            session.push(NOTE, b"x").unwrap_err().status(),
            Some(&reason())
        );
        // A close without a reason says none.
        let (plain, _) = connected(&server);
        let report = plain.shutdown(LIMIT).unwrap();
        assert_eq!((report.farewell, report.dismissal), (None, None));
        let at_server = reports.recv_timeout(LIMIT).unwrap();
        assert_eq!((at_server.farewell, at_server.dismissal), (None, None));
    });
}

#[test]
fn a_call_that_the_removal_leaves_unanswered_names_the_reason() {
    within(Duration::from_secs(30), || {
        let (sender, held) = mpsc::channel::<Responder>();
        let sender = Mutex::new(sender);
        let mut timeouts = Timeouts::default();
        timeouts.close = millis(200);
        let server = Server::builder()
            .timeouts(timeouts)
            .on_call(1, move |cx, _| {
                let (responder, deferred) = cx.defer();
                sender.lock().unwrap().send(responder).unwrap();
                deferred
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let pending = client.request(1).start(b"?").unwrap();
        let responder = held.recv_timeout(LIMIT).unwrap();
        server.hub().remove(client.id(), reason()).unwrap();
        let error = pending.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Disconnected);
        assert_eq!(error.status(), Some(&reason()));
        assert!(error.maybe_executed());
        assert!(
            error.to_string().contains("too many typing errors"),
            "{error}"
        );
        drop(responder);
    });
}

#[test]
fn only_one_removal_of_a_session_has_its_reason_told() {
    within(Duration::from_secs(30), || {
        let server = server();
        let hub = server.hub();
        let error = hub.remove(SessionId(9), reason()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        let mut peer = RawPeer::dial(server.local_address());
        server_session(&server, peer.session);
        hub.remove(peer.session, reason()).unwrap();
        let other = Status::new(1002, "other");
        let error = hub.remove(peer.session, other.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        hub.session(peer.session).unwrap().close_with(other);
        let goodbye = peer.next().unwrap();
        assert_eq!(
            (goodbye.kind, goodbye.status),
            (Kind::Goodbye, Some(reason()))
        );
        peer.close(0, 0);
        assert!(eventually(LIMIT, || hub.is_empty()));
    });
}

#[test]
fn only_the_first_farewell_of_a_peer_counts_and_its_texts_are_cut() {
    within(Duration::from_secs(30), || {
        let (server, reports) = reporting();
        let mut peer = RawPeer::dial(server.local_address());
        let counts = [0; 16];
        for code in [1, 2] {
            let mut goodbye = trunkline::message::MessageRef::new(
                Kind::Goodbye,
                0.into(),
                0,
                trunkline::CodecId::BYTES,
                &counts,
            );
            let long = Status::new(code, "\u{20ac}".repeat(5_000));
            goodbye.status = Some(long.as_ref());
            let mut frame = Vec::new();
            Native.encode(&goodbye, &mut frame).unwrap();
            peer.send(&frame);
        }
        peer.send(&counts_frame(Kind::Pong, 0, 0));
        peer.stream.shutdown(std::net::Shutdown::Write).unwrap();
        let farewell = reports.recv_timeout(LIMIT).unwrap().farewell.unwrap();
        assert_eq!(farewell, Status::new(1, "\u{20ac}".repeat(512)));
    });
}

#[test]
fn a_long_reason_is_cut_and_a_peer_of_small_frames_gets_its_code() {
    within(Duration::from_secs(30), || {
        let server = server();
        let long = Status::new(7, "t".repeat(100_000)).with_cause("c".repeat(100_000));
        for (frame_bytes, expected) in [
            (
                10_000,
                Status::new(7, "t".repeat(512)).with_cause("c".repeat(512)),
            ),
            (64, Status::new(7, "")),
        ] {
            let mut limits = Limits::default();
            limits.frame_bytes = frame_bytes;
            let client = Client::builder()
                .limits(limits)
                .connect(server.local_address())
                .unwrap();
            let session = server_session(&server, client.id());
            session.close_with(long.clone());
            let report = client.wait_closed(LIMIT).unwrap();
            assert_eq!(
                (report.reason, report.farewell),
                (CloseReason::Clean, Some(expected))
            );
        }
    });
}

#[test]
fn a_protocol_without_a_goodbye_closes_without_telling_the_reason() {
    within(Duration::from_secs(30), || {
        let (sender, reports) = mpsc::channel();
        let server = Server::builder()
            .framing(Framing::LengthPrefixed)
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .framing(Framing::LengthPrefixed)
            .connect(server.local_address())
            .unwrap();
        assert!(eventually(LIMIT, || server.hub().len() == 1));
        let session = server.hub().random().unwrap();
        server.hub().remove(session.id(), reason()).unwrap();
        let report = client.wait_closed(LIMIT).unwrap();
        assert_eq!((report.reason, report.farewell), (CloseReason::Clean, None));
        let own = reports.recv_timeout(LIMIT).unwrap();
        assert_eq!(own.dismissal, Some(reason()));
    });
}

#[test]
fn a_goodbye_with_items_of_later_versions_is_understood() {
    let frame = [
        &[0x22, 0, 0, 0, 10, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
        // An item that need not be understood.
        &[0x7F, 3, 0, 1, 2, 3],
        &[0; 16],
    ]
    .concat();
    let Decoded::Message { message, size } = Native.decode(&frame, &Limits::default()).unwrap()
    else {
        panic!("it is not read");
    };
    assert_eq!(
        (message.kind, message.status, size),
        (Kind::Goodbye, None, frame.len())
    );
}
