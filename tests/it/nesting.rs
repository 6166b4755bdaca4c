//! Calls made by handlers: on their own session, in turns with the peer, across sessions.

mod backlog;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Body, Client, Context, ErrorKind, Server, Session, SessionId, Status};

use crate::support::bodies::number;
use crate::support::{
    LIMIT, STARTS_A_PROCESS, child, child_role, eventually, left_out_under_emulation, millis,
    within,
};

const DESCEND: u32 = 1;
const ASK: u32 = 2;
const CROSS: u32 = 3;

/// The status of a handler whose call was refused because it could never end.
const REFUSED: i32 = 1_017;

/// Calls the peer's handler of the same kind, which calls this one, and so on; the answer is
/// how deep it went.
fn descend(cx: &Context<'_>, body: Body<'_>) -> Result<[u8; 4], Status> {
    let left = number(&body);
    if left == 0 {
        return Ok([0; 4]);
    }
    let reply = cx
        .session()
        .call(DESCEND, (left - 1).to_le_bytes())
        .map_err(|error| match error.kind() {
            ErrorKind::WouldDeadlock => Status::new(REFUSED, error.to_string()),
            _ => Status::from(error),
        })?;
    Ok((number(reply.body()) + 1).to_le_bytes())
}

/// A server and a client that both descend; how many handlers ran.
fn descending() -> (Server, Client, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let counts = [ran.clone(), ran.clone()];
    let [at_server, at_client] = counts.map(|ran| {
        move |cx: &Context<'_>, body: Body<'_>| {
            ran.fetch_add(1, Ordering::SeqCst);
            descend(cx, body)
        }
    });
    let server = Server::builder()
        .on_call(DESCEND, at_server)
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Client::builder()
        .on_call(DESCEND, at_client)
        .connect(server.local_address())
        .unwrap();
    (server, client, ran)
}

#[test]
fn handlers_of_both_sides_call_each_other_in_turns() {
    within(Duration::from_secs(30), || {
        let (server, client, ran) = descending();
        let session = server.hub().session(client.id()).unwrap();
        for depth in [1u32, 2, 3, 5, 12] {
            for side in [&client.session(), &session] {
                ran.store(0, Ordering::SeqCst);
                let reply = side.call(DESCEND, depth.to_le_bytes()).unwrap();
                assert_eq!(number(reply.body()), depth);
                assert_eq!(ran.load(Ordering::SeqCst), depth as usize + 1);
            }
        }
    });
}

#[test]
fn both_sides_begin_calls_in_turns_at_the_same_time() {
    within(Duration::from_secs(60), || {
        let (server, client, ran) = descending();
        let session = server.hub().session(client.id()).unwrap();
        let at_client = client.session();
        thread::scope(|scope| {
            for side in [&at_client, &session] {
                scope.spawn(move || {
                    for round in 0..500 {
                        let depth = 1 + round % 5;
                        let reply = side.call(DESCEND, u32::to_le_bytes(depth)).unwrap();
                        assert_eq!(number(reply.body()), depth);
                    }
                });
            }
        });
        assert_eq!(ran.load(Ordering::SeqCst), 2 * 500 * 4);
        assert_eq!(
            client.stats().late_replies + session.stats().late_replies,
            0
        );
    });
}

#[test]
fn a_call_that_would_go_too_deep_is_refused_and_everything_unwinds() {
    within(Duration::from_secs(30), || {
        let (server, client, ran) = descending();
        let session = server.hub().session(client.id()).unwrap();
        for _ in 0..3 {
            ran.store(0, Ordering::SeqCst);
            let error = client.call(DESCEND, 100u32.to_le_bytes()).unwrap_err();
            let status = error.status().unwrap();
            assert_eq!(status.code(), REFUSED, "{error:?}");
            // Sixteen handlers wait on each side; the one above them is refused, and what it
            // would have called is not executed.
            assert_eq!(ran.load(Ordering::SeqCst), 33);
            let reply = client.call(DESCEND, 5u32.to_le_bytes()).unwrap();
            assert_eq!(number(reply.body()), 5);
            let reply = session.call(DESCEND, 5u32.to_le_bytes()).unwrap();
            assert_eq!(number(reply.body()), 5);
            assert_eq!(ran.load(Ordering::SeqCst), 33 + 12);
        }
        for session in [&client.session(), &session] {
            assert!(eventually(LIMIT, || session.stats().calls_in_flight == 0));
        }
    });
}

#[test]
fn handlers_of_two_sessions_call_across_each_other() {
    within(Duration::from_secs(60), || {
        let hub: Arc<Mutex<Option<trunkline::Hub>>> = Arc::default();
        let found = hub.clone();
        let server = Server::builder()
            .on_call(CROSS, move |_, body| -> Result<Vec<u8>, Status> {
                let id = u64::from_le_bytes(body[..8].try_into().unwrap());
                let hub = found.lock().unwrap().clone().unwrap();
                let reply = hub.session(SessionId(id))?.call(ASK, body.to_vec())?;
                Ok(reply.into_body())
            })
            .on_call(DESCEND, descend)
            .bind("127.0.0.1:0")
            .unwrap();
        *hub.lock().unwrap() = Some(server.hub().clone());
        // The handler that is asked calls its own server in turn.
        let clients = [0, 1].map(|_| {
            Client::builder()
                .on_call(ASK, |cx, body| -> Result<Vec<u8>, Status> {
                    cx.session().call(DESCEND, 3u32.to_le_bytes())?;
                    Ok(body.to_vec())
                })
                .on_call(DESCEND, descend)
                .connect(server.local_address())
                .unwrap()
        });
        thread::scope(|scope| {
            for thread in 0..4 {
                let (own, other) = (&clients[thread % 2], &clients[1 - thread % 2]);
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

#[test]
fn either_side_calls_when_the_session_begins() {
    within(Duration::from_secs(30), || {
        for server_calls in [true, false] {
            let (sender, answers) = mpsc::channel();
            let begin = move |session: &Session| {
                let reply = session.call(DESCEND, 4u32.to_le_bytes());
                sender.send(number(reply.unwrap().body())).unwrap();
            };
            let mut server = Server::builder().on_call(DESCEND, descend);
            if server_calls {
                server = server.on_connected(begin.clone());
            }
            let server = server.bind("127.0.0.1:0").unwrap();
            for _ in 0..50 {
                let mut client = Client::builder().on_call(DESCEND, descend);
                if !server_calls {
                    client = client.on_connected(begin.clone());
                }
                let client = client.connect(server.local_address()).unwrap();
                let reply = client.call(DESCEND, 5u32.to_le_bytes()).unwrap();
                assert_eq!(number(reply.body()), 5);
                assert_eq!(answers.recv_timeout(LIMIT).unwrap(), 4);
            }
        }
    });
}

/// Each call waits its turn behind the handler that makes the other.
#[test]
fn handlers_that_wait_for_each_others_turn_end_in_their_time_limit() {
    within(Duration::from_secs(30), || {
        let (sender, outcomes) = mpsc::channel();
        let begin = move |session: &Session| {
            let call = session.request(DESCEND).timeout(millis(200));
            let _ = sender.send(call.call(0u32.to_le_bytes()).err());
        };
        let server = Server::builder()
            .on_call(DESCEND, descend)
            .on_connected(begin.clone())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .on_call(DESCEND, descend)
            .on_connected(begin)
            .connect(server.local_address())
            .unwrap();
        for _ in 0..2 {
            if let Some(error) = outcomes.recv_timeout(LIMIT).unwrap() {
                assert!(error.is_timeout(), "{error:?}");
            }
        }
        let session = server.hub().session(client.id()).unwrap();
        for side in [&client.session(), &session] {
            let reply = side.call(DESCEND, 5u32.to_le_bytes()).unwrap();
            assert_eq!(number(reply.body()), 5);
            assert!(eventually(LIMIT, || side.stats().calls_in_flight == 0));
        }
    });
}

fn reader_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).ok())
        .filter(|name| name.starts_with("tl-read"))
        .count()
}

/// In a process of its own, whose threads nobody else starts and ends.
#[test]
fn substitutes_are_used_again_and_again() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    const NAME: &str = "nesting::substitutes_are_used_again_and_again";
    if child_role().is_none() {
        let output = within(Duration::from_secs(60), || {
            child(NAME, "run").output().unwrap()
        });
        assert!(output.status.success(), "{output:?}");
        return;
    }
    within(Duration::from_secs(50), || {
        let (server, client, _) = descending();
        let session = server.hub().session(client.id()).unwrap();
        let rounds = |count: u32| {
            for _ in 0..count {
                for side in [&client.session(), &session] {
                    let reply = side.call(DESCEND, 5u32.to_le_bytes()).unwrap();
                    assert_eq!(number(reply.body()), 5);
                }
            }
            reader_threads()
        };
        // Three handlers wait on one side and two on the other, beside the two that read; a
        // thread that is late on its way to its rest may be replaced once more.
        for count in [50, 50, 1_000] {
            let threads = rounds(count);
            assert!((8..=12).contains(&threads), "{threads} threads read");
        }
    });
}
