//! Messages of one thread arrive in the order in which it sent them, whichever way they went
//! out: written by the sender, by the writer thread, or gathered by the reader.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, Server, Session};

use crate::support::bodies::{Random, body, number};
use crate::support::{LIMIT, millis, within};

const START: u32 = 1;
const PUSH: u32 = 2;
const ASK: u32 = 3;
const BULK: u32 = 4;

/// What the client saw of one handler's output, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Push(u32, usize),
    Call(usize),
    Reply(usize),
}

/// A server whose handler pushes, calls back, pushes and replies, each with `size` bytes.
fn talkative(size: usize) -> Server {
    Server::builder()
        .on_call(START, move |cx, _| {
            let session = cx.session();
            session.push(PUSH, body(1, 0, size)).unwrap();
            session.call(ASK, body(2, 0, size)).unwrap();
            session.push(PUSH, body(1, 1, size)).unwrap();
            session.push(PUSH, body(1, 2, size)).unwrap();
            body(3, 0, size)
        })
        .bind("127.0.0.1:0")
        .unwrap()
}

/// A client that notes what it sees, on its reader, so in the order of arrival.
fn noting(server: &Server, seen: &Arc<Mutex<Vec<Seen>>>) -> Client {
    let (pushes, calls) = (seen.clone(), seen.clone());
    Client::builder()
        .on_push(PUSH, move |_, got| {
            let index = (0..3).find(|index| body(1, *index, got.len()) == got.as_bytes());
            let index = if got.is_empty() {
                u32::MAX
            } else {
                index.unwrap()
            };
            pushes.lock().unwrap().push(Seen::Push(index, got.len()));
        })
        .on_call(ASK, move |_, got| {
            calls.lock().unwrap().push(Seen::Call(got.len()));
        })
        .on_push(BULK, |_, _| {})
        .connect(server.local_address())
        .unwrap()
}

fn one_round(client: &Client, seen: &Arc<Mutex<Vec<Seen>>>, size: usize) {
    let (sender, done) = mpsc::channel();
    let replies = seen.clone();
    let pending = client.request(START).start(()).unwrap();
    pending.on_reply(move |reply| {
        let length = reply.unwrap().body().len();
        replies.lock().unwrap().push(Seen::Reply(length));
        sender.send(()).unwrap();
    });
    done.recv_timeout(LIMIT).unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let mark = |index| if size == 0 { u32::MAX } else { index };
    assert_eq!(
        seen,
        [
            Seen::Push(mark(0), size),
            Seen::Call(size),
            Seen::Push(mark(1), size),
            Seen::Push(mark(2), size),
            Seen::Reply(size),
        ]
    );
}

#[test]
fn a_handlers_push_call_push_and_reply_arrive_in_that_order() {
    within(Duration::from_secs(60), || {
        for size in [0, 40, 3_000, 65_000, 66_000, 400_000] {
            let server = talkative(size);
            let seen = Arc::default();
            let client = noting(&server, &seen);
            for _ in 0..50 {
                one_round(&client, &seen, size);
            }
        }
    });
}

#[test]
fn a_handlers_output_keeps_its_order_between_the_bulk_of_other_threads() {
    within(Duration::from_secs(60), || {
        for size in [40, 66_000] {
            let server = talkative(size);
            let seen = Arc::default();
            let client = noting(&server, &seen);
            let session = server.hub().session(client.id()).unwrap();
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                for author in 0..3 {
                    let (session, stop) = (&session, &stop);
                    scope.spawn(move || {
                        let mut random = Random::new(author);
                        while !stop.load(Ordering::Relaxed) {
                            let size = random.size(100_000);
                            session.push(BULK, vec![7; size]).unwrap();
                        }
                    });
                }
                for _ in 0..100 {
                    one_round(&client, &seen, size);
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
    });
}

/// A server that hands on, in the order of arrival, the route and number of each message.
fn numbering() -> (Server, mpsc::Receiver<(u32, u32)>) {
    let (sender, arrived) = mpsc::channel();
    let pushes = sender.clone();
    let server = Server::builder()
        .on_other_pushes(move |cx, body| {
            let trunkline::Route::Number(route) = cx.route() else {
                panic!("{}", cx.route());
            };
            pushes.send((route, number(&body))).unwrap();
        })
        .on_other_calls(move |cx, body| {
            let trunkline::Route::Number(route) = cx.route() else {
                panic!("{}", cx.route());
            };
            sender.send((route, number(&body))).unwrap();
            body.to_vec()
        })
        .bind("127.0.0.1:0")
        .unwrap();
    (server, arrived)
}

fn expect_in_order(arrived: &mpsc::Receiver<(u32, u32)>, routes: u32, each: u32) {
    let mut next = vec![0; routes as usize];
    for _ in 0..routes * each {
        let (route, number) = arrived.recv_timeout(LIMIT).unwrap();
        assert_eq!(number, next[route as usize], "of thread {route}");
        next[route as usize] += 1;
    }
    assert_eq!(next, vec![each; routes as usize]);
}

#[test]
fn sixteen_threads_on_one_connection_keep_each_their_order() {
    within(Duration::from_secs(60), || {
        const EACH: u32 = 2_000;
        let (server, arrived) = numbering();
        let client = Client::connect(server.local_address()).unwrap();
        thread::scope(|scope| {
            for route in 0..16 {
                let client = &client;
                scope.spawn(move || {
                    for number in 0..EACH {
                        client.push(route, number.to_le_bytes()).unwrap();
                    }
                });
            }
            expect_in_order(&arrived, 16, EACH);
        });
    });
}

/// Bursts and pauses make the line change between the sender's own writes and the writer
/// thread, and sizes between slots, allocations and frames that are written alone.
fn burst(session: &Session, route: u32, seed: u64, count: u32) {
    let mut random = Random::new(seed);
    let mut calls = Vec::new();
    let mut left = 0;
    for number in 0..count {
        if left == 0 {
            left = 1 + random.below(60);
            match random.below(3) {
                0 => thread::sleep(Duration::from_micros(random.below(1_500))),
                1 => thread::yield_now(),
                _ => {}
            }
        }
        left -= 1;
        let mut body = number.to_le_bytes().to_vec();
        let most = if random.below(50) == 0 { 150_000 } else { 300 };
        body.resize(4 + random.size(most), 1);
        if random.below(4) == 0 {
            calls.push((number, session.request(route).start(body).unwrap()));
        } else {
            session.push(route, body).unwrap();
        }
    }
    for (expected, call) in calls {
        assert_eq!(number(call.wait().unwrap().body()), expected);
    }
}

#[test]
fn order_is_kept_when_the_line_changes_between_idle_and_busy() {
    within(Duration::from_secs(90), || {
        for seed in 1..=4 {
            println!("seed {seed}");
            let (server, arrived) = numbering();
            let client = Client::connect(server.local_address()).unwrap();
            let threads = if seed % 2 == 0 { 1 } else { 3 };
            thread::scope(|scope| {
                for route in 0..threads {
                    let client = &client;
                    scope.spawn(move || {
                        burst(
                            &client.session(),
                            route,
                            seed << 8 | u64::from(route),
                            1_500,
                        )
                    });
                }
                expect_in_order(&arrived, threads, 1_500);
            });
        }
    });
}

#[test]
fn what_a_handler_sends_by_and_by_keeps_its_order_with_what_it_sends_after_waiting() {
    within(Duration::from_secs(60), || {
        const EACH: u32 = 40;
        let server = Server::builder()
            .on_call(START, |cx, seed| {
                let session = cx.session();
                let mut random = Random::new(u64::from(number(&seed)));
                for number in 0..EACH {
                    let mut body = number.to_le_bytes().to_vec();
                    body.resize(4 + random.size(80_000), 0);
                    match random.below(6) {
                        0 => drop(session.call(ASK, body).unwrap()),
                        1 => {
                            session.flush(LIMIT).unwrap();
                            session.push(PUSH, body).unwrap();
                        }
                        2 => session.try_push(PUSH, body).unwrap_or_else(|unsent| {
                            session.push(PUSH, unsent.into_body()).unwrap();
                        }),
                        _ => session.push(PUSH, body).unwrap(),
                    }
                }
                EACH.to_le_bytes()
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let (sender, seen) = mpsc::channel();
        let calls = sender.clone();
        let client = Client::builder()
            .on_push(PUSH, move |_, body| sender.send(number(&body)).unwrap())
            .on_call(ASK, move |_, body| calls.send(number(&body)).unwrap())
            .connect(server.local_address())
            .unwrap();
        for seed in 0..60u32 {
            let reply = client.call(START, seed.to_le_bytes()).unwrap();
            assert_eq!(number(reply.body()), EACH);
            // All came before the reply, so all are there.
            let seen: Vec<u32> = seen.try_iter().collect();
            assert_eq!(seen, (0..EACH).collect::<Vec<_>>(), "seed {seed}");
        }
        assert!(client.shutdown(millis(5_000)).is_ok());
    });
}
