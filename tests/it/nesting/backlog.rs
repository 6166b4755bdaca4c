//! What comes while a handler waits for a call: held in order, run at once, or refused.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, Error, ErrorKind, Limits, Server, Session, Status};

use crate::support::bodies::number;
use crate::support::{LIMIT, eventually, within};

const WAIT: u32 = 1;
const ASK: u32 = 2;
const NOTE: u32 = 3;
const NOTE_CALL: u32 = 4;
const NOW: u32 = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Push(u32),
    Call(u32),
    /// A call that descends from the one that is waited for.
    Now(u32),
    /// The waiting handler goes on, with this error, if any.
    WentOn(Option<ErrorKind>),
}

type Events = Arc<Mutex<Vec<Event>>>;

/// A server that notes in which order its handlers run. The handler of `WAIT` does `wait`, and
/// notes how that ended.
fn noting(
    limits: Limits,
    wait: impl Fn(&Session) -> Result<(), Error> + Send + Sync + 'static,
) -> (Server, Events) {
    let events: Events = Arc::default();
    let [waits, pushes, calls, now] = [0; 4].map(|_| events.clone());
    let server = Server::builder()
        .limits(limits)
        .on_call(WAIT, move |cx, _| {
            let error = wait(cx.session()).err();
            let event = Event::WentOn(error.map(|error| error.kind()));
            waits.lock().unwrap().push(event);
        })
        .on_push(NOTE, move |_, body| {
            pushes.lock().unwrap().push(Event::Push(number(&body)));
        })
        .on_call(NOTE_CALL, move |_, body| {
            calls.lock().unwrap().push(Event::Call(number(&body)));
            body.to_vec()
        })
        .on_call(NOW, move |_, body| {
            now.lock().unwrap().push(Event::Now(number(&body)));
        })
        .bind("127.0.0.1:0")
        .unwrap();
    (server, events)
}

fn small_backlog() -> Limits {
    let mut limits = Limits::default();
    limits.backlog_messages = 10;
    limits
}

fn ask(session: &Session) -> Result<(), Error> {
    session.call(ASK, ()).map(drop)
}

#[test]
fn pushes_and_calls_that_come_while_a_handler_waits_run_after_it_in_order() {
    within(Duration::from_secs(30), || {
        let (server, events) = noting(Limits::default(), ask);
        let (sender, others) = mpsc::channel();
        let client = Client::builder()
            .on_call(ASK, move |cx, _| {
                let session = cx.session();
                // Having waited, the handler's output is not gathered any more, and so in order
                // with that of its threads.
                session.flush(LIMIT).unwrap();
                for round in 0..50u32 {
                    session.push(NOTE, round.to_le_bytes()).unwrap();
                    let other = session.clone();
                    // A thread's call does not descend from what this handler serves.
                    let call = thread::spawn(move || {
                        let call = other.request(NOTE_CALL);
                        call.start(round.to_le_bytes()).unwrap()
                    });
                    sender.send(call.join().unwrap()).unwrap();
                    if round % 10 == 9 {
                        // Answered, so all before it has been read.
                        session.call(NOW, round.to_le_bytes()).unwrap();
                    }
                }
            })
            .connect(server.local_address())
            .unwrap();
        for _ in 0..20 {
            client.call(WAIT, ()).unwrap();
            for round in 0..50u32 {
                let call = others.recv_timeout(LIMIT).unwrap();
                assert_eq!(number(call.wait().unwrap().body()), round);
            }
            let mut expected: Vec<Event> = (0..5).map(|round| Event::Now(round * 10 + 9)).collect();
            expected.push(Event::WentOn(None));
            expected.extend((0..50).flat_map(|round| [Event::Push(round), Event::Call(round)]));
            assert_eq!(std::mem::take(&mut *events.lock().unwrap()), expected);
        }
    });
}

#[test]
fn calls_that_the_backlog_cannot_hold_are_answered_overloaded() {
    within(Duration::from_secs(30), || {
        let (server, events) = noting(small_backlog(), ask);
        let (sender, refused) = mpsc::channel();
        let client = Client::builder()
            .on_call(ASK, move |cx, _| {
                let session = cx.session();
                session.flush(LIMIT).unwrap();
                for index in 0..10u32 {
                    session.push(NOTE, index.to_le_bytes()).unwrap();
                }
                thread::scope(|scope| {
                    scope.spawn(|| {
                        for index in 0..20u32 {
                            let refusal = session.call(NOTE_CALL, index.to_le_bytes());
                            sender.send(refusal.unwrap_err()).unwrap();
                        }
                    });
                });
                // A call that descends needs no place there.
                session.call(NOW, 0u32.to_le_bytes()).unwrap();
            })
            .connect(server.local_address())
            .unwrap();
        client.call(WAIT, ()).unwrap();
        for _ in 0..20 {
            let error = refused.recv_timeout(LIMIT).unwrap();
            assert_eq!(error.status().unwrap().code(), Status::OVERLOADED);
            assert!(error.is_retryable());
        }
        call_after_the_backlog(&client);
        let mut expected = vec![Event::Now(0), Event::WentOn(None)];
        expected.extend((0..10).map(Event::Push));
        expected.push(Event::Call(0));
        assert_eq!(*events.lock().unwrap(), expected);
    });
}

/// Calls once the backlog can hold it; the answer then comes when all in it has been handled.
fn call_after_the_backlog(client: &Client) {
    assert!(eventually(LIMIT, || {
        match client.call(NOTE_CALL, 0u32.to_le_bytes()) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.status().unwrap().code(), Status::OVERLOADED);
                false
            }
        }
    }));
}

/// A client that answers `ASK` only after more pushes than the backlog holds were received.
fn flooding(server: &Server, more: u32) -> Client {
    Client::builder()
        .on_call(ASK, move |cx, _| {
            for index in 0..10 + more {
                cx.session().push(NOTE, index.to_le_bytes()).unwrap();
            }
        })
        .connect(server.local_address())
        .unwrap()
}

#[test]
fn a_push_that_cannot_be_held_ends_the_waiting_call_and_nothing_is_lost() {
    within(Duration::from_secs(30), || {
        for more in [1, 100] {
            let (server, events) = noting(small_backlog(), ask);
            let client = flooding(&server, more);
            client.call(WAIT, ()).unwrap();
            call_after_the_backlog(&client);
            let mut expected = vec![Event::WentOn(Some(ErrorKind::WouldDeadlock))];
            expected.extend((0..10 + more).map(Event::Push));
            expected.push(Event::Call(0));
            assert_eq!(*events.lock().unwrap(), expected);
        }
    });
}

#[test]
fn a_call_that_ended_because_a_push_could_not_be_held_was_perhaps_executed() {
    within(Duration::from_secs(30), || {
        let (sender, errors) = mpsc::channel();
        let (server, _) = noting(small_backlog(), move |session| {
            let error = session.call(ASK, ()).unwrap_err();
            sender.send(error.clone()).unwrap();
            Err(error)
        });
        let client = flooding(&server, 5);
        client.call(WAIT, ()).unwrap();
        let error = errors.recv_timeout(LIMIT).unwrap();
        assert_eq!(error.kind(), ErrorKind::WouldDeadlock);
        assert!(error.maybe_executed(), "{error:?}");
    });
}

#[test]
fn a_handler_that_calls_again_and_again_with_a_full_backlog_is_refused_each_time() {
    within(Duration::from_secs(15), || {
        let (server, events) = noting(small_backlog(), |session| {
            let mut last = Ok(());
            for _ in 0..5 {
                last = ask(session);
                let error = last.as_ref().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::WouldDeadlock);
            }
            last
        });
        let client = flooding(&server, 60);
        client.call(WAIT, ()).unwrap();
        call_after_the_backlog(&client);
        let events = events.lock().unwrap();
        assert_eq!(events[0], Event::WentOn(Some(ErrorKind::WouldDeadlock)));
        let first: Vec<Event> = (0..70).map(Event::Push).collect();
        assert_eq!(events[1..71], first);
    });
}

#[test]
fn a_handler_that_waits_for_another_threads_call_is_released_too() {
    within(Duration::from_secs(15), || {
        let (server, events) = noting(small_backlog(), |session| {
            let other = session.clone();
            let call = thread::spawn(move || other.request(ASK).start(()).unwrap());
            call.join().unwrap().wait().map(drop)
        });
        let client = flooding(&server, 60);
        client.call(WAIT, ()).unwrap();
        call_after_the_backlog(&client);
        let mut expected = vec![Event::WentOn(Some(ErrorKind::WouldDeadlock))];
        expected.extend((0..70).map(Event::Push));
        expected.push(Event::Call(0));
        assert_eq!(*events.lock().unwrap(), expected);
    });
}

#[test]
fn a_call_that_no_handler_waits_for_is_not_ended_by_a_full_backlog() {
    within(Duration::from_secs(15), || {
        let (sender, outcome) = mpsc::channel();
        let (server, _) = noting(small_backlog(), move |session| {
            let sender = sender.clone();
            let left_alone = session.request(NOTE_CALL).start(7u32.to_le_bytes())?;
            left_alone.on_reply(move |reply| sender.send(reply).unwrap());
            ask(session)
        });
        let (sender, held) = mpsc::channel();
        let client = Client::builder()
            .on_call(NOTE_CALL, move |cx, _| {
                let (responder, deferred) = cx.defer();
                sender.send(responder).unwrap();
                deferred
            })
            .on_call(ASK, |cx, _| {
                for index in 0..50u32 {
                    cx.session().push(NOTE, index.to_le_bytes()).unwrap();
                }
            })
            .connect(server.local_address())
            .unwrap();
        client.call(WAIT, ()).unwrap();
        held.recv_timeout(LIMIT).unwrap().reply(b"answered");
        let reply = outcome.recv_timeout(LIMIT).unwrap();
        assert_eq!(reply.unwrap().body(), b"answered");
    });
}
