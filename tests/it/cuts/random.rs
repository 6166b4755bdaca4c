//! Random cuts under load, and the promise about counts after each: in the test of a thousand,
//! and in `benches/soak.rs` of as many as are wanted.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use trunkline::{Client, CloseReason, ErrorKind, Server, Session};

use super::ends::{End, body, receiving};
use crate::support::proxy::{Cut, End as Tear, Proxy, Rules, Way};
use crate::support::{LIMIT, PROMPT, eventually, millis, tcp_address};

/// How the sessions ended, at both ends.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    pub(crate) truncated: u32,
    pub(crate) ended: u32,
    pub(crate) reset: u32,
}

/// Cuts so many connections, each at a random byte, while both ends push and call.
pub(crate) fn cut_at_random(seed: u64, cuts: usize) -> Reasons {
    let mut random = StdRng::seed_from_u64(seed);
    let mut reasons = Reasons::default();
    for round in 0..cuts {
        let own_seed = random.random();
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
        let what = format!("round {round} of seed {seed:#x}: {cut:?}");
        let (to_server, to_client) = match random.random() {
            true => (Some(cut), None),
            false => (None, Some(cut)),
        };
        let rules = [to_server, to_client].map(|cut| Rules {
            cut,
            record: true,
            ..Rules::default()
        });
        cut_once(&what, own_seed, end, rules, &mut reasons);
    }
    reasons
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

fn cut_once(what: &str, seed: u64, tear: Tear, rules: [Rules; 2], reasons: &mut Reasons) {
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
        match report.reason {
            CloseReason::Truncated => reasons.truncated += 1,
            CloseReason::Ended => reasons.ended += 1,
            _ => reasons.reset += 1,
        }
    }
}
