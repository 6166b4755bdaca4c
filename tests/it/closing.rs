//! Closing: what was accepted arrives and is confirmed, and the counts say what did not.

mod edges;
mod events;
mod leaving;
mod server;

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{
    Client, CloseReason, CloseReport, Error, ErrorKind, Limits, Responder, Server, Session, Status,
};

use crate::support::{LIMIT, PROMPT, RawPeer, millis, within};

const SECOND: Duration = Duration::from_secs(1);

/// A server whose pushes of route 1 are counted.
fn counting_server() -> (Server, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let server = Server::builder()
        .on_push(1, move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
        })
        .on_call(2, |_, body| body.to_vec())
        .bind("127.0.0.1:0")
        .unwrap();
    (server, count)
}

#[track_caller]
fn assert_all_confirmed(report: &CloseReport, messages: u64) {
    assert_eq!(report.reason, CloseReason::Clean, "{report}");
    assert!(report.error.is_none(), "{report}");
    assert_eq!(report.not_written.messages, 0, "{report}");
    assert_eq!(report.unconfirmed.messages, 0, "{report}");
    assert_eq!(report.confirmed.messages, messages, "{report}");
}

#[test]
fn a_close_delivers_and_confirms_all_that_was_accepted() {
    within(Duration::from_secs(60), || {
        let (server, count) = counting_server();
        let body = [5; 1024];
        for round in 0..100 {
            count.store(0, Ordering::SeqCst);
            let client = Client::connect(server.local_address()).unwrap();
            for _ in 0..500 {
                client.push(1, body).unwrap();
            }
            let report = client.shutdown(2 * SECOND).unwrap();
            assert_eq!(count.load(Ordering::SeqCst), 500, "round {round}: {report}");
            assert_all_confirmed(&report, 500);
            assert_eq!(report.confirmed.bytes, 500 * (16 + 1024));
        }
    });
}

#[test]
fn a_side_that_closes_with_unread_input_still_delivers_what_it_has_queued() {
    within(Duration::from_secs(20), || {
        let mut limits = Limits::server();
        limits.queued_bytes = 4 << 20;
        let (open, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let (entered, handling) = mpsc::channel();
        let server = Server::builder()
            .limits(limits)
            .on_push(1, move |cx, _| {
                entered.send(cx.session().clone()).unwrap();
                let _ = gate.lock().unwrap().recv();
            })
            .on_push(2, |_, _| ())
            .bind("127.0.0.1:0")
            .unwrap();
        let (sender, received) = mpsc::channel();
        let client = Client::builder()
            .on_push(3, move |_, body| sender.send(body.len()).unwrap())
            .connect(server.local_address())
            .unwrap();
        client.push(1, b"").unwrap();
        let session = handling.recv_timeout(LIMIT).unwrap();
        // The server's reader is in a handler: this stays unread.
        for _ in 0..64 {
            client.push(2, [0; 1024]).unwrap();
        }
        client.flush(LIMIT).unwrap();
        let body = vec![1; 32 << 10];
        for _ in 0..64 {
            session.push(3, &body).unwrap();
        }
        session.close();
        let mut bytes = 0;
        while bytes < 2 << 20 {
            bytes += received.recv_timeout(LIMIT).unwrap();
        }
        drop(open);
        let report = client.shutdown(2 * SECOND).unwrap();
        assert_all_confirmed(&report, 65);
        let report = session.shutdown(2 * SECOND).unwrap();
        assert_all_confirmed(&report, 64);
    });
}

#[test]
fn both_sides_may_close_at_once() {
    within(Duration::from_secs(30), || {
        for _ in 0..50 {
            let (sender, sessions) = mpsc::channel();
            let from_client = Arc::new(AtomicUsize::new(0));
            let counted = from_client.clone();
            let server = Server::builder()
                .on_connected(move |session| sender.send(session.clone()).unwrap())
                .on_push(1, move |_, _| {
                    counted.fetch_add(1, Ordering::SeqCst);
                })
                .bind("127.0.0.1:0")
                .unwrap();
            let from_server = Arc::new(AtomicUsize::new(0));
            let counted = from_server.clone();
            let client = Client::builder()
                .on_push(1, move |_, _| {
                    counted.fetch_add(1, Ordering::SeqCst);
                })
                .connect(server.local_address())
                .unwrap();
            let session = sessions.recv_timeout(LIMIT).unwrap();
            let start = Arc::new(Barrier::new(2));
            let close = |session: Session| {
                let start = start.clone();
                thread::spawn(move || {
                    for _ in 0..100 {
                        session.push(1, [0; 100]).unwrap();
                    }
                    start.wait();
                    session.shutdown(2 * SECOND).unwrap()
                })
            };
            let ends = [close(client.session()), close(session)];
            for end in ends {
                assert_all_confirmed(&end.join().unwrap(), 100);
            }
            assert_eq!(from_client.load(Ordering::SeqCst), 100);
            assert_eq!(from_server.load(Ordering::SeqCst), 100);
        }
    });
}

#[test]
fn calls_in_flight_at_a_close_of_the_server_are_answered_or_told_that_it_goes() {
    within(Duration::from_secs(30), || {
        let mut refused = 0;
        for _ in 0..20 {
            let answered = Arc::new(AtomicUsize::new(0));
            let counted = answered.clone();
            let server = Server::builder()
                .on_call(1, move |cx, _| {
                    // The close begins in the middle.
                    if counted.fetch_add(1, Ordering::SeqCst) == 10 {
                        cx.session().close();
                    }
                })
                .bind("127.0.0.1:0")
                .unwrap();
            let client = Client::connect(server.local_address()).unwrap();
            let mut pending = Vec::new();
            let mut closed = false;
            for _ in 0..50 {
                match client.request(1).start(b"") {
                    Ok(call) => pending.push(call),
                    Err(error) => {
                        assert!(error.is_closed(), "{error:?}");
                        closed = true;
                    }
                }
            }
            let mut ok = 0;
            for call in pending {
                match call.wait() {
                    Ok(_) => ok += 1,
                    Err(error) => {
                        let status = error.status().map(Status::code);
                        assert_eq!(status, Some(Status::GOING_AWAY), "{error:?}");
                        refused += 1;
                    }
                }
            }
            assert_eq!(ok, 11, "those before the close, and the one that closes");
            assert_eq!(answered.load(Ordering::SeqCst), 11);
            let report = client.shutdown(2 * SECOND).unwrap();
            assert_eq!(report.reason, CloseReason::Clean, "{report}");
            assert_eq!(report.unconfirmed.messages, 0, "{report}");
            refused += usize::from(closed);
        }
        assert!(refused > 0);
    });
}

#[test]
fn calls_in_flight_at_a_close_of_their_own_side_are_answered() {
    within(Duration::from_secs(30), || {
        let (server, _) = counting_server();
        for _ in 0..50 {
            let client = Client::connect(server.local_address()).unwrap();
            let mut pending = Vec::new();
            for number in 0..20u32 {
                pending.push(client.request(2).start(number.to_le_bytes()).unwrap());
            }
            let report = client.shutdown(2 * SECOND).unwrap();
            assert_all_confirmed(&report, 20);
            for (number, call) in (0u32..).zip(pending) {
                assert_eq!(call.wait().unwrap().body(), number.to_le_bytes());
            }
        }
    });
}

#[test]
fn pushes_that_cross_a_close_are_delivered_and_confirmed() {
    within(Duration::from_secs(30), || {
        for _ in 0..50 {
            let count = Arc::new(AtomicUsize::new(0));
            let counted = count.clone();
            let (sender, sessions) = mpsc::channel();
            let server = Server::builder()
                .on_push(1, move |cx, _| {
                    if counted.fetch_add(1, Ordering::SeqCst) == 200 {
                        sender.send(cx.session().clone()).unwrap();
                    }
                })
                .bind("127.0.0.1:0")
                .unwrap();
            let client = Client::connect(server.local_address()).unwrap();
            let closer = thread::spawn(move || {
                let session = sessions.recv_timeout(LIMIT).unwrap();
                session.shutdown(2 * SECOND).unwrap()
            });
            let mut accepted = 0;
            let error: Error = loop {
                match client.push(1, [0; 64]) {
                    Ok(()) => accepted += 1,
                    Err(error) => break error,
                }
            };
            assert!(error.is_closed(), "{error:?}");
            assert_eq!(closer.join().unwrap().reason, CloseReason::Clean);
            let report = client.shutdown(2 * SECOND).unwrap();
            assert_eq!(count.load(Ordering::SeqCst), accepted);
            assert_all_confirmed(&report, accepted as u64);
        }
    });
}

#[test]
fn pushes_held_back_for_a_waiting_handler_are_confirmed_by_a_clean_close() {
    within(Duration::from_secs(20), || {
        for _ in 0..20 {
            let count = Arc::new(AtomicUsize::new(0));
            let counted = count.clone();
            let (entered, handling) = mpsc::channel();
            let server = Server::builder()
                .on_push(1, move |_, _| {
                    counted.fetch_add(1, Ordering::SeqCst);
                })
                .on_push(3, move |cx, _| {
                    entered.send(()).unwrap();
                    cx.session().call(4, b"").unwrap();
                })
                .bind("127.0.0.1:0")
                .unwrap();
            let (sender, responders) = mpsc::channel();
            let client = Client::builder()
                .on_call(4, move |cx, _| {
                    let (responder, deferred) = cx.defer();
                    sender.send(responder).unwrap();
                    deferred
                })
                .connect(server.local_address())
                .unwrap();
            client.push(3, b"").unwrap();
            handling.recv_timeout(LIMIT).unwrap();
            let responder: Responder = responders.recv_timeout(LIMIT).unwrap();
            for _ in 0..10 {
                client.push(1, b"held").unwrap();
            }
            client.close();
            responder.reply(b"");
            let report = client.shutdown(2 * SECOND).unwrap();
            assert_eq!(count.load(Ordering::SeqCst), 10);
            // The push that waits, ten that are held, and the reply.
            assert_all_confirmed(&report, 12);
        }
    });
}

/// A server that keeps the responders of its calls.
fn deferring_server() -> (Server, mpsc::Receiver<Responder>) {
    let (sender, responders) = mpsc::channel();
    let server = Server::builder()
        .on_call(1, move |cx, _| {
            let (responder, deferred) = cx.defer();
            sender.send(responder).unwrap();
            deferred
        })
        .bind("127.0.0.1:0")
        .unwrap();
    (server, responders)
}

#[test]
fn closing_waits_for_an_open_deferred_call() {
    within(Duration::from_secs(20), || {
        let (server, responders) = deferring_server();
        let client = Client::connect(server.local_address()).unwrap();
        let call = client.request(1).start(b"").unwrap();
        let responder = responders.recv_timeout(LIMIT).unwrap();
        let session = server.hub().session(client.id()).unwrap();
        let closer = thread::spawn(move || session.shutdown(5 * SECOND).unwrap());
        // The client learns of the close; the call is open, so the session is not over.
        while !client.is_closed() {
            thread::yield_now();
        }
        thread::sleep(millis(100));
        assert!(!closer.is_finished());
        responder.reply(b"late");
        assert_eq!(call.wait().unwrap().body(), b"late");
        assert_all_confirmed(&closer.join().unwrap(), 1);
    });
}

#[test]
fn closing_waits_for_a_deferred_call_no_longer_than_its_limit() {
    within(Duration::from_secs(20), || {
        let (server, responders) = deferring_server();
        let client = Client::connect(server.local_address()).unwrap();
        let call = client.request(1).start(b"").unwrap();
        let _responder = responders.recv_timeout(LIMIT).unwrap();
        let start = Instant::now();
        let report = client.shutdown(millis(300)).unwrap();
        let took = start.elapsed();
        assert!(took >= millis(300) && took < PROMPT, "{took:?}");
        assert_eq!(report.reason, CloseReason::Cut, "{report}");
        assert_eq!(report.error.unwrap().kind(), ErrorKind::Timeout);
        let error = call.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Disconnected);
        assert!(error.maybe_executed());
    });
}

#[test]
fn the_close_of_a_stalled_peer_ends_at_its_limit_and_the_counts_add_up() {
    within(Duration::from_secs(20), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || RawPeer::accept(&listener));
        let client = Client::connect(address).unwrap();
        let mut peer = accepting.join().unwrap();
        let body = vec![3; 10_000];
        let mut accepted = 0;
        while client.push_timeout(1, &body, millis(100)).is_ok() {
            accepted += 1;
        }
        let start = Instant::now();
        let report = client.shutdown(millis(500)).unwrap();
        let took = start.elapsed();
        assert!(took >= millis(500) && took < PROMPT, "{took:?}");
        assert_eq!(report.reason, CloseReason::Cut, "{report}");
        assert_eq!(report.error.as_ref().unwrap().kind(), ErrorKind::Timeout);
        assert_eq!(report.confirmed.messages, 0, "{report}");
        assert!(report.not_written.messages > 0, "{report}");
        assert!(report.unconfirmed.messages > 0, "{report}");
        let not_confirmed = report.not_written.messages + report.unconfirmed.messages;
        assert_eq!(not_confirmed, accepted, "{report}");
        let bytes = report.not_written.bytes + report.unconfirmed.bytes;
        assert_eq!(bytes, accepted * (16 + body.len() as u64), "{report}");
        let mut delivered = 0;
        while peer.next().is_some() {
            delivered += 1;
        }
        let lost = accepted - delivered;
        assert!(
            report.not_written.messages <= lost && lost <= not_confirmed,
            "{report}; {lost} are lost"
        );
    });
}

#[test]
fn a_close_has_its_own_limit_and_not_the_shorter_one_of_the_peer() {
    within(Duration::from_secs(20), || {
        let mut short = trunkline::Timeouts::default();
        short.close = millis(300);
        let (sender, responders) = mpsc::channel::<Responder>();
        let server = Server::builder()
            .on_call(1, move |cx, _| {
                let (responder, deferred) = cx.defer();
                sender.send(responder).unwrap();
                deferred
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .timeouts(short)
            .connect(server.local_address())
            .unwrap();
        let pending = client.request(1).start(b"").unwrap();
        let responder = responders.recv_timeout(LIMIT).unwrap();
        let closing = {
            let session = client.session();
            thread::spawn(move || session.shutdown(LIMIT).unwrap())
        };
        // The server says goodbye at once; the answer comes long after `timeouts.close`.
        assert!(responders.recv_timeout(SECOND).is_err());
        responder.reply(b"late");
        assert_eq!(pending.wait().unwrap().body(), b"late");
        let report = closing.join().unwrap();
        assert_eq!(report.reason, CloseReason::Clean, "{report}");
    });
}

#[test]
fn a_call_to_a_client_whose_last_handle_is_gone_ends_at_once() {
    within(Duration::from_secs(20), || {
        let (sender, responders) = mpsc::channel::<Responder>();
        let server = Server::builder().bind("127.0.0.1:0").unwrap();
        let client = Client::builder()
            .on_call(1, move |cx, _| {
                let (responder, deferred) = cx.defer();
                sender.send(responder).unwrap();
                deferred
            })
            .connect(server.local_address())
            .unwrap();
        let session = server.hub().session(client.id()).unwrap();
        let calling = thread::spawn(move || {
            let error = session.call(1, b"").unwrap_err();
            (error, Instant::now())
        });
        let responder = responders.recv_timeout(LIMIT).unwrap();
        let begun = Instant::now();
        drop(client);
        let (error, ended) = calling.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
        assert!(error.maybe_executed());
        assert!(ended - begun < PROMPT, "{:?}", ended - begun);
        drop(responder);
    });
}

/// A server that handles its pushes slowly, and a client that has sent it many.
fn slow_server(pushes: u32) -> (Server, Arc<AtomicUsize>, Client) {
    let handled = Arc::new(AtomicUsize::new(0));
    let counted = handled.clone();
    let server = Server::builder()
        .on_push(1, move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            thread::sleep(millis(10));
        })
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Client::connect(server.local_address()).unwrap();
    for _ in 0..pushes {
        client.push(1, b"slow").unwrap();
    }
    client.flush(LIMIT).unwrap();
    (server, handled, client)
}

#[test]
fn a_close_that_the_peer_cut_short_is_not_called_clean() {
    within(Duration::from_secs(20), || {
        let (server, _, client) = slow_server(200);
        server.shutdown(millis(300)).unwrap();
        let report = client.wait_closed(LIMIT).unwrap();
        assert_ne!(report.reason, CloseReason::Clean, "{report}");
        assert!(
            report.error.is_some() && report.unconfirmed.messages > 0,
            "{report}"
        );
    });
}

#[test]
fn what_this_side_has_cut_is_not_handled_any_more() {
    within(Duration::from_secs(20), || {
        let (server, handled, client) = slow_server(2_000);
        let session = server.hub().session(client.id()).unwrap();
        session.abort();
        let report = session.wait_closed(LIMIT).unwrap();
        let after = handled.load(Ordering::SeqCst);
        assert_eq!(report.received.messages as usize, after);
        assert!(after < 1_000, "{after}");
        assert!(server.hub().is_empty());

        let (server, handled, _client) = slow_server(2_000);
        server.shutdown(millis(100)).unwrap();
        let after = handled.load(Ordering::SeqCst);
        thread::sleep(millis(100));
        assert!(handled.load(Ordering::SeqCst) <= after + 1);
    });
}
