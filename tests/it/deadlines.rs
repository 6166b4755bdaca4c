//! A call's time limit, and that its caller has given up, as the handler sees them.

mod cancels;
mod held;

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::message::{MessageRef, OwnedRoute};
use trunkline::protocol::native::handshake::{Hello, PeerTimes, preface};
use trunkline::protocol::{Native, Protocol};
use trunkline::{
    Client, CodecId, Error, ErrorKind, Inbox, Kind, Route, Server, Session, Status, Timeouts,
};

use crate::support::{LIMIT, PROMPT, RawPeer, eventually, millis, raw_limits, within};

const LEFT: u32 = 1;
const ON: u32 = 2;

fn ms(left: Option<Duration>) -> [u8; 8] {
    let millis = left.map_or(u64::MAX, |left| left.as_millis() as u64);
    millis.to_le_bytes()
}

fn left_in(body: &[u8]) -> u64 {
    u64::from_le_bytes(body.try_into().unwrap())
}

/// A server that answers with the time left.
fn telling() -> Server {
    Server::builder()
        .on_call(LEFT, |cx, _| ms(cx.time_left()))
        .bind("127.0.0.1:0")
        .unwrap()
}

fn with_default(call: Duration) -> Timeouts {
    let mut timeouts = Timeouts::default();
    timeouts.call = call;
    timeouts
}

#[test]
fn the_time_left_shrinks_to_zero_while_the_handler_runs() {
    within(LIMIT, || {
        let (sender, seen) = mpsc::channel();
        let (given_up, caller) = mpsc::channel();
        let caller = Mutex::new(caller);
        let server = Server::builder()
            .on_call(LEFT, move |cx, _| {
                let first = cx.time_left().unwrap();
                assert!(first <= millis(200));
                assert!(eventually(LIMIT, || cx.time_left() == Some(Duration::ZERO)));
                sender.send(first).unwrap();
                caller.lock().unwrap().recv_timeout(LIMIT).unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let error = client
            .request(LEFT)
            .timeout(millis(200))
            .call(())
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        given_up.send(()).unwrap();
        seen.recv_timeout(LIMIT).unwrap();
        // It answers all the same, which is counted where nobody waits any more.
        assert!(eventually(LIMIT, || client.stats().late_replies == 1));
    });
}

#[test]
fn the_handshake_tells_the_limit_of_calls_without_one_of_their_own() {
    within(LIMIT, || {
        let server = telling();
        let client = |call| {
            Client::builder()
                .timeouts(with_default(call))
                .connect(server.local_address())
                .unwrap()
        };
        let seven = client(Duration::from_secs(7));
        let told = left_in(seven.call(LEFT, ()).unwrap().body());
        assert!((1..=7_000).contains(&told), "{told}");
        // A limit of its own counts more, also none at all.
        let own = seven.request(LEFT).timeout(Duration::from_secs(60));
        assert!(left_in(own.call(()).unwrap().body()) > 7_000);
        let endless = seven.request(LEFT).timeout(Duration::MAX);
        assert_eq!(left_in(endless.call(()).unwrap().body()), u64::MAX);
        // Without a default nothing is told.
        let none = client(Duration::MAX);
        assert_eq!(left_in(none.call(LEFT, ()).unwrap().body()), u64::MAX);
    });
}

#[test]
fn the_server_tells_its_limit_too() {
    within(LIMIT, || {
        let server = Server::builder()
            .timeouts(with_default(Duration::from_secs(9)))
            .on_call(ON, |cx, _| -> Result<Vec<u8>, Status> {
                let limit = Duration::from_secs(9);
                let reply = cx.session().request(LEFT).timeout(limit).call(())?;
                Ok(reply.into_body())
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .on_call(LEFT, |cx, _| ms(cx.time_left()))
            .connect(server.local_address())
            .unwrap();
        let call = client.request(ON).timeout(Duration::MAX);
        let told = left_in(call.call(()).unwrap().body());
        assert!((1..=9_000).contains(&told), "{told}");
    });
}

#[test]
fn a_peer_that_told_nothing_sets_no_limit_and_one_that_did_sets_it() {
    within(LIMIT, || {
        let server = telling();
        for (told, range) in [(0, u64::MAX..=u64::MAX), (5_000, 1..=5_000)] {
            let hello = Hello {
                random: [7; 32],
                limits: raw_limits(),
                times: PeerTimes {
                    silence: 0,
                    call: told,
                },
            };
            let opening = [preface().to_vec(), hello.encode()].concat();
            let mut peer = RawPeer::dial_with(crate::support::tcp_address(&server), &opening);
            peer.call(LEFT, 1, b"");
            let left = left_in(&peer.next().unwrap().body);
            assert!(range.contains(&left), "{left}");
        }
    });
}

/// Three programs in a row: the second hands the call on to the third.
fn handing_on(last: &Server) -> Server {
    let onward = Client::connect(last.local_address()).unwrap();
    Server::builder()
        .on_call(ON, move |_, body| -> Result<Vec<u8>, Status> {
            Ok(onward.call(LEFT, body.to_vec())?.into_body())
        })
        .bind("127.0.0.1:0")
        .unwrap()
}

#[test]
fn a_nested_call_has_no_more_time_than_its_parent() {
    within(LIMIT, || {
        let last = telling();
        let middle = handing_on(&last);
        let client = Client::connect(middle.local_address()).unwrap();
        let call = client.request(ON).timeout(Duration::from_secs(5));
        assert!(left_in(call.call(()).unwrap().body()) <= 5_000);
        // A longer limit than the default of the middle does not lengthen that.
        let call = client.request(ON).timeout(Duration::from_secs(500));
        assert!(left_in(call.call(()).unwrap().body()) <= 30_000);
    });
}

#[test]
fn the_limit_of_the_first_ends_all_three() {
    within(LIMIT, || {
        let (sender, seen) = mpsc::channel();
        let last = Server::builder()
            .on_call(LEFT, move |cx, _| {
                let ended = eventually(LIMIT, || cx.cancelled());
                sender.send((ended, cx.time_left())).unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let middle = handing_on(&last);
        let client = Client::connect(middle.local_address()).unwrap();
        let error = client
            .request(ON)
            .timeout(millis(300))
            .call(())
            .unwrap_err();
        assert!(error.is_timeout());
        let (ended, left) = seen.recv_timeout(PROMPT).unwrap();
        assert!(ended);
        assert!(left.unwrap() < millis(300));
        assert!(eventually(PROMPT, || middle.stats().calls_answered == 1));
    });
}

/// The peer's clock and this side's run out together: either may say it first.
#[test]
fn it_is_a_timeout_too_when_the_peer_says_it_first() {
    within(LIMIT, || {
        let server = Server::builder()
            .on_call(LEFT, |_, _| {
                Err::<(), _>(Status::new(Status::DEADLINE_EXCEEDED, "no time"))
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let error = client.call(LEFT, ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Status);
        assert!(error.is_timeout() && error.is_retryable());
    });
}

#[test]
fn a_refusal_is_no_timeout_whatever_its_status() {
    within(LIMIT, || {
        let server = Server::builder()
            .on_accept(|_| Err(Status::new(Status::DEADLINE_EXCEEDED, "too late for you")))
            .bind("127.0.0.1:0")
            .unwrap();
        let error = Client::connect(server.local_address()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(!error.is_timeout() && !error.is_retryable());
    });
}

#[test]
fn without_time_left_a_handler_calls_nobody() {
    within(LIMIT, || {
        let (sender, seen) = mpsc::channel();
        let last = telling();
        let onward = Client::connect(last.local_address()).unwrap();
        let middle = Server::builder()
            .on_call(ON, move |cx, _| {
                assert!(eventually(LIMIT, || cx.time_left() == Some(Duration::ZERO)));
                sender.send(onward.call(LEFT, ()).unwrap_err()).unwrap();
                // A thread of its own is bound by nothing.
                let own = onward.clone();
                thread::spawn(move || own.call(LEFT, ()).unwrap())
                    .join()
                    .unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(middle.local_address()).unwrap();
        client.request(ON).timeout(millis(50)).call(()).unwrap_err();
        let error = seen.recv_timeout(LIMIT).unwrap();
        // Whether the cancel or the clock was first.
        let kinds = [ErrorKind::Timeout, ErrorKind::Cancelled];
        assert!(kinds.contains(&error.kind()), "{error:?}");
        assert!(!error.maybe_executed());
        assert!(eventually(LIMIT, || last.stats().calls_received == 1));
    });
}

#[test]
fn a_callback_call_in_a_handler_and_a_call_for_a_received_one_inherit() {
    within(LIMIT, || {
        let last = telling();
        let onward = Client::connect(last.local_address()).unwrap();
        let middle = Server::builder()
            .inbox(10)
            .on_call(ON, move |cx, _| {
                let (responder, deferred) = cx.defer();
                let call = onward.request(LEFT).call_then((), move |left| {
                    responder.reply(left.unwrap().to_vec());
                });
                call.unwrap();
                deferred
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .on_call(LEFT, |cx, _| ms(cx.time_left()))
            .connect(middle.local_address())
            .unwrap();
        let call = client.request(ON).timeout(Duration::from_secs(4));
        assert!(left_in(call.call(()).unwrap().body()) <= 4_000);
        let inbox: Inbox = middle.inbox().unwrap();
        let worker = thread::spawn(move || {
            let received = inbox.recv().unwrap();
            assert!(received.time_left().unwrap() <= Duration::from_secs(3));
            let left = received.request(LEFT).call(()).unwrap();
            received.reply(left.into_body()).unwrap();
        });
        let call = client.request(9).timeout(Duration::from_secs(3));
        assert!(left_in(call.call(()).unwrap().body()) <= 3_000);
        worker.join().unwrap();
    });
}
