//! Handlers on a pool of worker threads.

mod ends;
mod full;
mod nested;
mod stale;
mod workers;

use std::collections::HashMap;
use std::sync::{Arc, Barrier, Condvar, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, Dispatch, ErrorKind, Pool, Server, SessionId};

use crate::support::bodies::number;
use crate::support::{LIMIT, eventually, server_session, within};

const NOTE: u32 = 1;
const ASK: u32 = 2;
const WAIT: u32 = 3;

fn pool(threads: usize, messages: usize, ordered: bool) -> Dispatch {
    let mut pool = Pool::default();
    pool.threads = threads;
    pool.messages = messages;
    pool.ordered = ordered;
    Dispatch::Pool(pool)
}

/// Keeps handlers until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<Passing>, Condvar)>);

#[derive(Default)]
struct Passing {
    is_open: bool,
    entered: usize,
}

impl Gate {
    fn pass(&self) {
        let (passing, changed) = &*self.0;
        let mut passing = passing.lock().unwrap();
        passing.entered += 1;
        changed.notify_all();
        drop(changed.wait_while(passing, |passing| !passing.is_open));
    }

    /// Waits until so many have come.
    fn wait_for(&self, entered: usize) {
        let (passing, changed) = &*self.0;
        let passing = passing.lock().unwrap();
        drop(changed.wait_while(passing, |passing| passing.entered < entered));
    }

    fn open(&self) {
        self.0.0.lock().unwrap().is_open = true;
        self.0.1.notify_all();
    }
}

#[test]
fn handlers_of_one_session_run_at_the_same_time_where_no_order_is_asked_for() {
    within(LIMIT, || {
        let meeting = Barrier::new(3);
        let server = Server::builder()
            .dispatch(pool(3, 16, false))
            .on_call(WAIT, move |_, _| {
                meeting.wait();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        for _ in 0..20 {
            let pending = [(); 3].map(|()| client.request(WAIT).start(()).unwrap());
            for pending in pending {
                pending.wait().unwrap();
            }
        }
    });
}

#[test]
fn handlers_of_different_sessions_run_at_the_same_time() {
    within(LIMIT, || {
        let meeting = Barrier::new(4);
        let server = Server::builder()
            .dispatch(pool(4, 16, true))
            .on_call(WAIT, move |_, _| {
                meeting.wait();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let clients = [(); 4].map(|()| Client::connect(server.local_address()).unwrap());
        let pending = clients.each_ref().map(|client| client.request(WAIT));
        let pending = pending.map(|request| request.start(()).unwrap());
        for pending in pending {
            pending.wait().unwrap();
        }
    });
}

#[test]
fn the_messages_of_one_session_are_handled_in_order_by_many_workers_under_load() {
    within(Duration::from_secs(60), || {
        /// What is next, and whether it is being handled.
        type Progress = Arc<Mutex<HashMap<SessionId, (u32, bool)>>>;
        let progress = Progress::default();
        let wrong = Arc::new(Mutex::new(Vec::new()));
        let handle = {
            let (progress, wrong) = (progress.clone(), wrong.clone());
            move |id: SessionId, number: u32| {
                let (next, is_busy) = *progress.lock().unwrap().entry(id).or_default();
                if (next, is_busy) != (number, false) {
                    wrong.lock().unwrap().push((id, number));
                }
                progress.lock().unwrap().insert(id, (next, true));
                thread::yield_now();
                progress.lock().unwrap().insert(id, (next + 1, false));
            }
        };
        let handle_call = handle.clone();
        let server = Server::builder()
            .dispatch(pool(4, 64, true))
            .on_push(NOTE, move |cx, body| {
                handle(cx.session().id(), number(&body));
            })
            .on_call(ASK, move |cx, body| {
                handle_call(cx.session().id(), number(&body));
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let clients = [(); 8].map(|()| Client::connect(server.local_address()).unwrap());
        thread::scope(|scope| {
            for client in &clients {
                scope.spawn(move || {
                    let mut calls = Vec::new();
                    for round in 0..1_000u32 {
                        match round % 8 {
                            7 => {
                                calls.push(client.request(ASK).start(round.to_le_bytes()).unwrap())
                            }
                            _ => client.push(NOTE, round.to_le_bytes()).unwrap(),
                        }
                    }
                    for call in calls {
                        call.wait().unwrap();
                    }
                });
            }
        });
        assert_eq!(*wrong.lock().unwrap(), []);
        let progress = progress.lock().unwrap();
        assert!(
            clients
                .iter()
                .all(|it| progress[&it.id()] == (1_000, false))
        );
    });
}

#[test]
fn a_handler_that_does_not_return_keeps_no_other_session_waiting() {
    within(LIMIT, || {
        let gate = Gate::default();
        let keep = gate.clone();
        let server = Server::builder()
            .dispatch(pool(2, 16, true))
            .on_call(WAIT, move |_, _| keep.pass())
            .on_call(ASK, |_, body| body.to_vec())
            .bind("127.0.0.1:0")
            .unwrap();
        let [slow, other] = [(); 2].map(|()| Client::connect(server.local_address()).unwrap());
        let kept = slow.request(WAIT).start(()).unwrap();
        let behind = slow.request(ASK).start("behind").unwrap();
        gate.wait_for(1);
        for _ in 0..100 {
            assert_eq!(other.call(ASK, "other").unwrap().body(), b"other");
        }
        gate.open();
        kept.wait().unwrap();
        assert_eq!(behind.wait().unwrap().body(), b"behind");
    });
}

#[test]
fn a_session_with_many_messages_lets_others_have_their_turn() {
    within(LIMIT, || {
        for ordered in [true, false] {
            let (gate, events) = (Gate::default(), Arc::new(Mutex::new(Vec::new())));
            let (keep, noted) = (gate.clone(), events.clone());
            let server = Server::builder()
                .dispatch(pool(1, 1_000, ordered))
                .on_push(WAIT, move |_, _| keep.pass())
                .on_push(NOTE, move |cx, _| {
                    noted.lock().unwrap().push(cx.session().id());
                })
                .bind("127.0.0.1:0")
                .unwrap();
            let clients = [(); 3].map(|()| Client::connect(server.local_address()).unwrap());
            let [keeper, busy, modest] = &clients;
            keeper.push(WAIT, ()).unwrap();
            gate.wait_for(1);
            for (client, count) in [(busy, 200), (modest, 1)] {
                for _ in 0..count {
                    client.push(NOTE, ()).unwrap();
                }
                // It has no handler, and its answer comes once all before it are in the pool.
                client.call(ASK, ()).unwrap_err();
            }
            gate.open();
            assert!(eventually(LIMIT, || events.lock().unwrap().len() == 201));
            let events = events.lock().unwrap();
            let turn = events.iter().position(|id| *id == modest.id()).unwrap();
            assert!(turn <= 16, "after {turn} messages of the busy session");
        }
    });
}

#[test]
fn answers_may_come_later_and_keep_no_worker() {
    within(LIMIT, || {
        let (sender, responders) = mpsc::channel();
        let server = Server::builder()
            .dispatch(pool(1, 16, true))
            .on_call(WAIT, move |cx, _| {
                let (responder, deferred) = cx.defer();
                sender.send(responder).unwrap();
                deferred
            })
            .on_call(ASK, |_, body| body.to_vec())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let later = client.request(WAIT).start(()).unwrap();
        assert_eq!(client.call(ASK, "now").unwrap().body(), b"now");
        responders.recv().unwrap().reply("later");
        assert_eq!(later.wait().unwrap().body(), b"later");
    });
}

#[test]
fn messages_without_a_handler_go_to_the_inbox_beside_a_pool() {
    within(LIMIT, || {
        let gate = Gate::default();
        let keep = gate.clone();
        let server = Server::builder()
            .dispatch(pool(1, 16, true))
            .inbox(4)
            .on_push(WAIT, move |_, _| keep.pass())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        client.push(WAIT, ()).unwrap();
        gate.wait_for(1);
        client.push(NOTE, "noted").unwrap();
        let pending = client.request(ASK).start(()).unwrap();
        let inbox = server.inbox().unwrap();
        assert_eq!(inbox.recv().unwrap().body(), b"noted");
        inbox.recv().unwrap().reply("answered").unwrap();
        assert_eq!(pending.wait().unwrap().body(), b"answered");
        gate.open();
    });
}

#[test]
fn a_client_may_have_a_pool_too() {
    within(LIMIT, || {
        let server = Server::builder().bind("127.0.0.1:0").unwrap();
        let client = Client::builder()
            .dispatch(pool(2, 16, true))
            .on_call(ASK, |_, _| thread::current().name().unwrap().to_owned())
            .connect(server.local_address())
            .unwrap();
        let session = server_session(&server, client.id());
        let name: String = session.call_as(ASK, ()).unwrap();
        assert_eq!(name, "tl-pool-1");
    });
}

#[test]
fn a_pool_without_threads_or_room_is_a_mistake() {
    within(LIMIT, || {
        for (threads, messages) in [(0, 16), (1, 0)] {
            let dispatch = pool(threads, messages, true);
            let server = Server::builder().dispatch(dispatch.clone());
            let client = Client::builder().dispatch(dispatch);
            let mistakes = [
                server.bind("127.0.0.1:0").unwrap_err(),
                client.connect("127.0.0.1:1").unwrap_err(),
            ];
            for mistake in mistakes {
                assert_eq!(mistake.kind(), ErrorKind::InvalidInput);
            }
        }
        let pool = Pool::default();
        assert!(pool.threads >= 2 && pool.messages == 1_024 && pool.ordered);
    });
}
