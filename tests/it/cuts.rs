//! Connections that are sliced, merged, delayed, stalled, cut and reset on the way, by a proxy
//! in this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use trunkline::{Client, CloseReason, CloseReport, ErrorKind, Kind, Server, Session};

use crate::support::proxy::{Cut, End as Tear, Proxy, Rules, Way};
use crate::support::{LIMIT, PROMPT, eventually, frame, is_emulated, millis, tcp_address, within};

/// A body that holds its number, and bytes that follow from it.
fn body(number: u32, size: usize) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.extend((0..size as u32).map(|index| (index ^ number) as u8));
    body
}

#[track_caller]
fn number_of(bytes: &[u8]) -> u32 {
    let number = u32::from_le_bytes(bytes[..4].try_into().unwrap());
    assert!(bytes == body(number, bytes.len() - 4), "a body is damaged");
    number
}

/// One end of a connection: what it received.
#[derive(Clone, Default)]
struct End(Arc<Seen>);

#[derive(Default)]
struct Seen {
    pushes: Mutex<Vec<u32>>,
    calls: Mutex<Vec<u32>>,
    ended: Mutex<Option<CloseReport>>,
}

/// Route 1 is pushed, route 2 is called.
macro_rules! receiving {
    ($builder:expr, $end:expr) => {{
        let [pushed, called, ended] = [0; 3].map(|_| $end.clone());
        $builder
            .on_push(1, move |_, body| {
                pushed.0.pushes.lock().unwrap().push(number_of(&body));
            })
            .on_call(2, move |_, body| {
                called.0.calls.lock().unwrap().push(number_of(&body));
                body.to_vec()
            })
            .on_closed(move |_, report| {
                *ended.0.ended.lock().unwrap() = Some(report.clone());
            })
    }};
}

/// What one end sent until it could not.
struct Sent {
    pushes: u32,
    calls: u32,
    replies: u64,
    /// When the last wait returned.
    returned: Instant,
    session: Session,
}

/// Pushes and calls on two threads until the session ends.
fn send_until_the_end(session: Session, seed: u64) -> JoinHandle<Sent> {
    thread::spawn(move || {
        let calling = session.clone();
        let caller = thread::spawn(move || {
            let mut random = StdRng::seed_from_u64(seed ^ 1);
            let (mut calls, mut replies) = (0, 0);
            loop {
                let body = body(calls, random.random_range(0..300));
                let pending = match calling.request(2).start(&body) {
                    Ok(pending) => pending,
                    Err(error) => {
                        assert!(error.is_closed(), "{error:?}");
                        return (calls, replies, Instant::now());
                    }
                };
                calls += 1;
                match pending.wait() {
                    Ok(reply) => {
                        assert_eq!(reply.body(), body, "a reply of another call");
                        replies += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
                        return (calls, replies, Instant::now());
                    }
                }
            }
        });
        let mut random = StdRng::seed_from_u64(seed);
        let mut pushes = 0;
        loop {
            let size = match random.random_range(0..50) {
                0 => random.random_range(60_000..100_000),
                _ => random.random_range(0..600),
            };
            match session.push(1, body(pushes, size)) {
                Ok(()) => pushes += 1,
                Err(error) => {
                    assert!(error.is_closed(), "{error:?}");
                    break;
                }
            }
        }
        let returned = Instant::now();
        let (calls, replies, last) = caller.join().unwrap();
        Sent {
            pushes,
            calls,
            replies,
            returned: returned.max(last),
            session,
        }
    })
}

/// Whether a stream of a preface, a handshake frame and frames ends between two of them.
fn ends_between_frames(stream: &[u8]) -> bool {
    let mut rest = &stream[8..];
    while !rest.is_empty() {
        let Some(length) = rest.first_chunk::<4>() else {
            return false;
        };
        let Some(behind) = rest.get(4 + u32::from_le_bytes(*length) as usize..) else {
            return false;
        };
        rest = behind;
    }
    true
}

/// The promise about counts, for one direction: from the sender's report and what the receiver
/// got.
#[track_caller]
fn assert_accounted(what: &str, sent: &Sent, from: &End, to: &End, to_sent: &Sent) {
    let ended = from.0.ended.lock().unwrap();
    let report = ended.as_ref().unwrap();
    let received = to.0.ended.lock().unwrap().as_ref().unwrap().received;
    let pushes = to.0.pushes.lock().unwrap();
    let calls = to.0.calls.lock().unwrap();
    assert!(
        pushes.iter().copied().eq(0..pushes.len() as u32),
        "{what}: pushes {pushes:?}"
    );
    assert!(
        calls.iter().copied().eq(0..calls.len() as u32),
        "{what}: calls {calls:?}"
    );
    let delivered = pushes.len() as u64 + calls.len() as u64 + to_sent.replies;
    // A reply may come just after the end, when its caller has been told already.
    let stats = to_sent.session.stats();
    let stray = stats.unknown_replies + stats.late_replies;
    assert_eq!(received.messages, delivered + stray, "{what}: {report}");
    // Every push and call that was accepted is in the counts; replies are the rest.
    let (least, more) = (report.not_written.messages, report.unconfirmed.messages);
    let accepted = least + more + report.confirmed.messages;
    let requests = u64::from(sent.pushes) + u64::from(sent.calls);
    let answered = from.0.calls.lock().unwrap().len() as u64;
    assert!(
        requests <= accepted && accepted <= requests + answered,
        "{what}: {requests} pushes and calls, {answered} calls answered; {report}"
    );
    let lost = accepted - received.messages;
    assert!(
        least <= lost && lost <= least + more,
        "{what}: {lost} of {accepted} are lost; {report}"
    );
}

#[test]
fn after_any_cut_the_counts_enclose_what_is_lost_and_nobody_waits() {
    const SEED: u64 = 0x5EED_C075;
    within(Duration::from_secs(120), || {
        println!("seed {SEED:#x}");
        let mut random = StdRng::seed_from_u64(SEED);
        let mut reasons = [0; 3];
        let cuts = if is_emulated() { 100 } else { 1000 };
        for round in 0..cuts {
            let seed = random.random();
            let (end, wait) = match round % 4 {
                0 | 1 => (Tear::Fin, 0),
                2 => (Tear::Reset, 0),
                _ => (Tear::Reset, random.random_range(0..4)),
            };
            // Behind the handshake: 8 + 86 bytes of the client, 8 + 114 of the server.
            let after = match random.random_range(0..10) {
                0 => random.random_range(125..200),
                1..4 => random.random_range(125..3_000),
                _ => random.random_range(125..60_000),
            };
            let cut = Cut {
                after,
                wait: millis(wait),
                end,
            };
            let what = format!("round {round} of seed {SEED:#x}: {cut:?}");
            let (to_server, to_client) = match random.random() {
                true => (Some(cut), None),
                false => (None, Some(cut)),
            };
            let rules = [to_server, to_client].map(|cut| Rules {
                cut,
                record: true,
                ..Rules::default()
            });
            cut_once(&what, seed, end, rules, &mut reasons);
        }
        println!("truncated, ended, reset: {reasons:?}");
        assert!(reasons.iter().all(|count| *count > 0), "{reasons:?}");
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

fn cut_once(what: &str, seed: u64, tear: Tear, rules: [Rules; 2], reasons: &mut [u32; 3]) {
    let [to_server, to_client] = rules;
    let [client_end, server_end] = [0; 2].map(|_| End::default());
    let (sender, sessions) = mpsc::channel();
    let server = receiving!(Server::builder(), server_end)
        .on_connected(move |session| sender.send(session.clone()).unwrap())
        .bind("127.0.0.1:0")
        .unwrap();
    let proxy = Proxy::with(tcp_address(&server), to_server, to_client);
    let client = receiving!(Client::builder(), client_end)
        .connect(proxy.address())
        .unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let session = sessions.recv_timeout(LIMIT).unwrap();
    let up = send_until_the_end(client.session(), seed);
    let down = send_until_the_end(session.clone(), !seed);
    let cut = proxy.wait_cut(LIMIT).expect("the cut");
    let (up, down) = (up.join().unwrap(), down.join().unwrap());
    for sent in [&up, &down] {
        let late = sent.returned.saturating_duration_since(cut);
        assert!(late < PROMPT, "{what}: somebody waited {late:?}");
    }
    // What had come before the cut is still handled.
    for end in [&client_end, &server_end] {
        assert!(eventually(LIMIT, || end.0.ended.lock().unwrap().is_some()));
    }
    let client_report = client.shutdown(LIMIT).unwrap();
    let server_report = session.shutdown(LIMIT).unwrap();
    assert!(proxy.wait_end(LIMIT));
    assert_accounted(what, &up, &client_end, &server_end, &down);
    assert_accounted(what, &down, &server_end, &client_end, &up);
    for (report, way) in [
        (client_report, Way::ToClient),
        (server_report, Way::ToServer),
    ] {
        let expected = match ends_between_frames(&proxy.recorded(way)) {
            true => CloseReason::Ended,
            false => CloseReason::Truncated,
        };
        match tear {
            Tear::Fin => assert_eq!(report.reason, expected, "{what}: {report}"),
            // A reset may reach the writer first, which takes the error from the reader; and it
            // throws away what the proxy has passed on and the system not yet sent.
            _ => assert!(
                [
                    CloseReason::Reset,
                    CloseReason::Ended,
                    CloseReason::Truncated
                ]
                .contains(&report.reason),
                "{what}: {report}"
            ),
        }
        let error = report.error.expect("a reason");
        assert_eq!(error.kind(), ErrorKind::Disconnected, "{what}: {error:?}");
        reasons[match report.reason {
            CloseReason::Truncated => 0,
            CloseReason::Ended => 1,
            _ => 2,
        }] += 1;
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
