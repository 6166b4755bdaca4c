//! How threads wait for what comes from the peer, and who writes: each way does the same.

mod cost;
mod writers;

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, CloseReason, ErrorKind, Server, Session, Wait};

use crate::support::{LIMIT, PROMPT, millis, server_session, within};

const ECHO: u32 = 1;
const BACK: u32 = 2;
const NEVER: u32 = 3;
const NOTE: u32 = 4;

const WAYS: [Wait; 3] = [Wait::Park, Wait::Adaptive, Wait::Spin];

/// A server that echoes, calls back, and leaves calls unanswered; a client that echoes; and the
/// server's session with it.
fn pair(wait: Wait) -> (Server, Client, Session) {
    let unanswered = Mutex::new(Vec::new());
    let server = Server::builder()
        .wait(wait)
        .on_call(ECHO, |_, body| body.to_vec())
        .on_call(BACK, |cx, body| {
            let reply = cx.session().call(ECHO, body.as_bytes());
            reply.unwrap().into_body()
        })
        .on_call(NEVER, move |cx, _| {
            let (responder, deferred) = cx.defer();
            unanswered.lock().unwrap().push(responder);
            deferred
        })
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Client::builder()
        .wait(wait)
        .on_call(ECHO, |_, body| body.to_vec())
        .connect(server.local_address())
        .unwrap();
    let session = server_session(&server, client.id());
    (server, client, session)
}

/// Runs a test in each of the ways.
fn in_each_way(test: fn(Wait)) {
    for wait in WAYS {
        within(Duration::from_secs(60), move || test(wait));
    }
}

#[test]
fn calls_work_both_ways_and_from_handlers() {
    in_each_way(|wait| {
        let (_server, client, session) = pair(wait);
        for number in 0..200u32 {
            let body = number.to_le_bytes();
            assert_eq!(client.call(ECHO, body).unwrap().body(), body, "{wait:?}");
            assert_eq!(client.call(BACK, body).unwrap().body(), body, "{wait:?}");
            let same = session.call_with(ECHO, body, |echo| echo.as_bytes() == body);
            assert!(same.unwrap(), "{wait:?}");
            let pending = client.request(ECHO).start(body).unwrap();
            assert_eq!(pending.wait().unwrap().body(), body, "{wait:?}");
            let mut pending = session.request(ECHO).start(body).unwrap();
            let reply = pending.wait_timeout(LIMIT).unwrap().unwrap();
            assert_eq!(reply.body(), body, "{wait:?}");
        }
    });
}

#[test]
fn calls_with_pauses_in_between_find_threads_that_have_gone_to_sleep() {
    in_each_way(|wait| {
        let (_server, client, session) = pair(wait);
        for pause in [0, 1, 5, 150] {
            thread::sleep(millis(pause));
            assert_eq!(client.call(BACK, "a").unwrap().body(), b"a", "{wait:?}");
            thread::sleep(millis(pause));
            assert_eq!(session.call(ECHO, "b").unwrap().body(), b"b", "{wait:?}");
        }
    });
}

#[test]
fn thirty_two_callers_on_each_side_get_their_own_answers() {
    in_each_way(|wait| {
        let (_server, client, session) = pair(wait);
        let sides = [client.session(), session];
        thread::scope(|scope| {
            for (side, caller) in sides.iter().zip(0u32..).cycle().take(64).zip(0u32..) {
                let ((session, _), caller) = (side, caller);
                scope.spawn(move || {
                    for number in 0..100u32 {
                        let nonce = u64::from(caller) << 32 | u64::from(number);
                        let reply = session.call(ECHO, nonce.to_le_bytes()).unwrap();
                        assert_eq!(reply.body(), nonce.to_le_bytes(), "{wait:?}");
                    }
                });
            }
        });
        let stats = client.stats();
        assert_eq!((stats.late_replies, stats.unknown_replies), (0, 0));
    });
}

#[test]
fn pushes_come_in_their_order_between_calls() {
    in_each_way(|wait| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let server = Server::builder()
            .wait(wait)
            .on_push(NOTE, move |_, body| {
                noted
                    .lock()
                    .unwrap()
                    .push(body.decode::<[u8; 4]>().unwrap());
            })
            .on_call(ECHO, |_, body| body.to_vec())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder().wait(wait);
        let client = client.connect(server.local_address()).unwrap();
        for number in 0..2_000u32 {
            client.push(NOTE, number.to_le_bytes()).unwrap();
            if number % 100 == 0 {
                client.call(ECHO, "").unwrap();
            }
        }
        client.shutdown(LIMIT).unwrap();
        let seen = seen.lock().unwrap();
        let numbers = seen.iter().map(|number| u32::from_le_bytes(*number));
        assert!(numbers.eq(0..2_000), "{wait:?}");
    });
}

#[test]
fn a_time_limit_ends_a_call_and_neither_early_nor_late() {
    in_each_way(|wait| {
        let (_server, client, _session) = pair(wait);
        for limit in [millis(1), millis(50)] {
            let begun = Instant::now();
            let error = client.request(NEVER).timeout(limit).call("").unwrap_err();
            let took = begun.elapsed();
            assert!(error.is_timeout(), "{wait:?}: {error:?}");
            assert!(took >= limit && took < PROMPT, "{wait:?}: {took:?}");
        }
        // A wait that ends leaves the call as it is.
        let mut pending = client.request(NEVER).start("").unwrap();
        let begun = Instant::now();
        assert!(pending.wait_timeout(millis(20)).is_none());
        let took = begun.elapsed();
        assert!(took >= millis(20) && took < PROMPT, "{wait:?}: {took:?}");
        pending.cancel();
        assert_eq!(client.call(ECHO, "on").unwrap().body(), b"on");
    });
}

/// Begins calls that nobody answers, runs `end` when the server has them all, and gives their
/// errors.
fn ended(wait: Wait, end: impl FnOnce(&Client, &Session)) -> Vec<ErrorKind> {
    const CALLERS: u64 = 4;
    let (_server, client, session) = pair(wait);
    let (sender, ends) = mpsc::channel();
    for _ in 0..CALLERS {
        let (client, sender) = (client.clone(), sender.clone());
        thread::spawn(move || {
            let error = client.call(NEVER, "").unwrap_err();
            sender.send(error.kind()).unwrap();
        });
    }
    while session.stats().calls_received < CALLERS {
        thread::yield_now();
    }
    end(&client, &session);
    (0..CALLERS)
        .map(|_| ends.recv_timeout(PROMPT).unwrap())
        .collect()
}

#[test]
fn the_end_of_a_session_wakes_all_who_poll_on_either_side() {
    in_each_way(|wait| {
        let by_client = ended(wait, |client, _| client.abort());
        let by_server = ended(wait, |_, session| session.abort());
        for kind in by_client.into_iter().chain(by_server) {
            assert_eq!(kind, ErrorKind::Disconnected, "{wait:?}");
        }
    });
}

#[test]
fn sessions_close_cleanly_and_their_readers_end() {
    in_each_way(|wait| {
        let (server, client, session) = pair(wait);
        client.call(ECHO, "busy").unwrap();
        let begun = Instant::now();
        let report = client.shutdown(LIMIT).unwrap();
        assert_eq!(report.reason, CloseReason::Clean, "{wait:?}: {report}");
        assert!(session.wait_closed(LIMIT).is_some());
        server.shutdown(LIMIT).unwrap();
        assert!(begun.elapsed() < PROMPT, "{wait:?}");
    });
}
