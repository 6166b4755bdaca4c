//! The first message: sent in the same instant as the connect, it is never lost.

use std::sync::mpsc;
use std::time::Duration;

use trunkline::{Client, CloseReason, Kind, Server};

use crate::support::{LIMIT, RawPeer, frame, opening, within};

const ROUNDS: u32 = 200;

#[test]
fn a_push_right_after_the_connect_arrives() {
    within(Duration::from_secs(30), || {
        let (sender, received) = mpsc::channel();
        let server = Server::builder()
            .on_push(1, move |_, body| sender.send(body.to_vec()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        for round in 0..ROUNDS {
            let client = Client::connect(server.local_address()).unwrap();
            client.push(1, round.to_le_bytes()).unwrap();
            assert_eq!(received.recv_timeout(LIMIT).unwrap(), round.to_le_bytes());
        }
    });
}

#[test]
fn a_client_that_is_connected_is_in_the_hub() {
    within(Duration::from_secs(30), || {
        let server = Server::builder().bind("127.0.0.1:0").unwrap();
        for round in 1..=ROUNDS {
            let (sender, received) = mpsc::channel();
            let client = Client::builder()
                .on_push(1, move |_, _| sender.send(()).unwrap())
                .connect(server.local_address())
                .unwrap();
            let sent = server.hub().broadcast(1, b"all").unwrap();
            assert_eq!((sent.queued, sent.full), (1, 0), "round {round}: {sent:?}");
            received.recv_timeout(LIMIT).unwrap();
            let session = server.hub().session(client.id()).unwrap();
            client.shutdown(LIMIT).unwrap();
            session.shutdown(LIMIT).unwrap();
        }
    });
}

#[test]
fn a_client_that_is_connected_ends_cleanly_when_the_server_stops() {
    within(Duration::from_secs(30), || {
        for round in 1..=ROUNDS {
            let server = Server::builder().bind("127.0.0.1:0").unwrap();
            let (sender, ends) = mpsc::channel();
            let client = Client::builder()
                .on_closed(move |_, report| sender.send(report.clone()).unwrap())
                .connect(server.local_address())
                .unwrap();
            let report = server.shutdown(LIMIT).unwrap();
            let ended = ends.recv_timeout(LIMIT).unwrap();
            assert_eq!(ended.reason, CloseReason::Clean, "round {round}: {ended}");
            assert_eq!((report.sessions, report.clean), (1, 1), "round {round}");
            assert!(client.is_closed());
        }
    });
}

#[test]
fn a_push_in_the_connected_event_of_the_server_arrives() {
    within(Duration::from_secs(30), || {
        let server = Server::builder()
            .on_connected(|session| session.push(1, session.id().0.to_le_bytes()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        for _ in 0..ROUNDS {
            let (sender, received) = mpsc::channel();
            let client = Client::builder()
                .on_push(1, move |_, body| sender.send(body.to_vec()).unwrap())
                .connect(server.local_address())
                .unwrap();
            let body = received.recv_timeout(LIMIT).unwrap();
            assert_eq!(body, client.id().0.to_le_bytes());
        }
    });
}

#[test]
fn a_push_in_the_same_write_as_the_hello_arrives() {
    within(Duration::from_secs(30), || {
        let (sender, received) = mpsc::channel();
        let connected = sender.clone();
        let server = Server::builder()
            .on_connected(move |_| connected.send(None).unwrap())
            .on_push(1, move |_, body| sender.send(Some(body.to_vec())).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        for round in 0..ROUNDS {
            let push = frame(Kind::Push, 1, 0, &round.to_le_bytes());
            let _peer = RawPeer::dial_with(server.local_address(), &[opening(), push].concat());
            assert_eq!(received.recv_timeout(LIMIT).unwrap(), None);
            let body = received.recv_timeout(LIMIT).unwrap();
            assert_eq!(body, Some(round.to_le_bytes().to_vec()));
        }
    });
}

#[test]
fn a_push_in_the_same_write_as_the_welcome_arrives() {
    within(Duration::from_secs(30), || {
        for round in 0..ROUNDS {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let accepting = std::thread::spawn(move || {
                let push = frame(Kind::Push, 1, 0, &round.to_le_bytes());
                RawPeer::accept_with(&listener, crate::support::raw_limits(), &push)
            });
            let (sender, received) = mpsc::channel();
            let client = Client::builder()
                .on_push(1, move |_, body| sender.send(body.to_vec()).unwrap())
                .connect(address)
                .unwrap();
            let _peer = accepting.join().unwrap();
            assert_eq!(received.recv_timeout(LIMIT).unwrap(), round.to_le_bytes());
            client.abort();
        }
    });
}

#[test]
fn a_call_right_after_the_connect_is_answered_in_both_directions() {
    within(Duration::from_secs(30), || {
        let (sender, answers) = mpsc::channel();
        let server = Server::builder()
            .on_connected(move |session| {
                sender
                    .send(session.request(1).start(b"up?").unwrap())
                    .unwrap();
            })
            .on_call(1, |_, body| body.to_vec())
            .bind("127.0.0.1:0")
            .unwrap();
        for _ in 0..ROUNDS {
            let client = Client::builder()
                .on_call(1, |_, body| body.to_vec())
                .connect(server.local_address())
                .unwrap();
            assert_eq!(client.call(1, b"down?").unwrap().body(), b"down?");
            let up = answers.recv_timeout(LIMIT).unwrap();
            assert_eq!(up.wait().unwrap().body(), b"up?");
        }
    });
}
