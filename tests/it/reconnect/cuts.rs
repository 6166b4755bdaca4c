//! Cut after cut: nothing comes twice, and what does not come is accounted for.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use trunkline::{Client, Hold};

use super::{ANY, echo, quick};
use crate::support::{LIMIT, eventually, server_session, tcp_address, within};

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
