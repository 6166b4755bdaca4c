//! The end of a client that reconnects, in each of its states, and waiting where that cannot be.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, ClientState, ErrorKind, Timeouts};

use super::{ANY, Changes, echo, nobody, quick, slow};
use crate::support::{
    LIMIT, PROMPT, RawPeer, eventually, millis, server_session, tcp_address, thread_count, within,
};
use crate::threads::alone;

/// A listener that sees every dial.
fn is_dialled_within(listener: &TcpListener, limit: Duration) -> bool {
    listener.set_nonblocking(true).unwrap();
    eventually(limit, || listener.accept().is_ok())
}

/// A client that waits for an hour, and the listener where its server was.
fn waiting() -> (Client, Changes, TcpListener) {
    let listener = TcpListener::bind(ANY).unwrap();
    let address = listener.local_addr().unwrap();
    let peer = thread::spawn(move || (RawPeer::accept(&listener), listener));
    let (builder, changes) = Changes::of(Client::builder().reconnect(slow()));
    let client = builder.connect(address).unwrap();
    let (peer, listener) = peer.join().unwrap();
    peer.reset();
    changes.until(ClientState::Waiting);
    (client, changes, listener)
}

#[test]
fn a_close_while_waiting_returns_promptly_and_nothing_is_dialled_afterwards() {
    within(Duration::from_secs(30), || {
        for how in 0..4 {
            let (client, changes, listener) = waiting();
            let start = Instant::now();
            match how {
                0 => client.close(),
                1 => client.abort(),
                2 => drop(client.shutdown(LIMIT).unwrap()),
                _ => drop(client),
            }
            assert!(changes.next(ClientState::Stopped).reason.is_none());
            assert!(
                changes.0.recv_timeout(LIMIT).is_err(),
                "the thread has ended"
            );
            assert!(start.elapsed() < PROMPT);
            assert!(!is_dialled_within(&listener, millis(300)));
        }
        let (client, changes, listener) = waiting();
        client.reconnect_now().unwrap();
        changes.next(ClientState::Connecting);
        assert!(is_dialled_within(&listener, LIMIT));
        client.close();
        let error = client.reconnect_now().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    });
}

#[test]
fn a_close_during_the_handshake_wakes_it() {
    within(Duration::from_secs(30), || {
        let listener = TcpListener::bind(ANY).unwrap();
        let mut timeouts = Timeouts::default();
        timeouts.handshake = Duration::MAX;
        let builder = Client::builder().timeouts(timeouts).reconnect(quick());
        let (builder, changes) = Changes::of(builder);
        let client = builder
            .connect_later(listener.local_addr().unwrap())
            .unwrap();
        let (_stream, _) = listener.accept().unwrap();
        client.close();
        changes.until(ClientState::Stopped);
        assert!(client.wait_closed(LIMIT).is_some());
        assert!(!is_dialled_within(&listener, millis(100)));
    });
}

#[test]
fn the_drop_of_a_client_ends_its_thread_in_each_state() {
    const TEST: &str = "reconnect::ends::the_drop_of_a_client_ends_its_thread_in_each_state";
    alone(TEST, Duration::from_secs(60), || {
        let server = echo().bind(ANY).unwrap();
        let address = tcp_address(&server);
        let (_kept, dead) = nobody();
        let silent = TcpListener::bind(ANY).unwrap();
        let idle = Client::connect(address).unwrap();
        let before = thread_count();
        let later = |address: SocketAddr| {
            let (builder, changes) = Changes::of(Client::builder().reconnect(slow()));
            (builder.connect_later(address).unwrap(), changes)
        };
        for round in 0..20 {
            // Connecting: in the handshake.
            let (client, changes) = later(silent.local_addr().unwrap());
            changes.next(ClientState::Connecting);
            let stream = silent.accept().unwrap();
            drop(client);
            assert!(eventually(LIMIT, || thread_count() <= before), "{round}");
            drop(stream);
            // Connected.
            let (client, changes) = later(address);
            changes.until(ClientState::Connected);
            drop(client);
            assert!(eventually(LIMIT, || thread_count() <= before), "{round}");
            // Waiting.
            let (client, changes) = later(dead);
            changes.until(ClientState::Waiting);
            drop(client);
            assert!(eventually(LIMIT, || thread_count() <= before), "{round}");
            // Stopped.
            let (builder, changes) = Changes::of(Client::builder().reconnect(slow()));
            let client = builder.connect_later("no address").unwrap();
            changes.until(ClientState::Stopped);
            drop(client);
            assert!(eventually(LIMIT, || thread_count() <= before), "{round}");
        }
        drop(idle);
    });
}

#[test]
fn a_handler_that_waits_for_the_next_session_gets_an_error_and_the_client_comes_back() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let slot: Arc<Mutex<Option<Client>>> = Arc::default();
        let (sender, results) = mpsc::channel();
        let (ready, go) = mpsc::channel::<()>();
        let go = Mutex::new(go);
        let own = slot.clone();
        let in_closed = (slot.clone(), sender.clone());
        let client = Client::builder()
            .reconnect(quick())
            .on_push(5, move |cx, _| {
                let client = own.lock().unwrap().clone().unwrap();
                // While there is a session there is nothing to wait for.
                sender.send(client.wait_connected(LIMIT).map(drop)).unwrap();
                go.lock().unwrap().recv().unwrap();
                cx.session().abort();
                sender.send(client.wait_connected(LIMIT).map(drop)).unwrap();
            })
            .on_closed(move |_, _| {
                let (slot, sender) = &in_closed;
                let client = slot.lock().unwrap().clone();
                if let Some(client) = client {
                    let _ = sender.send(client.wait_connected(LIMIT).map(drop));
                }
            })
            .connect(tcp_address(&server))
            .unwrap();
        *slot.lock().unwrap() = Some(client.clone());
        let first = client.session();
        server_session(&server, first.id()).push(5, "").unwrap();
        results.recv_timeout(LIMIT).unwrap().unwrap();
        ready.send(()).unwrap();
        for _ in 0..2 {
            let error = results.recv_timeout(LIMIT).unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldDeadlock);
        }
        assert!(eventually(LIMIT, || client.session() != first));
        client.wait_connected(LIMIT).unwrap();
        *slot.lock().unwrap() = None;
    });
}

#[test]
fn a_handler_of_another_session_may_wait_for_the_client() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let (builder, changes) = Changes::of(Client::builder().reconnect(slow()));
        let client = builder.connect(tcp_address(&server)).unwrap();
        server_session(&server, client.id()).abort();
        changes.until(ClientState::Waiting);
        let waits = client.clone();
        let other = echo()
            .on_call(7, move |_, _| {
                waits.wait_connected(LIMIT).unwrap();
            })
            .bind(ANY)
            .unwrap();
        let caller = Client::connect(tcp_address(&other)).unwrap();
        let pending = caller.request(7).start("").unwrap();
        // The session of that handler goes on meanwhile: a push behind it is read.
        caller.push(2, "").unwrap();
        client.reconnect_now().unwrap();
        pending.wait().unwrap();
    });
}
