//! Cut after cut: nothing comes twice, and what does not come is accounted for.

use std::collections::HashSet;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, ClientBuilder, Hold, IntoBody, SocketOptions};

use super::{ANY, echo, quick, restart, slow};
use crate::support::{LIMIT, RawPeer, eventually, server_session, tcp_address, within};

/// Cuts the line over and over while several threads push.
fn cut(cuts: usize, holds: bool, at_server: bool) {
    let came: Arc<Mutex<Vec<u32>>> = Arc::default();
    let seen = came.clone();
    let server = echo()
        .on_push(7, move |_, body| {
            let number = u32::from_le_bytes(body.as_bytes().try_into().unwrap());
            seen.lock().unwrap().push(number);
        })
        .bind(ANY)
        .unwrap();
    let mut builder = Client::builder().reconnect(quick());
    if holds {
        builder = builder.hold(Hold::default());
    }
    let client = builder.connect(tcp_address(&server)).unwrap();
    let accepted = AtomicU32::new(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for author in 0..3_u32 {
            let (client, accepted, stop) = (&client, &accepted, &stop);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    let number: u32 = author << 24 | number;
                    match client.push(7, number.to_le_bytes()) {
                        Ok(()) => drop(accepted.fetch_add(1, Ordering::SeqCst)),
                        // Not sent: it may be sent again.
                        Err(error) => assert!(error.is_retryable(), "{error:?}"),
                    }
                    if number % 64 == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
        for _ in 0..cuts {
            let session = client.wait_connected(LIMIT).unwrap();
            match at_server {
                true => server_session(&server, session.id()).abort(),
                false => session.abort(),
            }
            assert!(eventually(LIMIT, || client.session() != session));
        }
        stop.store(true, Ordering::SeqCst);
    });
    client.wait_connected(LIMIT).unwrap();
    client.shutdown(LIMIT).unwrap();
    server.shutdown(LIMIT).unwrap();
    let came = came.lock().unwrap();
    let once: HashSet<u32> = came.iter().copied().collect();
    assert_eq!(once.len(), came.len(), "some came twice");
    let totals = client.totals();
    let (sent, came) = (u64::from(accepted.into_inner()), came.len() as u64);
    let known = totals.confirmed.messages + totals.not_written.messages + totals.dropped.messages;
    assert_eq!(known + totals.unconfirmed.messages, sent, "{totals}");
    let lost = sent - came;
    let least = totals.not_written.messages + totals.dropped.messages;
    assert!(
        least <= lost && lost <= least + totals.unconfirmed.messages,
        "{totals}"
    );
    assert_eq!(totals.sessions, cuts as u64 + 1);
}

#[test]
fn over_many_cuts_nothing_comes_twice_and_all_that_was_sent_is_accounted_for() {
    within(Duration::from_secs(120), || {
        cut(50, false, true);
        cut(50, false, false);
        cut(50, true, true);
        cut(50, true, false);
    });
}

/// The kernel takes little, so that most of what is pushed stays in the send queue.
fn small_buffer() -> ClientBuilder {
    let mut socket = SocketOptions::default();
    socket.send_buffer = Some(16 << 10);
    Client::builder().socket_options(socket)
}

/// Pushes until the kernel takes nothing more and the queue is full; how many went in.
fn fill<B: IntoBody>(client: &Client, body: impl Fn(u32) -> B) -> u32 {
    let mut sent = 0;
    while eventually(Duration::from_millis(300), || {
        client.try_push(7, body(sent)).is_ok()
    }) {
        sent += 1;
    }
    sent
}

#[test]
fn pushes_that_a_lost_session_never_wrote_are_held_and_come_first() {
    within(Duration::from_secs(60), || {
        let listener = TcpListener::bind(ANY).unwrap();
        let address = listener.local_addr().unwrap();
        let peer = thread::spawn(move || RawPeer::accept(&listener));
        let (sender, reports) = mpsc::channel();
        let mut hold = Hold::default();
        hold.bytes = 100_000;
        let client = small_buffer()
            .reconnect(slow())
            .hold(hold)
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .connect(address)
            .unwrap();
        let peer = peer.join().unwrap();
        let body = |number: u32| [number.to_le_bytes().to_vec(), vec![0; 50_000]].concat();
        let sent = fill(&client, body);
        assert!(sent > 20, "{sent}");
        peer.reset();
        let report = reports.recv_timeout(LIMIT).unwrap();
        assert_eq!(report.not_written.messages, 0, "{report}");
        assert!(report.held.messages > 10, "{report}");
        let (held, written) = (
            report.held.messages as u32,
            report.unconfirmed.messages as u32,
        );
        assert_eq!(held + written, sent, "{report}");
        // They pass the bounds, so nothing newer finds room.
        assert_eq!(client.held(), report.held);
        assert!(client.try_push(7, body(sent)).unwrap_err().is_full());

        let came: Arc<Mutex<Vec<u32>>> = Arc::default();
        let seen = came.clone();
        let noting = move || {
            let seen = seen.clone();
            echo().on_push(7, move |_, body| {
                let number = u32::from_le_bytes(body[..4].try_into().unwrap());
                seen.lock().unwrap().push(number);
            })
        };
        let server = restart(noting, address);
        client.reconnect_now().unwrap();
        client.wait_connected(LIMIT).unwrap();
        client.push(7, body(sent)).unwrap();
        client.shutdown(LIMIT).unwrap();
        assert!(came.lock().unwrap().iter().copied().eq(written..=sent));
        assert_eq!(client.totals().confirmed.messages, u64::from(held) + 1);
        drop(server);
    });
}

#[test]
fn a_client_that_closes_holds_nothing_for_later() {
    within(Duration::from_secs(30), || {
        let listener = TcpListener::bind(ANY).unwrap();
        let address = listener.local_addr().unwrap();
        let peer = thread::spawn(move || RawPeer::accept(&listener));
        let client = small_buffer()
            .reconnect(slow())
            .hold(Hold::default())
            .connect(address)
            .unwrap();
        let _peer = peer.join().unwrap();
        fill(&client, |_| [0; 50_000]);
        let report = client.shutdown(Duration::from_millis(50)).unwrap();
        assert!(report.not_written.messages > 0, "{report}");
        assert_eq!(report.held.messages, 0, "{report}");
        assert_eq!(client.totals().not_written, report.not_written);
    });
}
