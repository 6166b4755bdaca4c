//! Handlers on workers that call, wait and shut down.

use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use trunkline::{
    Body, Client, CloseReason, Context, ErrorKind, Hub, Limits, Server, SessionId, Status,
};

use super::{ASK, NOTE, WAIT, pool};
use crate::support::bodies::number;
use crate::support::{LIMIT, eventually, server_session, within};

const DESCEND: u32 = 10;
const CROSS: u32 = 11;

/// Calls the peer's handler of the same kind, which calls this one, and so on; the answer is
/// how deep it went.
fn descend(cx: &Context<'_>, body: Body<'_>) -> Result<[u8; 4], Status> {
    let left = number(&body);
    if left == 0 {
        return Ok([0; 4]);
    }
    let reply = cx.session().call(DESCEND, (left - 1).to_le_bytes())?;
    Ok((number(reply.body()) + 1).to_le_bytes())
}

#[test]
fn handlers_on_pools_of_one_thread_call_each_other_in_turns() {
    within(Duration::from_secs(60), || {
        for ordered in [true, false] {
            let server = Server::builder()
                .dispatch(pool(1, 4, ordered))
                .on_call(DESCEND, descend)
                .bind("127.0.0.1:0")
                .unwrap();
            let client = Client::builder()
                .dispatch(pool(1, 4, ordered))
                .on_call(DESCEND, descend)
                .connect(server.local_address())
                .unwrap();
            let session = server_session(&server, client.id());
            thread::scope(|scope| {
                for side in [client.session(), session.clone()] {
                    scope.spawn(move || {
                        for depth in (0..200u32).map(|round| 1 + round % 5) {
                            let reply = side.call(DESCEND, depth.to_le_bytes()).unwrap();
                            assert_eq!(number(reply.body()), depth);
                        }
                    });
                }
            });
        }
    });
}

#[test]
fn a_handler_calls_another_session_whose_handler_calls_back() {
    within(Duration::from_secs(60), || {
        let hub: Arc<OnceLock<Hub>> = Arc::default();
        let found = hub.clone();
        let server = Server::builder()
            .dispatch(pool(1, 4, true))
            .on_call(CROSS, move |_, body| -> Result<Vec<u8>, Status> {
                let id = u64::from_le_bytes(body[..8].try_into().unwrap());
                let session = found.get().unwrap().session(SessionId(id))?;
                Ok(session.call(ASK, body.to_vec())?.into_body())
            })
            .on_call(DESCEND, descend)
            .bind("127.0.0.1:0")
            .unwrap();
        hub.set(server.hub().clone()).unwrap();
        let clients = [(); 2].map(|()| {
            Client::builder()
                .dispatch(pool(1, 4, true))
                .on_call(ASK, |cx, body| -> Result<Vec<u8>, Status> {
                    cx.session().call(DESCEND, 3u32.to_le_bytes())?;
                    Ok(body.to_vec())
                })
                .on_call(DESCEND, descend)
                .connect(server.local_address())
                .unwrap()
        });
        thread::scope(|scope| {
            for side in 0..2 {
                let (own, other) = (&clients[side], &clients[1 - side]);
                scope.spawn(move || {
                    for round in 0..200u64 {
                        let ask = [other.id().0.to_le_bytes(), round.to_le_bytes()].concat();
                        assert_eq!(own.call(CROSS, &ask).unwrap().body(), ask);
                    }
                });
            }
        });
    });
}

/// Limits with which a flood soon fills the backlog.
fn small_backlog() -> Limits {
    let mut limits = Limits::default();
    limits.backlog_messages = 8;
    limits
}

#[test]
fn a_worker_whose_call_cannot_be_answered_goes_on_and_loses_nothing() {
    within(Duration::from_secs(60), || {
        type Seen = Arc<Mutex<(Vec<u32>, usize)>>;
        let seen = Seen::default();
        let noted = seen.clone();
        let server = Server::builder()
            .on_call(ASK, |_, body| body.to_vec())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .limits(small_backlog())
            .dispatch(pool(1, 4, true))
            .on_push(NOTE, move |cx, body| {
                let outcome = cx.session().call(ASK, body.as_bytes());
                let mut seen = noted.lock().unwrap();
                seen.0.push(number(&body));
                if let Err(error) = outcome {
                    assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
                    seen.1 += 1;
                }
            })
            .connect(server.local_address())
            .unwrap();
        let session = server_session(&server, client.id());
        for round in 0..5_000u32 {
            session.push(NOTE, round.to_le_bytes()).unwrap();
        }
        assert!(eventually(5 * LIMIT, || seen.lock().unwrap().0.len() == 5_000));
        let seen = seen.lock().unwrap();
        assert!(seen.0.iter().copied().eq(0..5_000));
        assert!(seen.1 > 0);
        assert_eq!(client.stats().panics, 0);
        // The flood is over.
        client.call(ASK, ()).unwrap();
    });
}

#[test]
fn a_worker_is_known_at_every_session_of_its_pool() {
    within(Duration::from_secs(30), || {
        let numbers: Arc<Mutex<Vec<u32>>> = Arc::default();
        let handled = numbers.clone();
        let server = Server::builder()
            .limits(small_backlog())
            .dispatch(pool(1, 4, true))
            .on_call(WAIT, |cx, body| {
                let id = u64::from_le_bytes(body[..8].try_into().unwrap());
                let other = cx.hub().unwrap().session(SessionId(id)).unwrap();
                let error = other.call(ASK, ()).unwrap_err();
                format!("{:?}", error.kind())
            })
            .on_push(NOTE, move |_, body| {
                handled.lock().unwrap().push(number(&body));
            })
            .bind("127.0.0.1:0")
            .unwrap();
        // Its answer comes behind more than pool and backlog hold.
        let flooding = Client::builder()
            .on_call(ASK, |cx, _| {
                for round in 0..100u32 {
                    cx.session().push(NOTE, round.to_le_bytes()).unwrap();
                }
            })
            .connect(server.local_address())
            .unwrap();
        let asking = Client::connect(server.local_address()).unwrap();
        server_session(&server, flooding.id());
        let outcome: String = asking.call_as(WAIT, flooding.id().0.to_le_bytes()).unwrap();
        assert_eq!(outcome, "WouldDeadlock");
        assert!(eventually(LIMIT, || numbers.lock().unwrap().len() == 100));
        assert!(numbers.lock().unwrap().iter().copied().eq(0..100));
    });
}

#[test]
fn a_handler_on_a_worker_does_not_wait_for_what_waits_for_it() {
    within(LIMIT, || {
        let server: Arc<OnceLock<Server>> = Arc::default();
        let found = server.clone();
        let builder = Server::builder()
            .dispatch(pool(2, 4, true))
            .on_call("/end", |cx, _| {
                let session = cx.session();
                let error = session.shutdown(Duration::MAX).unwrap_err();
                assert!(session.wait_closed(Duration::MAX).is_none());
                format!("{:?}", error.kind())
            })
            .on_call("/end-all", move |_, _| {
                let error = found.get().unwrap().shutdown(Duration::MAX).unwrap_err();
                format!("{:?}", error.kind())
            });
        let server = server.get_or_init(|| builder.bind("127.0.0.1:0").unwrap());
        for route in ["/end", "/end-all"] {
            let client = Client::connect(server.local_address()).unwrap();
            let outcome: String = client.call_as(route, ()).unwrap();
            assert_eq!(outcome, "WouldDeadlock");
            let report = client.wait_closed(LIMIT).unwrap();
            assert_eq!(report.reason, CloseReason::Clean);
        }
        assert!(eventually(LIMIT, || server.hub().is_empty()));
    });
}
