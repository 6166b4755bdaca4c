//! The end of a session whose messages wait for a worker.

use std::sync::{Arc, Mutex};

use trunkline::{Client, CloseReason, Server, SessionId};

use super::{ASK, Gate, NOTE, WAIT, pool};
use crate::support::bodies::number;
use crate::support::{LIMIT, eventually, server_session, within};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Push(u32),
    Call,
    Closed,
}

type Events = Arc<Mutex<Vec<(SessionId, Event)>>>;

/// A server with one worker, whose handlers note what they do; those of `WAIT` pass the gate.
fn noting(messages: usize, ordered: bool) -> (Server, Gate, Events) {
    let (gate, events) = (Gate::default(), Events::default());
    let keep = gate.clone();
    let [pushes, calls, ends] = [(); 3].map(|()| events.clone());
    let server = Server::builder()
        .dispatch(pool(1, messages, ordered))
        .on_call(WAIT, move |_, _| keep.pass())
        .on_push(NOTE, move |cx, body| {
            let event = Event::Push(number(&body));
            pushes.lock().unwrap().push((cx.session().id(), event));
        })
        .on_call(ASK, move |cx, _| {
            calls.lock().unwrap().push((cx.session().id(), Event::Call));
        })
        .on_closed(move |session, _| {
            ends.lock().unwrap().push((session.id(), Event::Closed));
        })
        .bind("127.0.0.1:0")
        .unwrap();
    (server, gate, events)
}

fn events_of(events: &Events, client: &Client) -> Vec<Event> {
    let events = events.lock().unwrap();
    let own = events.iter().filter(|(id, _)| *id == client.id());
    own.map(|(_, event)| *event).collect()
}

fn has_ended(events: &Events, client: &Client) -> bool {
    events_of(events, client).contains(&Event::Closed)
}

fn pushes_and_end(count: u32) -> Vec<Event> {
    let pushes = (0..count).map(Event::Push);
    pushes.chain([Event::Closed]).collect()
}

#[test]
fn all_that_was_received_is_handled_before_the_closed_event() {
    within(LIMIT, || {
        for ordered in [true, false] {
            let (server, gate, events) = noting(100, ordered);
            let client = Client::connect(server.local_address()).unwrap();
            let kept = client.request(WAIT).start(()).unwrap();
            gate.wait_for(1);
            for round in 0..50u32 {
                client.push(NOTE, round.to_le_bytes()).unwrap();
            }
            let session = server_session(&server, client.id());
            assert!(eventually(LIMIT, || session.stats().received_messages == 51));
            client.close();
            assert!(eventually(LIMIT, || session.is_closed()));
            assert_eq!(events_of(&events, &client), []);
            gate.open();
            kept.wait().unwrap();
            let report = client.wait_closed(LIMIT).unwrap();
            assert_eq!(report.reason, CloseReason::Clean);
            assert_eq!(report.confirmed.messages, 51);
            server.shutdown(LIMIT).unwrap();
            assert!(eventually(LIMIT, || has_ended(&events, &client)));
            let mut events = events_of(&events, &client);
            if !ordered {
                // The reader helps the worker.
                events[..50].sort_by_key(|event| match event {
                    Event::Push(number) => *number,
                    _ => u32::MAX,
                });
            }
            assert_eq!(events, pushes_and_end(50));
        }
    });
}

#[test]
fn what_was_read_is_handled_though_the_pool_is_full_at_the_end() {
    within(LIMIT, || {
        let ends: [fn(&Client); 2] = [|client| client.close(), |client| client.abort()];
        for end in ends {
            let (server, gate, events) = noting(4, true);
            let [slow, other] = [(); 2].map(|()| Client::connect(server.local_address()).unwrap());
            let kept = slow.request(WAIT).start(()).unwrap();
            gate.wait_for(1);
            for round in 0..50u32 {
                other.push(NOTE, round.to_le_bytes()).unwrap();
            }
            // It has no handler, and so is read when all before it is; four wait in the pool, and
            // one for room.
            let behind = other.request("/behind").start(()).unwrap();
            let session = server_session(&server, other.id());
            assert!(eventually(LIMIT, || session.stats().calls_received == 1));
            assert_eq!(session.stats().received_messages, 5);
            end(&other);
            assert!(eventually(LIMIT, || has_ended(&events, &other)));
            assert_eq!(events_of(&events, &other), pushes_and_end(50));
            gate.open();
            kept.wait().unwrap();
            behind.wait().unwrap_err();
        }
    });
}

#[test]
fn a_session_ends_though_all_workers_are_kept_by_another() {
    within(LIMIT, || {
        for ordered in [true, false] {
            let (server, gate, events) = noting(100, ordered);
            let [slow, other] = [(); 2].map(|()| Client::connect(server.local_address()).unwrap());
            let kept = slow.request(WAIT).start(()).unwrap();
            gate.wait_for(1);
            for round in 0..20u32 {
                other.push(NOTE, round.to_le_bytes()).unwrap();
            }
            let report = other.shutdown(LIMIT).unwrap();
            assert_eq!(report.reason, CloseReason::Clean);
            assert_eq!(report.confirmed.messages, 20);
            assert!(eventually(LIMIT, || has_ended(&events, &other)));
            assert_eq!(events_of(&events, &other), pushes_and_end(20));
            gate.open();
            kept.wait().unwrap();
        }
    });
}

#[test]
fn calls_that_wait_when_the_line_is_cut_are_not_run_and_pushes_are() {
    within(LIMIT, || {
        for ordered in [true, false] {
            let (server, gate, events) = noting(100, ordered);
            let client = Client::connect(server.local_address()).unwrap();
            let _kept = client.request(WAIT).start(()).unwrap();
            gate.wait_for(1);
            let pending: Vec<_> = (0..5u32)
                .map(|round| {
                    client.push(NOTE, round.to_le_bytes()).unwrap();
                    client.request(ASK).start(()).unwrap()
                })
                .collect();
            let session = server_session(&server, client.id());
            assert!(eventually(LIMIT, || session.stats().received_messages == 11));
            client.abort();
            assert!(eventually(LIMIT, || session.is_closed()));
            gate.open();
            assert!(eventually(LIMIT, || has_ended(&events, &client)));
            assert_eq!(events_of(&events, &client), pushes_and_end(5));
            assert_eq!(session.stats().calls_dropped, 5);
            drop(pending);
        }
    });
}

#[test]
fn calls_that_wait_when_the_session_closes_are_answered() {
    within(LIMIT, || {
        let (server, gate, events) = noting(100, true);
        let client = Client::connect(server.local_address()).unwrap();
        let kept = client.request(WAIT).start(()).unwrap();
        gate.wait_for(1);
        let pending = [(); 5].map(|()| client.request(ASK).start(()).unwrap());
        let session = server_session(&server, client.id());
        assert!(eventually(LIMIT, || session.stats().received_messages == 6));
        session.close();
        gate.open();
        for pending in pending.into_iter().chain([kept]) {
            pending.wait().unwrap();
        }
        assert_eq!(
            client.wait_closed(LIMIT).unwrap().reason,
            CloseReason::Clean
        );
        assert!(eventually(LIMIT, || has_ended(&events, &client)));
        assert_eq!(session.stats().calls_dropped, 0);
    });
}
