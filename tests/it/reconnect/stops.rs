//! What stops a client for good, and what does not.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use trunkline::protocol::native::handshake::PREFACE;
use trunkline::{Client, ClientState, Duplicate, ErrorKind, Server, Status};

use super::{ANY, Changes, echo, nobody, quick, restart};
use crate::support::{LIMIT, eventually, millis, opening, server_session, tcp_address, within};

/// Accepts connections and answers each with these bytes; how many there were.
fn answers(listener: TcpListener, answer: Vec<u8>) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut hello = vec![0; opening().len()];
            let _ = stream.read_exact(&mut hello);
            let _ = stream.write_all(&answer);
        }
    });
    count
}

#[test]
fn a_server_of_another_version_or_protocol_is_dialled_once() {
    within(Duration::from_secs(30), || {
        let mut versions = b"TRLK".to_vec();
        versions.extend([99, 120, 0, 0]);
        assert_eq!(versions.len(), PREFACE);
        for (answer, kind) in [
            (versions, ErrorKind::Version),
            (
                b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
                ErrorKind::WrongProtocol,
            ),
        ] {
            let listener = TcpListener::bind(ANY).unwrap();
            let address = listener.local_addr().unwrap();
            let dials = answers(listener, answer);
            let (builder, changes) = Changes::of(Client::builder().reconnect(quick()));
            let client = builder.connect_later(address).unwrap();
            changes.next(ClientState::Connecting);
            let stopped = changes.next(ClientState::Stopped);
            assert_eq!(stopped.reason.unwrap().kind(), kind);
            assert_eq!(client.state(), ClientState::Stopped);
            assert!(client.is_closed());
            let error = client.wait_connected(LIMIT).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed);
            assert!(!client.push(1, "").unwrap_err().is_retryable());
            assert_eq!(client.wait_closed(LIMIT).unwrap().session.0, 0);
            // Only who asks lets it try again, once.
            thread::sleep(millis(200));
            assert_eq!(dials.load(Ordering::SeqCst), 1);
            client.reconnect_now().unwrap();
            changes.next(ClientState::Connecting);
            changes.next(ClientState::Stopped);
            assert_eq!(dials.load(Ordering::SeqCst), 2);
            client.shutdown(LIMIT).unwrap();
            assert!(
                changes.0.recv_timeout(LIMIT).is_err(),
                "it has stopped already"
            );
        }
    });
}

#[test]
fn a_client_that_the_policy_refuses_dials_once_and_one_that_is_refused_for_now_goes_on() {
    within(Duration::from_secs(30), || {
        for (code, goes_on) in [(1000, false), (Status::GOING_AWAY, true)] {
            let dials = Arc::new(AtomicUsize::new(0));
            let counter = dials.clone();
            let server = echo()
                .on_accept(move |_| match counter.fetch_add(1, Ordering::SeqCst) {
                    0..3 => Err(Status::new(code, "not you")),
                    _ => Ok(()),
                })
                .bind(ANY)
                .unwrap();
            let (builder, changes) = Changes::of(Client::builder().reconnect(quick()));
            let client = builder.connect_later(tcp_address(&server)).unwrap();
            if goes_on {
                client.wait_connected(LIMIT).unwrap();
                assert_eq!(dials.load(Ordering::SeqCst), 4);
                continue;
            }
            let reason = changes.until(ClientState::Stopped).reason.unwrap();
            assert_eq!(reason.kind(), ErrorKind::Refused);
            assert_eq!(reason.status().unwrap().code(), 1000);
            thread::sleep(millis(200));
            assert_eq!(dials.load(Ordering::SeqCst), 1);
        }
    });
}

/// The server ends the session in some way: whether the client comes back.
fn comes_back(end: impl Fn(&Server, &Client)) -> bool {
    let server = echo().bind(ANY).unwrap();
    let (builder, changes) = Changes::of(Client::builder().reconnect(quick()));
    let client = builder.connect(tcp_address(&server)).unwrap();
    server_session(&server, client.id());
    changes.next(ClientState::Connected);
    end(&server, &client);
    let change = changes.0.recv_timeout(LIMIT).unwrap();
    if change.state == ClientState::Stopped {
        let reason = change.reason.unwrap();
        assert!(reason.status().is_some(), "{reason:?}");
        thread::sleep(millis(100));
        assert_eq!(client.totals().sessions, 1);
        return false;
    }
    changes.until(ClientState::Connected);
    true
}

#[test]
fn a_client_that_was_sent_away_stays_away_and_others_come_back() {
    within(Duration::from_secs(60), || {
        let with = |code| {
            move |server: &Server, client: &Client| {
                let session = server.hub().session(client.id()).unwrap();
                session.close_with(Status::new(code, "so it is"));
            }
        };
        assert!(!comes_back(with(1000)));
        assert!(!comes_back(with(Status::FORBIDDEN)));
        assert!(comes_back(with(Status::GOING_AWAY)));
        assert!(comes_back(with(Status::OVERLOADED)));
        assert!(comes_back(|server, client| {
            server.hub().session(client.id()).unwrap().close();
        }));
        assert!(comes_back(|server, client| {
            server.hub().session(client.id()).unwrap().abort();
        }));
        // Another client has taken its name: coming back would begin a fight.
        assert!(!comes_back(|server, client| {
            let hub = server.hub();
            let first = hub.session(client.id()).unwrap();
            hub.set_name(&first, "one", Duplicate::Refuse).unwrap();
            let other = Client::connect(tcp_address(server)).unwrap();
            let other = server_session(server, other.id());
            hub.set_name(&other, "one", Duplicate::Replace).unwrap();
        }));
    });
}

#[test]
fn the_attempts_and_the_time_are_limited() {
    within(Duration::from_secs(30), || {
        let (kept, address) = nobody();
        let mut backoff = quick();
        backoff.attempts = 3;
        let (builder, changes) = Changes::of(Client::builder().reconnect(backoff));
        let client = builder.connect_later(address).unwrap();
        let mut attempts = Vec::new();
        let stopped = loop {
            let change = changes.0.recv_timeout(LIMIT).unwrap();
            match change.state {
                ClientState::Connecting => attempts.push(change.attempt),
                ClientState::Stopped => break change,
                _ => {}
            }
        };
        // The first is that of `connect_later` itself.
        assert_eq!(attempts, [0, 1, 2, 3]);
        assert_eq!(stopped.reason.unwrap().kind(), ErrorKind::ConnectFailed);
        let error = client.push(1, "").unwrap_err();
        assert!(format!("{error:#}").contains("refused"), "{error:#}");
        drop(kept);
        let server = restart(echo, address);
        client.reconnect_now().unwrap();
        client.wait_connected(LIMIT).unwrap();
        drop((client, server));

        let (_kept, address) = nobody();
        let mut backoff = quick();
        backoff.total = millis(100);
        let (builder, changes) = Changes::of(Client::builder().reconnect(backoff));
        let _client = builder.connect_later(address).unwrap();
        changes.until(ClientState::Stopped);
    });
}

#[test]
fn a_panic_of_the_hook_changes_nothing() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let client = Client::builder()
            .reconnect(quick())
            .on_state(|_| panic!("a state"))
            .connect(tcp_address(&server))
            .unwrap();
        for _ in 0..3 {
            let session = client.wait_connected(LIMIT).unwrap();
            session.abort();
            assert!(eventually(LIMIT, || client.session() != session));
        }
    });
}
