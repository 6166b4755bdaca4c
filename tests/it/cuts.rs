//! Connections that are sliced, merged, delayed, stalled, cut and reset on the way, by a proxy
//! in this process.

pub(crate) mod ends;
mod random;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, CloseReason, ErrorKind, Kind, Server, Session};

use self::ends::{End, body, receiving};
use self::random::{Reasons, cut_at_random};
use crate::support::proxy::{Cut, End as Tear, Proxy, Rules};
use crate::support::{LIMIT, PROMPT, frame, is_emulated, millis, tcp_address, within};

#[test]
fn after_any_cut_the_counts_enclose_what_is_lost_and_nobody_waits() {
    const SEED: u64 = 0x5EED_C075;
    within(Duration::from_secs(120), || {
        println!("seed {SEED:#x}");
        let reasons = cut_at_random(SEED, if is_emulated() { 100 } else { 1000 });
        println!("{reasons:?}");
        let Reasons {
            truncated,
            ended,
            reset,
        } = reasons;
        assert!(truncated > 0 && ended > 0 && reset > 0);
    });
}

/// Cuts after so many bytes.
fn cutting(after: usize, end: Tear) -> Rules {
    let cut = Cut {
        after: after as u64,
        wait: Duration::ZERO,
        end,
    };
    Rules {
        cut: Some(cut),
        ..Rules::default()
    }
}

/// Cuts after each byte of two frames: only the boundary is no truncation.
#[test]
fn the_reason_tells_a_cut_inside_a_frame_from_one_between_two() {
    within(Duration::from_secs(60), || {
        let frames = [
            frame(Kind::Push, 1, 0, &body(0, 3)),
            frame(Kind::Push, 1, 0, &body(1, 9)),
        ];
        let opening = crate::support::opening().len();
        let total = frames[0].len() + frames[1].len();
        for after in 0..=total {
            let end = End::default();
            let (sender, ends) = mpsc::channel();
            let server = receiving!(Server::builder(), end)
                .on_closed(move |_, report| sender.send(report.clone()).unwrap())
                .bind("127.0.0.1:0")
                .unwrap();
            let rules = cutting(opening + after, Tear::Fin);
            let proxy = Proxy::with(tcp_address(&server), rules, Rules::default());
            let client = match Client::connect(proxy.address()) {
                Ok(client) => Some(client),
                // The cut is due with the hello: the welcome may not pass any more.
                Err(error) if after == 0 => {
                    assert_eq!(error.kind(), ErrorKind::Disconnected);
                    None
                }
                Err(error) => panic!("{error:?}"),
            };
            if let Some(client) = &client {
                let _ = client.push(1, body(0, 3));
                let _ = client.push(1, body(1, 9));
            }
            let report = ends.recv_timeout(LIMIT).unwrap();
            let expected = match after {
                0 => CloseReason::Ended,
                _ if after == frames[0].len() || after == total => CloseReason::Ended,
                _ => CloseReason::Truncated,
            };
            assert_eq!(
                report.reason, expected,
                "after {after} of {total}: {report}"
            );
            let whole = u64::from(after >= frames[0].len()) + u64::from(after == total);
            assert_eq!(report.received.messages, whole, "after {after}: {report}");
            if let Some(client) = client {
                let report = client.shutdown(LIMIT).unwrap();
                assert_eq!(report.reason, CloseReason::Ended, "{report}");
            }
        }
    });
}

#[test]
fn a_cut_in_the_handshake_fails_the_connect_and_leaves_no_session() {
    within(Duration::from_secs(60), || {
        let closed = Arc::new(AtomicU64::new(0));
        let opened = Arc::new(AtomicU64::new(0));
        let (opens, closes) = (opened.clone(), closed.clone());
        let server = Server::builder()
            .on_connected(move |_| {
                opens.fetch_add(1, Ordering::SeqCst);
            })
            .on_closed(move |_, _| {
                closes.fetch_add(1, Ordering::SeqCst);
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let hello = crate::support::opening().len();
        for after in 1..hello {
            let rules = cutting(after, Tear::Fin);
            let proxy = Proxy::with(tcp_address(&server), rules, Rules::default());
            let start = Instant::now();
            let error = Client::connect(proxy.address()).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::Disconnected,
                "after {after}: {error:?}"
            );
            assert!(start.elapsed() < PROMPT);
            assert!(error.is_retryable());
        }
        assert_eq!(opened.load(Ordering::SeqCst), 0);
        for after in (1..111).step_by(5) {
            for end in [Tear::Fin, Tear::Reset] {
                let rules = cutting(after, end);
                let proxy = Proxy::with(tcp_address(&server), Rules::default(), rules);
                let error = Client::connect(proxy.address()).unwrap_err();
                assert_eq!(
                    error.kind(),
                    ErrorKind::Disconnected,
                    "after {after}: {error:?}"
                );
            }
        }
        server.shutdown(LIMIT).unwrap();
        assert_eq!(opened.load(Ordering::SeqCst), closed.load(Ordering::SeqCst));
    });
}

/// Sends both ways through a proxy that damages nothing, and looks at everything.
fn everything_arrives(to_server: Rules, to_client: Rules, pushes: u32, calls: u32, size: usize) {
    within(Duration::from_secs(60), move || {
        let [client_end, server_end] = [0; 2].map(|_| End::default());
        let server = receiving!(Server::builder(), server_end)
            .bind("127.0.0.1:0")
            .unwrap();
        let proxy = Proxy::with(tcp_address(&server), to_server, to_client);
        let client = receiving!(Client::builder(), client_end)
            .connect(proxy.address())
            .unwrap();
        let session = server.hub().session(client.id()).unwrap();
        let send = |session: Session| {
            thread::spawn(move || {
                for number in 0..pushes {
                    session
                        .push(1, body(number, number as usize % size))
                        .unwrap();
                }
                for number in 0..calls {
                    let body = body(number, number as usize * 7 % size);
                    assert_eq!(session.call(2, &body).unwrap().body(), body);
                }
            })
        };
        let senders = [send(client.session()), send(session.clone())];
        for sender in senders {
            sender.join().unwrap();
        }
        for end in [&client_end, &server_end] {
            assert!(end.0.pushes.lock().unwrap().iter().copied().eq(0..pushes));
            assert!(end.0.calls.lock().unwrap().iter().copied().eq(0..calls));
        }
        for report in [client.shutdown(LIMIT), session.shutdown(LIMIT)] {
            let report = report.unwrap();
            assert_eq!(report.reason, CloseReason::Clean, "{report}");
            assert_eq!(report.unconfirmed.messages, 0, "{report}");
            assert_eq!(report.confirmed.messages, u64::from(pushes + 2 * calls));
        }
        assert!(proxy.wait_end(LIMIT));
    });
}

#[test]
fn a_stream_of_single_bytes_is_the_same_stream() {
    let slicing = Rules {
        slice: Some(1),
        ..Rules::default()
    };
    everything_arrives(slicing.clone(), slicing, 200, 20, 100);
}

#[test]
fn slices_of_any_size_make_no_difference() {
    for slice in [2, 3, 7, 15, 16, 17, 31, 1000] {
        let slicing = Rules {
            slice: Some(slice),
            ..Rules::default()
        };
        everything_arrives(slicing.clone(), slicing, 100, 10, 200);
    }
}

#[test]
fn merged_writes_make_no_difference() {
    let merging = Rules {
        merge: Some((100_000, millis(5))),
        ..Rules::default()
    };
    everything_arrives(merging.clone(), merging, 1000, 20, 500);
}

#[test]
fn a_slow_line_makes_no_difference() {
    let slow = Rules {
        delay: Some(millis(2)),
        rate: Some(4 << 20),
        slice: Some(32 << 10),
        ..Rules::default()
    };
    everything_arrives(slow.clone(), slow, 500, 20, 3000);
}
