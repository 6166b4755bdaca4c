//! `SlowPeer::DropNewest`: pushes that find no room are dropped, and counted to the last one.

use std::time::Instant;

use trunkline::{CloseReason, ErrorKind, Kind, SlowPeer};

use super::{ECHO, LARGE, NOTE, SMALL, builder, deaf, fill, limits, numbered};
use crate::support::bodies::number;
use crate::support::{LIMIT, PROMPT, frame, millis, within};

#[test]
fn what_was_accepted_comes_in_order_and_the_rest_is_counted() {
    const MOST: u32 = 200_000;
    within(6 * LIMIT, || {
        let server = builder(limits())
            .slow_peer(SlowPeer::DropNewest)
            .bind("127.0.0.1:0")
            .unwrap();
        let (mut peer, session) = deaf(&server);
        let (mut sent, mut bytes) = (0, 0);
        while session.stats().slow_peer_drops < 5_000 {
            assert!(sent < MOST, "the queue is never full");
            session.push(NOTE, numbered(sent, SMALL)).unwrap();
            sent += 1;
        }
        let dropped = session.stats().slow_peer_drops;
        let accepted = u64::from(sent) - dropped;
        let (mut next, mut last) = (0, None);
        for _ in 0..accepted {
            let note = peer.next().unwrap();
            let number = number(&note.body);
            assert!(number >= next && note.body == numbered(number, SMALL));
            next = number + 1;
            last = Some(number);
            bytes += frame(Kind::Push, NOTE, 0, &note.body).len() as u64;
        }
        assert!(last.is_some_and(|last| last < sent));
        // Nothing of it is left behind, and there is room again.
        session.push(NOTE, numbered(sent, SMALL)).unwrap();
        assert_eq!(number(&peer.next().unwrap().body), sent);
        let one = bytes / accepted;
        session.close();
        assert_eq!(peer.next().unwrap().kind, Kind::Goodbye);
        peer.close(accepted + 1, bytes + one);
        let report = session.wait_closed(LIMIT).unwrap();
        assert_eq!(report.reason, CloseReason::Clean, "{report}");
        assert_eq!(report.confirmed.messages, accepted + 1);
        assert_eq!(report.dropped.messages, dropped);
        assert_eq!(report.dropped.bytes, dropped * one);
        let text = format!("dropped {dropped} messages");
        assert!(report.to_string().contains(&text), "{report}");
        let stats = session.stats();
        assert_eq!((stats.slow_peer_drops, stats.queue_full), (dropped, 0));
    });
}

#[test]
fn only_pushes_that_would_wait_are_dropped_and_at_once() {
    within(6 * LIMIT, || {
        let server = builder(limits())
            .slow_peer(SlowPeer::DropNewest)
            .bind("127.0.0.1:0")
            .unwrap();
        let (_peer, session) = deaf(&server);
        fill(&session, SMALL);
        let begun = Instant::now();
        session.push_timeout(NOTE, vec![1; LARGE], LIMIT).unwrap();
        session.push(NOTE, vec![1; LARGE]).unwrap();
        assert!(begun.elapsed() < PROMPT);
        assert_eq!(session.stats().slow_peer_drops, 2);

        let full = session.stats().queue_full;
        let unsent = session.try_push(NOTE, vec![1; LARGE]).unwrap_err();
        assert_eq!(unsent.error().kind(), ErrorKind::QueueFull);
        assert_eq!(unsent.into_body(), vec![1; LARGE]);
        let sent = server.hub().broadcast(NOTE, vec![1; LARGE]).unwrap();
        assert_eq!((sent.queued, sent.full, sent.closed), (0, 1, 0));
        let call = session.request(ECHO).timeout(millis(50));
        assert!(call.call(vec![1; LARGE]).unwrap_err().is_timeout());
        assert_eq!(session.stats().queue_full, full + 3);
        assert_eq!(session.stats().slow_peer_drops, 2);
    });
}

#[test]
fn a_push_to_a_session_that_is_over_is_an_error_and_not_dropped() {
    within(6 * LIMIT, || {
        let server = builder(limits())
            .slow_peer(SlowPeer::DropNewest)
            .bind("127.0.0.1:0")
            .unwrap();
        let (_peer, session) = deaf(&server);
        fill(&session, SMALL);
        // Of all that is pushed while the session ends, what succeeds is accepted or dropped.
        let pusher = {
            let session = session.clone();
            std::thread::spawn(move || {
                let mut pushed = 0;
                while session.push(NOTE, vec![1; LARGE]).is_ok() {
                    pushed += 1;
                }
                pushed
            })
        };
        while session.stats().slow_peer_drops < 1_000 {
            std::thread::yield_now();
        }
        session.abort();
        let pushed: u64 = pusher.join().unwrap();
        let report = session.wait_closed(LIMIT).unwrap();
        assert_eq!(report.dropped.messages, pushed);
        assert_eq!(session.stats().slow_peer_drops, pushed);
    });
}
