//! Messages that are pulled out of an inbox instead of handled.

mod answers;
mod ends;
mod full;
mod nested;
mod waiting;

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use trunkline::{Client, CodecId, ErrorKind, Inbox, Kind, Limits, Route, Server, Session};

use crate::support::bodies::number;
use crate::support::{LIMIT, eventually, millis, server_session, within};

const NOTE: u32 = 1;
const ASK: u32 = 2;
const HANDLED: u32 = 3;

/// A server without handlers, a client with an inbox, and the server's session with it.
fn with_inbox(messages: usize, limits: Limits) -> (Server, Client, Session) {
    let server = Server::builder().bind("127.0.0.1:0").unwrap();
    let client = Client::builder()
        .limits(limits)
        .inbox(messages)
        .connect(server.local_address())
        .unwrap();
    let session = server_session(&server, client.id());
    (server, client, session)
}

/// The numbers in the bodies of so many messages.
fn numbers(inbox: &Inbox, count: u32) -> Vec<u32> {
    let next = |_| number(inbox.recv_timeout(LIMIT).unwrap().unwrap().body());
    (0..count).map(next).collect()
}

#[test]
fn messages_without_a_handler_come_out_of_the_inbox_in_order() {
    within(Duration::from_secs(30), || {
        let (_server, client, session) = with_inbox(1024, Limits::default());
        let inbox = client.inbox().unwrap();
        let mut pending = Vec::new();
        for round in 0..1_000u32 {
            match round % 10 {
                0 => pending.push(session.request(ASK).start(round.to_le_bytes()).unwrap()),
                _ => session.push(NOTE, round.to_le_bytes()).unwrap(),
            }
        }
        for round in 0..1_000u32 {
            let received = inbox.recv().unwrap();
            assert_eq!(number(received.body()), round);
            let kind = if round % 10 == 0 {
                Kind::Call
            } else {
                Kind::Push
            };
            assert_eq!(received.kind(), kind);
        }
        assert_eq!(client.stats().received_messages, 1_000);
        assert_eq!(client.stats().calls_received, 100);
    });
}

#[test]
fn a_received_message_says_what_a_handler_would_know() {
    within(LIMIT, || {
        let (_server, client, session) = with_inbox(10, Limits::default());
        let inbox = client.inbox().unwrap();
        session
            .request("/news")
            .meta("trace", "42")
            .push("rain")
            .unwrap();
        let push = inbox.recv().unwrap();
        assert_eq!(push.session(), &client.session());
        assert_eq!(push.kind(), Kind::Push);
        assert_eq!(push.route(), Route::Name("/news"));
        assert_eq!(push.sequence(), 0);
        assert_eq!(push.metadata().get("trace"), Some("42"));
        assert_eq!(push.codec(), CodecId::TEXT);
        assert_eq!(push.decode::<&str>().unwrap(), "rain");
        assert_eq!(push.time_left(), None);
        assert_eq!(push.wire_bytes() as u64, client.stats().received_bytes);
        assert_eq!(push.into_body(), b"rain");
        let request = session.request(ASK).timeout(millis(5_000));
        let _pending = request.start(()).unwrap();
        let call = inbox.recv().unwrap();
        assert_eq!(call.kind(), Kind::Call);
        assert_ne!(call.sequence(), 0);
        assert!(call.time_left().unwrap() <= millis(5_000));
    });
}

#[test]
fn a_route_with_a_handler_bypasses_the_inbox() {
    within(LIMIT, || {
        let server = Server::builder()
            .inbox(10)
            .on_call(HANDLED, |_, _| "handled")
            .on_push(HANDLED, |_, _| ())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        client.push(HANDLED, ()).unwrap();
        assert_eq!(client.call(HANDLED, ()).unwrap().body(), b"handled");
        assert!(server.inbox().unwrap().is_empty());
        client.push(NOTE, 7u32.to_le_bytes()).unwrap();
        assert_eq!(numbers(&server.inbox().unwrap(), 1), [7]);
    });
}

#[test]
fn an_inbox_beside_a_fallback_handler_is_a_mistake() {
    within(LIMIT, || {
        let mistakes = [
            Server::builder()
                .inbox(1)
                .on_other_pushes(|_, _| ())
                .bind("127.0.0.1:0")
                .err(),
            Server::builder()
                .on_other_calls(|_, _| ())
                .inbox(1)
                .bind("127.0.0.1:0")
                .err(),
            Server::builder().inbox(0).bind("127.0.0.1:0").err(),
            Client::builder()
                .inbox(1)
                .on_other_calls(|_, _| ())
                .connect("127.0.0.1:1")
                .err(),
        ];
        for mistake in mistakes {
            assert_eq!(mistake.unwrap().kind(), ErrorKind::InvalidInput);
        }
    });
}

#[test]
fn who_did_not_ask_for_an_inbox_has_none() {
    within(LIMIT, || {
        let server = Server::builder().bind("127.0.0.1:0").unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let errors = [server.inbox().unwrap_err(), client.inbox().unwrap_err()];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        client.push(NOTE, ()).unwrap();
        let session = server_session(&server, client.id());
        assert!(eventually(LIMIT, || session.stats().dropped_pushes == 1));
    });
}

#[test]
fn waiting_with_a_limit_ends_at_the_limit() {
    within(LIMIT, || {
        let (_server, client, session) = with_inbox(10, Limits::default());
        let inbox = client.inbox().unwrap();
        assert!(inbox.try_recv().unwrap().is_none());
        assert!(inbox.recv_timeout(Duration::ZERO).unwrap().is_none());
        assert!(inbox.recv_timeout(millis(20)).unwrap().is_none());
        session.push(NOTE, ()).unwrap();
        assert!(inbox.recv_timeout(Duration::MAX).unwrap().is_some());
        session.push(NOTE, ()).unwrap();
        assert!(eventually(LIMIT, || inbox.len() == 1));
        assert!(inbox.try_recv().unwrap().is_some());
        assert!(inbox.is_empty());
    });
}

#[test]
fn several_threads_share_an_inbox_and_each_message_goes_to_one() {
    within(Duration::from_secs(30), || {
        let (server, client, session) = with_inbox(64, Limits::default());
        let seen = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..4 {
                let (inbox, seen) = (client.inbox().unwrap(), &seen);
                scope.spawn(move || {
                    let mine: Vec<u32> = inbox.map(|message| number(message.body())).collect();
                    assert!(mine.is_sorted());
                    seen.lock().unwrap().extend(mine);
                });
            }
            for round in 0..2_000u32 {
                session.push(NOTE, round.to_le_bytes()).unwrap();
            }
            server.shutdown(LIMIT).unwrap();
        });
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, (0..2_000).collect::<Vec<u32>>());
    });
}

#[test]
fn a_server_has_one_inbox_for_all_sessions_and_knows_who_sent() {
    within(Duration::from_secs(30), || {
        let server = Server::builder().inbox(8).bind("127.0.0.1:0").unwrap();
        let connect = |_| Client::connect(server.local_address()).unwrap();
        let clients: Vec<Client> = (0..20).map(connect).collect();
        let inbox = server.inbox().unwrap();
        thread::scope(|scope| {
            for client in &clients {
                scope.spawn(move || {
                    for round in 0..50u32 {
                        client.push(NOTE, round.to_le_bytes()).unwrap();
                    }
                    let reply = client.call_as::<String>("/who", ()).unwrap();
                    assert_eq!(reply, client.id().to_string());
                });
            }
            let mut next = HashMap::new();
            for _ in 0..20 * 51 {
                let message = inbox.recv().unwrap();
                let id = message.session().id();
                let expected: &mut u32 = next.entry(id).or_default();
                if message.kind() == Kind::Call {
                    assert_eq!(*expected, 50);
                    message.reply(id.to_string()).unwrap();
                } else {
                    assert_eq!(number(message.body()), *expected);
                    *expected += 1;
                }
            }
            assert_eq!(next.len(), 20);
        });
        assert_eq!(server.stats().received_messages, 20 * 51);
    });
}
