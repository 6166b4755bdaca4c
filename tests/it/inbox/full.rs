//! A full inbox: its bounds, who waits, and that nothing is lost.

use std::thread;
use std::time::Duration;

use trunkline::{CloseReason, ErrorKind, Inbox, Limits, Session};

use super::{NOTE, numbers, with_inbox};
use crate::support::bodies::number;
use crate::support::{LIMIT, eventually, millis, within};

#[test]
fn ten_thousand_messages_pass_a_small_inbox_and_a_slow_consumer() {
    within(Duration::from_secs(60), || {
        let (_server, client, session) = with_inbox(16, Limits::default());
        let inbox = client.inbox().unwrap();
        let sender = thread::spawn(move || {
            for round in 0..10_000u32 {
                session.push(NOTE, round.to_le_bytes()).unwrap();
            }
        });
        for round in 0..10_000 {
            if round % 500 == 0 {
                thread::sleep(millis(5));
            }
            assert!(inbox.len() <= 16);
            assert_eq!(number(inbox.recv().unwrap().body()), round);
        }
        sender.join().unwrap();
        assert_eq!(client.stats().received_messages, 10_000);
    });
}

/// Pushes until the sender has to wait; how many were sent.
fn fill(session: &Session, size: usize) -> u32 {
    for round in 0..u32::MAX {
        let mut body = vec![0; size];
        body[..4].copy_from_slice(&round.to_le_bytes());
        if let Err(refused) = session.push_timeout(NOTE, body, millis(300)) {
            assert_eq!(refused.error().kind(), ErrorKind::Timeout);
            return round;
        }
    }
    unreachable!("the bound is far below");
}

fn in_order(inbox: &Inbox, count: u32) -> bool {
    numbers(inbox, count).into_iter().eq(0..count)
}

#[test]
fn pushes_wait_at_the_sender_once_the_inbox_is_full_by_messages() {
    within(Duration::from_secs(60), || {
        let mut limits = Limits::default();
        limits.backlog_bytes = 256 << 10;
        let (_server, client, session) = with_inbox(10, limits);
        let inbox = client.inbox().unwrap();
        let sent = fill(&session, 16 << 10);
        assert_eq!(inbox.len(), 10);
        // Inbox, backlog, the sender's queue, and what the system holds for a socket.
        assert!(u64::from(sent) * (16 << 10) < 24 << 20, "{sent} were sent");
        assert!(in_order(&inbox, sent));
        session.push(NOTE, sent.to_le_bytes()).unwrap();
        assert_eq!(numbers(&inbox, 1), [sent]);
    });
}

#[test]
fn pushes_wait_at_the_sender_once_the_inbox_is_full_by_bytes() {
    within(Duration::from_secs(60), || {
        let mut limits = Limits::default();
        limits.inbox_bytes = 100_000;
        limits.backlog_bytes = 256 << 10;
        let (_server, client, session) = with_inbox(1_000, limits);
        let inbox = client.inbox().unwrap();
        let sent = fill(&session, 16 << 10);
        assert_eq!(inbox.len(), 6);
        assert!(u64::from(sent) * (16 << 10) < 24 << 20, "{sent} were sent");
        assert!(in_order(&inbox, sent));
    });
}

#[test]
fn a_single_push_beyond_the_bytes_is_admitted_to_an_empty_inbox() {
    within(LIMIT, || {
        let mut limits = Limits::default();
        limits.inbox_bytes = 1_000;
        let (_server, client, session) = with_inbox(10, limits);
        let inbox = client.inbox().unwrap();
        for round in 0..3u32 {
            let body = [&round.to_le_bytes()[..], &[0; 5_000]].concat();
            session.push(NOTE, body).unwrap();
        }
        assert!(eventually(LIMIT, || inbox.len() == 1));
        assert_eq!(numbers(&inbox, 3), [0, 1, 2]);
    });
}

#[test]
fn replies_come_while_a_push_waits_for_room() {
    within(LIMIT, || {
        let (server, client, session) = with_inbox(1, Limits::default());
        for round in 0..100u32 {
            session.push(NOTE, round.to_le_bytes()).unwrap();
        }
        let inbox = client.inbox().unwrap();
        assert!(eventually(LIMIT, || inbox.len() == 1));
        // Nobody handles it, and this answer is a reply that came past the pushes.
        let error = client.call(NOTE, ()).unwrap_err();
        assert!(error.status().is_some());
        assert!(in_order(&inbox, 100));
        drop(server);
    });
}

#[test]
fn a_consumer_that_closes_its_own_session_gets_what_was_under_way() {
    within(LIMIT, || {
        let (_server, client, session) = with_inbox(4, Limits::default());
        for round in 0..200u32 {
            session.push(NOTE, round.to_le_bytes()).unwrap();
        }
        let inbox = client.inbox().unwrap();
        assert_eq!(numbers(&inbox, 2), [0, 1]);
        assert!(eventually(LIMIT, || client.stats().received_messages == 7));
        thread::sleep(millis(50));
        assert_eq!(inbox.len(), 4);
        let report = client.shutdown(LIMIT).unwrap();
        assert_eq!(report.reason, CloseReason::Clean);
        assert_eq!(report.received.messages, 200);
        let rest: Vec<u32> = inbox.map(|message| number(message.body())).collect();
        assert!(rest.into_iter().eq(2..200));
    });
}
