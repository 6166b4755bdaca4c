//! Replies that come late, twice, or to nobody.

use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, ErrorKind, Kind, Limits, Server};

use super::ECHO;
use crate::support::bodies::number;
use crate::support::{LIMIT, RawPeer, eventually, frame, millis, within};

#[test]
fn time_limits_that_race_with_replies_never_mix_up_callers() {
    const CALLERS: u64 = 32;
    const ROUNDS: u64 = 3_125;
    within(Duration::from_secs(120), || {
        let (sender, held) = crossbeam::channel::unbounded();
        let server = Server::builder()
            .on_call(ECHO, move |cx, body| {
                let (responder, deferred) = cx.defer();
                sender
                    .send((Instant::now(), responder, body.to_vec()))
                    .unwrap();
                deferred
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        for _ in 0..2 {
            let held = held.clone();
            thread::spawn(move || {
                for (came, responder, body) in held {
                    // Longer than a caller polls before it looks at its limit.
                    while came.elapsed() < Duration::from_micros(100) {
                        thread::yield_now();
                    }
                    responder.reply(body);
                }
            });
        }
        let (replies, timeouts) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for caller in 0..CALLERS {
                let (client, replies, timeouts) = (&client, &replies, &timeouts);
                scope.spawn(move || {
                    // The limit finds the reply time by itself: about half of the calls fail.
                    let mut limit = 500_000.0_f64;
                    for round in 0..ROUNDS {
                        let nonce = (caller << 32 | round).to_le_bytes();
                        let time = Duration::from_nanos(limit as u64);
                        match client.request(ECHO).timeout(time).call(nonce) {
                            Ok(reply) => {
                                assert_eq!(reply.body(), nonce);
                                replies.fetch_add(1, Ordering::Relaxed);
                                limit = (limit * 0.95).max(1_000.0);
                            }
                            Err(error) => {
                                assert!(error.is_timeout(), "{error:?}");
                                timeouts.fetch_add(1, Ordering::Relaxed);
                                limit *= 1.05;
                            }
                        }
                    }
                });
            }
        });
        let (replies, timeouts) = (replies.into_inner(), timeouts.into_inner());
        println!("{replies} replies in time, {timeouts} time limits passed");
        assert!(replies > 10_000 && timeouts > 10_000);
        assert!(eventually(LIMIT, || client.stats().calls_in_flight == 0));
        let stats = client.stats();
        assert_eq!(stats.late_replies, timeouts as u64);
        assert_eq!(stats.calls_given_up, timeouts as u64);
        assert_eq!(stats.unknown_replies, 0);
        assert_eq!(client.call(ECHO, b"alive").unwrap().body(), b"alive");
    });
}

#[test]
fn late_replies_are_counted_and_the_connection_stays() {
    within(Duration::from_secs(60), || {
        let held = Arc::new(Mutex::new(HashMap::new()));
        let holds = held.clone();
        let server = Server::builder()
            .on_call(ECHO, |_, body| body.to_vec())
            .on_call("/late", move |cx, body| {
                let (responder, deferred) = cx.defer();
                let call = (cx.session().id(), responder);
                holds.lock().unwrap().insert(number(&body), call);
                deferred
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        thread::scope(|scope| {
            for thread in 0..10 {
                let (client, held) = (&client, &held);
                scope.spawn(move || {
                    for number in thread * 50..(thread + 1) * 50u32 {
                        let nonce = number.to_le_bytes();
                        let call = client.request("/late").timeout(millis(10));
                        assert!(call.call(nonce).unwrap_err().is_timeout());
                        let is_held = || held.lock().unwrap().contains_key(&number);
                        assert!(eventually(LIMIT, is_held));
                        let (id, responder) = held.lock().unwrap().remove(&number).unwrap();
                        assert_eq!(id, client.id());
                        responder.reply(b"late");
                        assert_eq!(client.call(ECHO, nonce).unwrap().body(), nonce);
                    }
                });
            }
        });
        assert!(eventually(LIMIT, || client.stats().late_replies == 500));
        assert_eq!(client.stats().calls_in_flight, 0);
        assert_eq!(server.hub().sessions().len(), 1);
        assert_eq!(server.hub().sessions()[0].id(), client.id());
    });
}

/// A client of a peer made by hand, with a small budget of stray replies.
fn raw_server(budget: u32) -> (Client, RawPeer, mpsc::Receiver<Option<trunkline::Error>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let accepting = thread::spawn(move || RawPeer::accept(&listener));
    let mut limits = Limits::default();
    limits.control_frames_per_second = budget;
    let (sender, closed) = mpsc::channel();
    let client = Client::builder()
        .limits(limits)
        .on_closed(move |_, report| sender.send(report.error.clone()).unwrap())
        .connect(address)
        .unwrap();
    (client, accepting.join().unwrap(), closed)
}

#[test]
fn a_second_reply_and_replies_to_nobody_are_dropped_and_counted() {
    within(Duration::from_secs(30), || {
        let (client, mut peer, _closed) = raw_server(1_000);
        let call = client.request(ECHO).start(b"?").unwrap();
        let sequence = peer.next().unwrap().sequence;
        let strangers = [0, 1, sequence ^ 0x8000_0000, sequence + 1, u32::MAX];
        for stranger in strangers {
            peer.send(&frame(Kind::Reply, 0, stranger, b"wrong"));
        }
        peer.send(&frame(Kind::Reply, 0, sequence, b"right"));
        peer.send(&frame(Kind::Reply, 0, sequence, b"twice"));
        assert_eq!(call.wait().unwrap().body(), b"right");
        let call = client.request(ECHO).start(b"?").unwrap();
        let second = peer.next().unwrap().sequence;
        assert_ne!(second, sequence);
        peer.send(&frame(Kind::Reply, 0, sequence, b"thrice"));
        peer.send(&frame(Kind::Reply, 0, second, b"second"));
        assert_eq!(call.wait().unwrap().body(), b"second");
        let stats = client.stats();
        assert_eq!(stats.unknown_replies, strangers.len() as u64 + 2);
        assert_eq!(stats.late_replies, 0);
        assert!(!client.is_closed());
    });
}

#[test]
fn a_peer_that_floods_with_stray_replies_is_cut_off() {
    within(Duration::from_secs(30), || {
        let (client, mut peer, closed) = raw_server(50);
        let call = client.request(ECHO).start(b"?").unwrap();
        let sequence = peer.next().unwrap().sequence;
        let stray = frame(Kind::Reply, 0, sequence + 1, b"wrong");
        peer.send(&stray.repeat(40));
        assert!(eventually(LIMIT, || client.stats().unknown_replies == 40));
        assert!(!client.is_closed());
        // In one piece, so in one second.
        peer.send(&stray.repeat(120));
        let error = closed.recv_timeout(LIMIT).unwrap().unwrap();
        assert_eq!(error.kind(), ErrorKind::ProtocolAbuse, "{error:?}");
        assert!(error.is_peer_fault());
        let error = call.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
        assert!(client.is_closed());
        assert!(peer.is_closed_within(LIMIT));
    });
}
