//! Consumers that wait for calls, and handlers that wait for messages.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use trunkline::{Client, ErrorKind, Inbox, Limits, Server, Session};

use super::{ASK, NOTE};
use crate::support::bodies::number;
use crate::support::{LIMIT, millis, server_session, within};

/// A server that answers, and a client with an inbox and this backlog, which consumes after so
/// many pushes are on their way: every reply comes behind them.
fn flooded(pushes: u32, backlog: u32, consume: impl FnOnce(&Client, Inbox)) {
    let server = Server::builder()
        .on_call(ASK, |_, body| body.to_vec())
        .bind("127.0.0.1:0")
        .unwrap();
    let mut limits = Limits::default();
    limits.backlog_messages = backlog;
    let client = Client::builder()
        .limits(limits)
        .inbox(4)
        .connect(server.local_address())
        .unwrap();
    let session = server_session(&server, client.id());
    for round in 0..pushes {
        session.push(NOTE, round.to_le_bytes()).unwrap();
    }
    consume(&client, client.inbox().unwrap());
}

#[test]
fn a_consumer_may_call_for_each_message_while_the_backlog_holds_the_rest() {
    within(Duration::from_secs(60), || {
        flooded(1_000, 2_000, |client, inbox| {
            for round in 0..1_000u32 {
                let message = inbox.recv().unwrap();
                assert_eq!(number(message.body()), round);
                let reply = client.call(ASK, message.body()).unwrap();
                assert_eq!(reply.body(), message.body());
            }
        });
    });
}

#[test]
fn a_consumer_whose_call_cannot_be_answered_goes_on_and_loses_nothing() {
    within(Duration::from_secs(60), || {
        flooded(5_000, 8, |client, inbox| {
            let mut refused = 0;
            for round in 0..5_000u32 {
                let message = inbox.recv().unwrap();
                assert_eq!(number(message.body()), round);
                if let Err(error) = client.call(ASK, message.body()) {
                    assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
                    refused += 1;
                }
            }
            assert!(refused > 0);
            // The flood is over.
            client.call(ASK, ()).unwrap();
        });
    });
}

#[test]
fn a_consumer_of_several_inboxes_is_known_at_each() {
    within(Duration::from_secs(60), || {
        flooded(1_000, 8, |client, inbox| {
            let source = Server::builder().inbox(4).bind("127.0.0.1:0").unwrap();
            let other = source.inbox().unwrap();
            assert_eq!(number(inbox.recv().unwrap().body()), 0);
            assert!(other.try_recv().unwrap().is_none());
            let error = client.call(ASK, ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
            for round in 1..1_000u32 {
                assert_eq!(number(inbox.recv().unwrap().body()), round);
            }
        });
    });
}

#[test]
fn another_thread_than_the_consumer_waits_as_long_as_it_takes() {
    within(Duration::from_secs(60), || {
        flooded(5_000, 8, |client, inbox| {
            let caller = client.clone();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for _ in 0..100 {
                        caller.call(ASK, ()).unwrap();
                    }
                });
                for round in 0..5_000u32 {
                    assert_eq!(number(inbox.recv().unwrap().body()), round);
                }
            });
        });
    });
}

#[test]
fn a_handler_that_waits_for_another_inbox_lets_its_own_session_be_read() {
    within(LIMIT, || {
        let source = Server::builder().bind("127.0.0.1:0").unwrap();
        let feed = Client::builder()
            .inbox(4)
            .connect(source.local_address())
            .unwrap();
        let inbox = feed.inbox().unwrap();
        let server = Server::builder()
            .on_call(ASK, move |_, _| inbox.recv().unwrap().into_body())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .on_call(NOTE, |_, _| "read")
            .connect(server.local_address())
            .unwrap();
        let pending = client.request(ASK).start(()).unwrap();
        let session = server_session(&server, client.id());
        while session.stats().received_messages == 0 {
            thread::yield_now();
        }
        // Its reply is read while the handler waits.
        assert_eq!(session.call(NOTE, ()).unwrap().body(), b"read");
        let feeding = server_session(&source, feed.id());
        feeding.push(NOTE, "fed").unwrap();
        assert_eq!(pending.wait().unwrap().body(), b"fed");
    });
}

#[test]
fn a_handler_does_not_wait_for_messages_that_wait_for_it() {
    within(LIMIT, || {
        static INBOX: Mutex<Option<Inbox>> = Mutex::new(None);
        let wait = |session: &Session| {
            let inbox = INBOX.lock().unwrap().clone().unwrap();
            assert_eq!(session.stats().calls_received, 1);
            assert!(inbox.recv_timeout(millis(20)).unwrap().is_none());
            inbox.recv().err().map(|error| error.kind())
        };
        let server = Server::builder()
            .inbox(4)
            .on_call(ASK, move |cx, _| format!("{:?}", wait(cx.session())))
            .bind("127.0.0.1:0")
            .unwrap();
        *INBOX.lock().unwrap() = Some(server.inbox().unwrap());
        let client = Client::connect(server.local_address()).unwrap();
        let answer: String = client.call_as(ASK, ()).unwrap();
        assert_eq!(answer, "Some(WouldDeadlock)");
        INBOX.lock().unwrap().take();
    });
}
