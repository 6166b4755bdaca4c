//! A call that was started: waited for, polled, cancelled, dropped, or left to a callback.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, ErrorKind, Pending, Responder, Server};

use super::ECHO;
use crate::support::{LIMIT, eventually, millis, within};

const HOLD: u32 = 7;

/// A server that answers route 7 when the test does, and a client of it.
fn holding() -> (Server, Client, mpsc::Receiver<Responder>) {
    let (sender, held) = mpsc::channel();
    let server = Server::builder()
        .on_call(ECHO, |_, body| body.to_vec())
        .on_call(HOLD, move |cx, _| {
            let (responder, deferred) = cx.defer();
            sender.send(responder).unwrap();
            deferred
        })
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Client::connect(server.local_address()).unwrap();
    (server, client, held)
}

fn start(client: &Client, limit: Duration) -> Pending {
    client.request(HOLD).timeout(limit).start(()).unwrap()
}

/// The connection lives, and its next calls get their own answers.
fn is_alive(client: &Client) {
    for number in 0..10u32 {
        let reply = client.call(ECHO, number.to_le_bytes()).unwrap();
        assert_eq!(reply.body(), number.to_le_bytes());
    }
}

#[test]
fn waiting_for_a_limited_time_gives_nothing_and_then_the_reply() {
    within(Duration::from_secs(30), || {
        let (_server, client, held) = holding();
        let mut call = start(&client, LIMIT);
        assert!(call.wait_timeout(millis(20)).is_none());
        assert!(call.wait_timeout(Duration::ZERO).is_none());
        assert!(call.try_take().is_none());
        held.recv_timeout(LIMIT).unwrap().reply(b"now");
        let reply = call.wait_timeout(LIMIT).unwrap().unwrap();
        assert_eq!(reply.body(), b"now");
        let again = call.wait_timeout(LIMIT).unwrap().unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Closed);
        let again = call.try_take().unwrap().unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Closed);
        assert_eq!(call.wait().unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn a_started_call_is_waited_for_by_another_thread() {
    within(Duration::from_secs(30), || {
        let (_server, client, held) = holding();
        let call = start(&client, LIMIT);
        let waiting = thread::spawn(move || call.wait().unwrap());
        held.recv_timeout(LIMIT).unwrap().reply(b"over there");
        assert_eq!(waiting.join().unwrap().body(), b"over there");
    });
}

#[test]
fn a_reply_is_taken_without_waiting_once_it_is_there() {
    within(Duration::from_secs(30), || {
        let (_server, client, held) = holding();
        let mut call = start(&client, LIMIT);
        assert!(call.try_take().is_none());
        held.recv_timeout(LIMIT).unwrap().reply(b"there");
        let mut taken = None;
        assert!(eventually(LIMIT, || {
            taken = call.try_take();
            taken.is_some()
        }));
        assert_eq!(taken.unwrap().unwrap().body(), b"there");
    });
}

#[test]
fn the_time_limit_of_the_call_ends_any_waiting_for_it() {
    within(Duration::from_secs(30), || {
        let (_server, client, held) = holding();
        let mut taken = start(&client, millis(30));
        let mut result = None;
        assert!(eventually(LIMIT, || {
            result = taken.try_take();
            result.is_some()
        }));
        let error = result.unwrap().unwrap_err();
        assert!(error.is_timeout() && error.maybe_executed(), "{error:?}");
        let error = start(&client, millis(30)).wait().unwrap_err();
        assert!(error.is_timeout() && error.maybe_executed(), "{error:?}");
        let error = start(&client, millis(30)).wait_timeout(LIMIT).unwrap();
        assert!(error.unwrap_err().is_timeout());
        assert_eq!(client.stats().calls_given_up, 3);
        assert_eq!(client.stats().calls_in_flight, 3);
        for _ in 0..3 {
            held.recv_timeout(LIMIT).unwrap().reply(b"late");
        }
        assert!(eventually(LIMIT, || client.stats().late_replies == 3));
        assert_eq!(client.stats().calls_in_flight, 0);
        is_alive(&client);
    });
}

/// However a caller gives a call up: the peer is told, the late reply is dropped and counted.
fn given_up(give_up: impl FnOnce(Pending) + Send + 'static) {
    within(Duration::from_secs(30), || {
        let (server, client, held) = holding();
        let call = start(&client, LIMIT);
        let responder = held.recv_timeout(LIMIT).unwrap();
        give_up(call);
        let stats = client.stats();
        assert_eq!((stats.calls_given_up, stats.calls_in_flight), (1, 1));
        assert!(eventually(LIMIT, || server.stats().control_frames == 1));
        is_alive(&client);
        responder.reply(b"late");
        assert!(eventually(LIMIT, || client.stats().late_replies == 1));
        let stats = client.stats();
        assert_eq!((stats.unknown_replies, stats.calls_in_flight), (0, 0));
        is_alive(&client);
    });
}

#[test]
fn a_cancelled_calls_late_reply_is_dropped_and_counted() {
    given_up(Pending::cancel);
}

#[test]
fn dropping_a_call_cancels_it() {
    given_up(drop);
}

#[test]
fn many_calls_that_are_given_up_at_once_do_not_end_the_session() {
    within(Duration::from_secs(30), || {
        let (_server, client, held) = holding();
        let calls: Vec<Pending> = (0..5_000).map(|_| start(&client, LIMIT)).collect();
        let responders: Vec<Responder> = (0..5_000)
            .map(|_| held.recv_timeout(LIMIT).unwrap())
            .collect();
        drop(calls);
        is_alive(&client);
        responders.into_iter().for_each(|held| held.reply(b"late"));
        assert!(eventually(LIMIT, || client.stats().late_replies == 5_000));
        is_alive(&client);
    });
}

type Outcome = (String, Result<Vec<u8>, trunkline::Error>);

/// Has the outcome sent, with the name of the thread on which the callback ran.
fn on_reply(call: Pending) -> mpsc::Receiver<Outcome> {
    let (sender, outcome) = mpsc::channel();
    call.on_reply(move |reply| {
        let thread = thread::current().name().unwrap_or_default().to_owned();
        let _ = sender.send((thread, reply.map(trunkline::Reply::into_body)));
    });
    outcome
}

#[test]
fn a_callback_runs_on_the_reader_when_the_reply_comes() {
    within(Duration::from_secs(30), || {
        let (_server, client, held) = holding();
        let outcome = on_reply(start(&client, LIMIT));
        held.recv_timeout(LIMIT).unwrap().reply(b"yes");
        let (thread, reply) = outcome.recv_timeout(LIMIT).unwrap();
        assert_eq!(reply.unwrap(), b"yes");
        assert!(thread.starts_with("tl-read"), "it ran on {thread}");
        assert!(outcome.recv_timeout(millis(20)).is_err(), "it ran twice");
    });
}

#[test]
fn a_callback_for_a_finished_call_runs_at_once_on_the_caller() {
    within(Duration::from_secs(30), || {
        let (_server, client, held) = holding();
        let call = start(&client, LIMIT);
        held.recv_timeout(LIMIT).unwrap().reply(b"before");
        assert!(eventually(LIMIT, || client.stats().calls_in_flight == 0));
        // The answer was taken in before a later call's.
        is_alive(&client);
        let caller = thread::current().id();
        let mut ran_on = None;
        thread::scope(|_| {
            let (sender, ran) = mpsc::channel();
            call.on_reply(move |reply| {
                assert_eq!(reply.unwrap().body(), b"before");
                sender.send(thread::current().id()).unwrap();
            });
            ran_on = ran.try_recv().ok();
        });
        assert_eq!(ran_on, Some(caller));
    });
}

#[test]
fn a_callback_runs_when_its_call_times_out() {
    within(Duration::from_secs(30), || {
        let (_server, client, held) = holding();
        let outcome = on_reply(start(&client, millis(20)));
        let (thread, reply) = outcome.recv_timeout(LIMIT).unwrap();
        assert!(reply.unwrap_err().is_timeout());
        assert!(thread.starts_with("trunkline"), "it ran on {thread}");
        held.recv_timeout(LIMIT).unwrap().reply(b"late");
        assert!(eventually(LIMIT, || client.stats().late_replies == 1));
        assert!(outcome.recv_timeout(millis(20)).is_err(), "it ran twice");
        is_alive(&client);
    });
}

#[test]
fn callbacks_run_in_the_order_of_their_time_limits() {
    within(Duration::from_secs(30), || {
        let (_server, client, _held) = holding();
        let (sender, ended) = mpsc::channel();
        for limit in [300, 20, 150, 80].map(millis) {
            let sender = sender.clone();
            let earliest = Instant::now() + limit;
            let call = start(&client, limit);
            let latest = Instant::now() + limit;
            call.on_reply(move |reply| {
                assert!(reply.unwrap_err().is_timeout());
                sender.send((earliest, latest)).unwrap();
            });
        }
        drop(sender);
        let ended: Vec<_> = ended.iter().collect();
        assert_eq!(ended.len(), 4);
        // On a busy machine the calls may start so far apart that their limits change places.
        for (place, (_, latest)) in ended.iter().enumerate() {
            for (earliest, _) in &ended[..place] {
                assert!(earliest <= latest, "{ended:?}");
            }
        }
    });
}

#[test]
fn a_callback_runs_when_the_connection_ends() {
    within(Duration::from_secs(30), || {
        let (server, client, held) = holding();
        let outcome = on_reply(start(&client, LIMIT));
        let _responder = held.recv_timeout(LIMIT).unwrap();
        server.hub().session(client.id()).unwrap().abort();
        let (_, reply) = outcome.recv_timeout(LIMIT).unwrap();
        let error = reply.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
        assert!(error.maybe_executed());
        assert!(outcome.recv_timeout(millis(20)).is_err(), "it ran twice");
    });
}

#[test]
fn a_panic_in_a_callback_ends_nothing_else() {
    within(Duration::from_secs(30), || {
        let (_server, client, held) = holding();
        start(&client, LIMIT).on_reply(|_| panic!("of the test"));
        held.recv_timeout(LIMIT).unwrap().reply(b"");
        assert!(eventually(LIMIT, || client.stats().panics == 1));
        start(&client, millis(1)).on_reply(|_| panic!("of the test"));
        let outcome = on_reply(start(&client, millis(30)));
        let (_, reply) = outcome.recv_timeout(LIMIT).unwrap();
        assert!(reply.unwrap_err().is_timeout());
        is_alive(&client);
    });
}

#[test]
fn a_call_with_no_time_at_all_is_not_sent() {
    within(Duration::from_secs(30), || {
        let (server, client, _held) = holding();
        let error = client
            .request(ECHO)
            .timeout(Duration::ZERO)
            .call(b"x")
            .unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        assert!(!error.maybe_executed(), "{error:?}");
        assert_eq!(client.stats().calls_sent, 0);
        is_alive(&client);
        assert_eq!(server.stats().received_messages, 10);
    });
}

#[test]
fn calls_beyond_the_cap_wait_no_longer_than_their_limit_and_a_place_is_given_again() {
    within(Duration::from_secs(30), || {
        // The cap is this side's own, or what the peer announces.
        for own in [true, false] {
            let mut limits = trunkline::Limits::default();
            match own {
                true => limits.pending_calls = 10,
                false => limits.incoming_calls = 10,
            }
            let (sender, held) = mpsc::channel();
            let mut server = Server::builder().on_call(HOLD, move |cx, _| {
                let (responder, deferred) = cx.defer();
                sender.send(responder).unwrap();
                deferred
            });
            let mut client = Client::builder();
            match own {
                true => client = client.limits(limits),
                false => server = server.limits(limits),
            }
            let server = server.bind("127.0.0.1:0").unwrap();
            let client = client.connect(server.local_address()).unwrap();
            let calls: Vec<Pending> = (0..10).map(|_| start(&client, LIMIT)).collect();
            for _ in 0..10 {
                let call = client.request(HOLD).timeout(millis(20));
                let error = call.start(()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::TooManyInFlight, "{error:?}");
                assert!(error.is_retryable() && !error.maybe_executed());
                let text = error.to_string();
                assert!(text.contains("10 calls (limits.pending_calls"), "{text}");
            }
            assert_eq!(client.stats().calls_in_flight, 10);
            assert_eq!(client.stats().calls_sent, 10);
            held.recv_timeout(LIMIT).unwrap().reply(b"");
            // It waits until there is a place.
            let next = start(&client, LIMIT);
            for _ in 0..10 {
                held.recv_timeout(LIMIT).unwrap().reply(b"");
            }
            for call in calls.into_iter().chain([next]) {
                call.wait().unwrap();
            }
        }
    });
}
