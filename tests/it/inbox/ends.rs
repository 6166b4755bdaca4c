//! The end of an inbox, and what is in it then.

use std::net::TcpListener;
use std::thread;

use trunkline::{Client, ErrorKind, Inbox, Limits, Server, Session, Status};

use super::{ASK, NOTE, numbers, with_inbox};
use crate::support::asleep::asleep;
use crate::support::bodies::number;
use crate::support::{
    LIMIT, RawPeer, eventually, millis, server_session, tcp_address, thread_count, within,
};
use crate::threads::alone;

/// A thread that waits in the inbox while `end` ends it.
fn wakes(inbox: &Inbox, end: impl FnOnce()) {
    let inbox = inbox.clone();
    let waiting = asleep(move || inbox.recv().map(|message| message.into_body()));
    end();
    assert_eq!(
        waiting.join().unwrap().unwrap_err().kind(),
        ErrorKind::Closed
    );
}

#[test]
fn who_waits_at_a_client_returns_at_every_end_of_its_session() {
    within(LIMIT, || {
        let ends: [fn(&Client, &Session); 4] = [
            |client, _| client.close(),
            |client, _| client.abort(),
            |_, session| session.close(),
            |_, session| session.abort(),
        ];
        for end in ends {
            let (_server, client, session) = with_inbox(4, Limits::default());
            let inbox = client.inbox().unwrap();
            wakes(&inbox, || end(&client, &session));
            let later = [
                inbox.recv_timeout(millis(1)).unwrap_err(),
                inbox.try_recv().unwrap_err(),
            ];
            assert!(later.iter().all(|error| error.kind() == ErrorKind::Closed));
        }
    });
}

#[test]
fn who_waits_at_a_client_returns_when_the_peer_resets_or_the_client_is_dropped() {
    within(LIMIT, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peer = thread::spawn(move || RawPeer::accept(&listener));
        let client = Client::builder().inbox(4).connect(address).unwrap();
        let peer = peer.join().unwrap();
        wakes(&client.inbox().unwrap(), || peer.reset());

        let (_server, client, _session) = with_inbox(4, Limits::default());
        wakes(&client.inbox().unwrap(), || drop(client));
    });
}

#[test]
fn an_inbox_has_ended_when_a_shutdown_returns() {
    within(LIMIT, || {
        for _ in 0..100 {
            let server = Server::builder().inbox(4).bind("127.0.0.1:0").unwrap();
            let client = Client::builder().inbox(4);
            let client = client.connect(server.local_address()).unwrap();
            client.shutdown(LIMIT).unwrap();
            server.shutdown(LIMIT).unwrap();
            for inbox in [client.inbox().unwrap(), server.inbox().unwrap()] {
                assert_eq!(inbox.try_recv().unwrap_err().kind(), ErrorKind::Closed);
            }
        }
    });
}

#[test]
fn the_inbox_of_a_server_outlives_its_sessions_and_ends_with_the_last_after_the_server() {
    within(LIMIT, || {
        let ends: [fn(Server); 2] = [|server| drop(server.shutdown(LIMIT)), drop];
        for end in ends {
            let server = Server::builder().inbox(4).bind("127.0.0.1:0").unwrap();
            let inbox = server.inbox().unwrap();
            let client = Client::connect(server.local_address()).unwrap();
            client.shutdown(LIMIT).unwrap();
            assert!(eventually(LIMIT, || server.hub().is_empty()));
            assert!(inbox.recv_timeout(millis(20)).unwrap().is_none());
            let client = Client::connect(server.local_address()).unwrap();
            client.push(NOTE, 1u32.to_le_bytes()).unwrap();
            assert_eq!(numbers(&inbox, 1), [1]);
            wakes(&inbox, || end(server));
        }
    });
}

#[test]
fn what_is_in_the_inbox_at_the_end_can_be_received_and_not_be_answered() {
    within(LIMIT, || {
        let (server, client, session) = with_inbox(4, Limits::default());
        session.push(NOTE, 1u32.to_le_bytes()).unwrap();
        let _pending = session.request(ASK).start(2u32.to_le_bytes()).unwrap();
        let mut inbox = client.inbox().unwrap();
        assert!(eventually(LIMIT, || inbox.len() == 2));
        client.abort();
        drop((client, server));
        assert_eq!(number(inbox.next().unwrap().body()), 1);
        let call = inbox.next().unwrap();
        assert_eq!(number(call.body()), 2);
        assert_eq!(call.reply(()).unwrap_err().kind(), ErrorKind::Closed);
        assert!(inbox.next().is_none());
        assert!(inbox.next().is_none());
    });
}

#[test]
fn what_was_read_comes_out_of_a_full_inbox_after_the_line_is_cut() {
    within(LIMIT, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peer = thread::spawn(move || RawPeer::accept(&listener));
        let client = Client::builder().inbox(4).connect(address).unwrap();
        let mut peer = peer.join().unwrap();
        for round in 0..50u32 {
            peer.push(NOTE, &round.to_le_bytes());
        }
        drop(peer);
        client.wait_closed(LIMIT).unwrap();
        let all = client.inbox().unwrap().map(|push| number(push.body()));
        assert!(all.eq(0..50));
    });
}

#[test]
fn what_nobody_can_receive_any_more_is_dropped_and_holds_no_close_up() {
    within(LIMIT, || {
        let server = Server::builder().inbox(1).bind("127.0.0.1:0").unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let inbox = server.inbox().unwrap();
        let pending = client.request(ASK).start(()).unwrap();
        for _ in 0..10 {
            client.push(NOTE, ()).unwrap();
        }
        assert!(eventually(LIMIT, || inbox.len() == 2));
        drop((server, inbox));
        let error = pending.wait().unwrap_err();
        assert_eq!(error.status().unwrap().code(), Status::NO_REPLY);
        let report = client.wait_closed(LIMIT).unwrap();
        assert!(report.error.is_none(), "{report}");
        assert_eq!(report.confirmed.messages, 11);
    });
}

#[test]
fn a_call_in_the_inbox_of_a_client_that_is_dropped_is_answered() {
    within(LIMIT, || {
        let (_server, client, session) = with_inbox(4, Limits::default());
        let pending = session.request(ASK).start(()).unwrap();
        let inbox = client.inbox().unwrap();
        assert!(eventually(LIMIT, || inbox.len() == 1));
        drop((inbox, client));
        let error = pending.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Status, "{error}");
        assert_eq!(error.status().unwrap().code(), Status::NO_REPLY);
    });
}

#[test]
fn a_session_counts_until_what_it_left_in_the_inbox_is_received() {
    within(LIMIT, || {
        let mut limits = Limits::default();
        limits.sessions = 2;
        let server = Server::builder()
            .limits(limits)
            .inbox(1)
            .bind("127.0.0.1:0")
            .unwrap();
        let inbox = server.inbox().unwrap();
        for round in 0..2 {
            let mut peer = RawPeer::dial(tcp_address(&server));
            peer.call(ASK, 1, &[]);
            assert!(eventually(LIMIT, || inbox.len() == round + 1));
            peer.reset();
        }
        assert!(eventually(LIMIT, || server.hub().is_empty()));
        let refused = Client::connect(server.local_address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Overloaded, "{refused}");
        drop(inbox.recv().unwrap());
        let admitted = || Client::connect(server.local_address()).is_ok();
        assert!(eventually(LIMIT, admitted));
    });
}

const ABORT: &str = "inbox::ends::an_abort_while_a_push_waits_for_room_leaves_no_thread";

#[test]
fn an_abort_while_a_push_waits_for_room_leaves_no_thread() {
    alone(ABORT, 2 * LIMIT, || {
        let server = Server::builder().inbox(2).bind("127.0.0.1:0").unwrap();
        let inbox = server.inbox().unwrap();
        // What stays: the timer, and those of the server.
        let first = Client::connect(server.local_address()).unwrap();
        first.shutdown(LIMIT).unwrap();
        assert!(eventually(LIMIT, || server.hub().is_empty()));
        let settled = thread_count();
        let mut peers: Vec<RawPeer> = (0..5)
            .map(|_| RawPeer::dial(tcp_address(&server)))
            .collect();
        for peer in &mut peers {
            for round in 0..20u32 {
                peer.push(NOTE, &round.to_le_bytes());
            }
        }
        // Two are in the inbox, and one of each peer waits for room; what is held is not counted.
        assert!(eventually(LIMIT, || server.stats().received_messages == 7));
        thread::sleep(millis(50));
        assert_eq!(inbox.len(), 2);
        for peer in &peers {
            server_session(&server, peer.session).abort();
        }
        assert!(eventually(LIMIT, || server.hub().is_empty()));
        assert!(eventually(LIMIT, || thread_count() <= settled));
    });
}
