//! What is counted over all sessions of a client, and what a client has after it began anew.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use trunkline::{Client, ClientState, ErrorKind, Hold, SlowPeer, Status};

use super::{ANY, echo, quick};
use crate::support::{LIMIT, RawPeer, eventually, server_session, within};

#[test]
fn the_figures_of_a_client_have_the_last_steps_of_its_sessions() {
    within(LIMIT, || {
        let server = echo().bind(ANY).unwrap();
        let client = Client::builder()
            .on_closed(|_, _| panic!("this panic is meant"))
            .connect(server.local_address())
            .unwrap();
        client.call(1, "").unwrap();
        client.shutdown(LIMIT).unwrap();
        let stats = client.stats();
        assert_eq!((stats.panics, stats.calls_sent), (1, 1));
    });
}

#[test]
fn what_was_dropped_for_a_slow_peer_is_in_the_totals() {
    within(Duration::from_secs(30), || {
        let listener = std::net::TcpListener::bind(ANY).unwrap();
        let address = listener.local_addr().unwrap();
        let peer = std::thread::spawn(move || RawPeer::accept(&listener));
        let client = Client::builder()
            .slow_peer(SlowPeer::DropNewest)
            .connect(address)
            .unwrap();
        let _peer = peer.join().unwrap();
        let mut sent = 0;
        while client.stats().slow_peer_drops < 10 {
            client.push(7, [0; 10_000]).unwrap();
            sent += 1;
        }
        client.abort();
        client.wait_closed(LIMIT).unwrap();
        let totals = client.totals();
        assert_eq!(totals.dropped.messages, 10);
        let known = totals.not_written.messages + totals.unconfirmed.messages;
        assert_eq!(known + totals.dropped.messages, sent, "{totals}");
    });
}

#[test]
fn a_client_that_begins_anew_has_its_new_inbox_at_once() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let client = Client::builder()
            .inbox(10)
            .reconnect(quick())
            .connect(server.local_address())
            .unwrap();
        let session = server_session(&server, client.id());
        session.close_with(Status::new(1000, "enough"));
        assert!(eventually(LIMIT, || client.state() == ClientState::Stopped));
        let ended = client.inbox().unwrap();
        assert!(ended.recv().unwrap_err().is_closed());
        client.reconnect_now().unwrap();
        let inbox = client.inbox().unwrap();
        client.wait_connected(LIMIT).unwrap();
        server_session(&server, client.id()).push(9, "new").unwrap();
        let received = inbox.recv_timeout(LIMIT).unwrap().unwrap();
        assert_eq!(received.body(), b"new");
        client.shutdown(LIMIT).unwrap();
        assert!(inbox.recv().unwrap_err().is_closed());
    });
}

#[test]
fn a_client_that_is_closed_says_so_at_once_and_has_dropped_what_it_held() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let (entering, entered) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let client = Client::builder()
            .reconnect(quick())
            .hold(Hold::default())
            .on_login(move |_| {
                entering.send(()).unwrap();
                let _ = released.lock().unwrap().recv_timeout(LIMIT);
                Ok(())
            })
            .connect_later(server.local_address())
            .unwrap();
        entered.recv_timeout(LIMIT).unwrap();
        client.push(2, "held").unwrap();
        client.close();
        let dropped = client.totals().dropped;
        assert_eq!((dropped.messages, client.held().messages), (1, 0));
        assert_eq!(client.push(2, "").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(client.call(1, "").unwrap_err().kind(), ErrorKind::Closed);
        let error = client.wait_connected(LIMIT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        release.send(()).unwrap();
        client.wait_closed(LIMIT).unwrap();
        assert_eq!(client.totals().dropped, dropped);
    });
}

#[test]
fn a_login_that_ends_its_session_is_no_login() {
    within(LIMIT, || {
        let server = echo().bind(ANY).unwrap();
        for abort in [true, false] {
            let error = Client::builder()
                .on_login(move |session| {
                    match abort {
                        true => session.abort(),
                        false => session.close(),
                    }
                    Ok(())
                })
                .connect(server.local_address())
                .unwrap_err();
            assert!(error.is_closed(), "{error:?}");
        }
    });
}
