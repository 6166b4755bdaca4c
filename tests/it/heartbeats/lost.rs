//! Peers that are gone, or say nothing: found at the limit, and not before.

use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use trunkline::{CloseReason, CloseReport, ErrorKind, Heartbeat, Kind};

use super::{ECHO, client, echo, within_limit};
use crate::support::proxy::{Flow, Proxy, Rules};
use crate::support::{LIMIT, PROMPT, RawPeer, eventually, frame, millis, tcp_address, within};

const HOLD: u32 = 7;

/// The end is that of a silent peer.
#[track_caller]
fn assert_silence(report: &CloseReport, limit: &str) {
    assert_eq!(report.reason, CloseReason::Cut, "{report}");
    let error = report.error.as_ref().unwrap();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let text = format!("nothing came from the peer within heartbeat.limit = {limit}");
    assert!(error.to_string().contains(&text), "{error}");
}

/// A time at which the end of something that lasted at least until `limit` was seen.
#[track_caller]
fn assert_at_the_limit(took: Duration, limit: Duration) {
    let most = limit + Duration::from_secs(1) + PROMPT;
    assert!(took >= limit && took < most, "{took:?} for {limit:?}");
}

#[test]
fn a_line_that_carries_nothing_any_more_ends_at_both_ends() {
    within(Duration::from_secs(30), || {
        let limit = Duration::from_secs(1);
        let (sender, ends) = mpsc::channel();
        let ended = sender.clone();
        // Nobody answers while the test lasts.
        let held = Mutex::new(Vec::new());
        let server = echo(within_limit(limit))
            .on_call(HOLD, move |cx, _| {
                let (responder, deferred) = cx.defer();
                held.lock().unwrap().push(responder);
                deferred
            })
            .on_closed(move |_, report| ended.send((Instant::now(), report.clone())).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let proxy = Proxy::start(tcp_address(&server));
        let client = client(within_limit(limit))
            .on_closed(move |_, report| sender.send((Instant::now(), report.clone())).unwrap())
            .connect(proxy.address())
            .unwrap();
        let waiting = client.request(HOLD).start(b"").unwrap();
        let heard = Instant::now();
        client.call(ECHO, b"").unwrap();
        proxy.set_both(&Rules {
            flow: Flow::Swallow,
            ..Rules::default()
        });
        let error = waiting.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
        assert!(error.maybe_executed());
        assert_at_the_limit(heard.elapsed(), limit);
        for _ in 0..2 {
            let (when, report) = ends.recv_timeout(LIMIT).unwrap();
            assert_at_the_limit(when - heard, limit);
            assert_silence(&report, "1s");
        }
        assert!(ends.recv_timeout(millis(300)).is_err());
    });
}

#[test]
fn a_peer_that_never_says_anything_is_found_at_the_limit() {
    within(Duration::from_secs(30), || {
        let limit = millis(700);
        let (sender, ends) = mpsc::channel();
        let server = echo(within_limit(limit))
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let start = Instant::now();
        let mut peer = RawPeer::dial(tcp_address(&server));
        let report = ends.recv_timeout(LIMIT).unwrap();
        assert_at_the_limit(start.elapsed(), limit);
        assert_silence(&report, "700ms");
        assert!(peer.is_closed_within(LIMIT));
    });
}

/// Without a ping, and without ever finishing a frame.
#[test]
fn every_byte_of_a_frame_is_life() {
    within(Duration::from_secs(30), || {
        let limit = millis(800);
        let (sender, ends) = mpsc::channel();
        let server = echo(within_limit(limit))
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let mut peer = RawPeer::dial(tcp_address(&server));
        let mut bytes = frame(Kind::Push, 2, 0, &[7; 200]).into_iter();
        let mut heard = Instant::now();
        for _ in 0..20 {
            assert!(
                ends.recv_timeout(millis(120)).is_err(),
                "a living peer is cut off"
            );
            heard = Instant::now();
            peer.send(&[bytes.next().unwrap()]);
        }
        let report = ends.recv_timeout(LIMIT).unwrap();
        assert_at_the_limit(heard.elapsed(), limit);
        assert_silence(&report, "800ms");
    });
}

#[test]
fn without_a_limit_nobody_is_judged() {
    within(Duration::from_secs(30), || {
        let server = echo(within_limit(Duration::MAX))
            .bind("127.0.0.1:0")
            .unwrap();
        let mut heartbeat = Heartbeat::default();
        heartbeat.interval = millis(300);
        heartbeat.limit = Duration::MAX;
        let mut asks_nothing = RawPeer::dial(tcp_address(&server));
        let client = client(heartbeat).connect(server.local_address()).unwrap();
        assert!(eventually(LIMIT, || { client.stats().pings_sent >= 4 }));
        asks_nothing.call(ECHO, 0x0001_0000, b"still");
        assert_eq!(asks_nothing.next().unwrap().body, b"still");
    });
}
