//! Calls out of the inbox: answered, failed, dropped, answered later, refused.

use std::thread;
use std::time::Duration;

use trunkline::{Client, ErrorKind, Inbox, Limits, Server, Session, Status};

use super::{ASK, NOTE, with_inbox};
use crate::support::{LIMIT, RawPeer, eventually, server_session, tcp_address, within};

#[test]
fn calls_are_answered_failed_dropped_and_answered_later() {
    within(LIMIT, || {
        let (_server, client, session) = with_inbox(10, Limits::default());
        let start = || session.request(ASK).start("?").unwrap();
        let pending = [start(), start(), start(), start()];
        let inbox = client.inbox().unwrap();
        inbox.recv().unwrap().reply("here").unwrap();
        let status = Status::new(1_000, "not today");
        inbox.recv().unwrap().fail(status).unwrap();
        drop(inbox.recv().unwrap());
        let mut responder = inbox.recv().unwrap().into_responder().unwrap();
        thread::spawn(move || {
            responder.meta("late", "yes").unwrap();
            responder.reply("later");
        });
        let [here, failed, dropped, later] = pending.map(|pending| pending.wait());
        assert_eq!(here.unwrap().body(), b"here");
        let failed = failed.unwrap_err();
        assert_eq!(failed.status().unwrap().code(), 1_000);
        let dropped = dropped.unwrap_err();
        assert_eq!(dropped.status().unwrap().code(), Status::NO_REPLY);
        let later = later.unwrap();
        assert_eq!(later.body(), b"later");
        assert_eq!(later.metadata().get("late"), Some("yes"));
        assert!(eventually(LIMIT, || client.stats().calls_answered == 4));
    });
}

#[test]
fn a_push_is_not_answered() {
    within(LIMIT, || {
        let (_server, client, session) = with_inbox(10, Limits::default());
        for _ in 0..3 {
            session.push(NOTE, ()).unwrap();
        }
        let inbox = client.inbox().unwrap();
        let errors = [
            inbox.recv().unwrap().reply(()).unwrap_err(),
            inbox.recv().unwrap().fail(Status::new(1, "")).unwrap_err(),
            inbox.recv().unwrap().into_responder().unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    });
}

/// What came back for the call with this sequence: 0 for a reply without error.
fn outcome(peer: &mut RawPeer, sequence: u32) -> i32 {
    let reply = peer.next().unwrap();
    assert_eq!(reply.sequence, sequence);
    reply.status.map_or(0, |status| status.code())
}

#[test]
fn calls_beyond_the_byte_allowance_are_answered_overloaded() {
    within(LIMIT, || {
        let mut limits = Limits::default();
        limits.incoming_call_bytes = 1_000;
        let server = Server::builder()
            .limits(limits)
            .inbox(1)
            .bind("127.0.0.1:0")
            .unwrap();
        let inbox = server.inbox().unwrap();
        let mut peer = RawPeer::dial(tcp_address(&server));
        for sequence in 1..=5 {
            peer.call(ASK, sequence, &[0; 400]);
        }
        for sequence in 3..=5 {
            assert_eq!(outcome(&mut peer, sequence), Status::OVERLOADED);
        }
        assert_eq!(inbox.len(), 2);
        // Received and not answered counts all the same.
        let first = inbox.recv().unwrap();
        peer.call(ASK, 6, &[0; 400]);
        assert_eq!(outcome(&mut peer, 6), Status::OVERLOADED);
        first.reply(()).unwrap();
        assert_eq!(outcome(&mut peer, 1), 0);
        peer.call(ASK, 7, &[0; 400]);
        for sequence in [2, 7] {
            inbox.recv().unwrap().reply(()).unwrap();
            assert_eq!(outcome(&mut peer, sequence), 0);
        }
        // A single larger one is admitted alone.
        peer.call(ASK, 8, &[0; 5_000]);
        peer.call(ASK, 9, &[]);
        assert_eq!(outcome(&mut peer, 9), Status::OVERLOADED);
        inbox.recv().unwrap().reply(()).unwrap();
        assert_eq!(outcome(&mut peer, 8), 0);
    });
}

/// Answers calls until the inbox ends; how many.
fn answer_all(inbox: Inbox) -> usize {
    inbox
        .map(|call| {
            let body = call.body().to_vec();
            call.reply(body).unwrap();
        })
        .count()
}

fn flood(session: &Session, calls: u32) {
    let start = |round: u32| session.request(ASK).start([round as u8; 3_000]).unwrap();
    let pending: Vec<_> = (0..calls).map(start).collect();
    for (round, pending) in pending.into_iter().enumerate() {
        assert_eq!(pending.wait().unwrap().body(), [round as u8; 3_000]);
    }
}

#[test]
fn two_peers_with_inboxes_that_flood_each_other_with_calls_finish() {
    within(Duration::from_secs(60), || {
        let server = Server::builder().inbox(4).bind("127.0.0.1:0").unwrap();
        let client = Client::builder()
            .inbox(4)
            .connect(server.local_address())
            .unwrap();
        let session = server_session(&server, client.id());
        thread::scope(|scope| {
            let inboxes = [server.inbox().unwrap(), client.inbox().unwrap()];
            let answering = inboxes.map(|inbox| scope.spawn(|| answer_all(inbox)));
            let at_client = client.session();
            thread::scope(|scope| {
                for side in [&at_client, &session] {
                    scope.spawn(move || flood(side, 4_000));
                }
            });
            server.shutdown(LIMIT).unwrap();
            let answered = answering.map(|thread| thread.join().unwrap());
            assert_eq!(answered, [4_000, 4_000]);
        });
    });
}
