//! Bodies of every size arrive intact, from many threads on one connection at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, Route, Server};

use crate::support::bodies::{Random, body};
use crate::support::{LIMIT, within};

const LARGEST: usize = 4 << 20;
const SEED: u64 = 20;

/// The sizes that this thread sends, the smallest and the largest among them.
fn sizes(thread: u32, count: usize) -> Vec<usize> {
    let mut random = Random::new(SEED + u64::from(thread));
    let mut sizes: Vec<usize> = (0..count).map(|_| random.size(LARGEST)).collect();
    sizes[count / 3] = 0;
    sizes[count / 2] = LARGEST;
    sizes
}

fn pushed_by(threads: u32, count: usize) {
    let next: Arc<Mutex<Vec<usize>>> = Arc::new(Mutex::new(vec![0; threads as usize]));
    let left = Arc::new(AtomicUsize::new(threads as usize * count));
    let (sender, done) = mpsc::channel();
    let server = Server::builder()
        .on_other_pushes(move |cx, got| {
            let Route::Number(thread) = cx.route() else {
                panic!("{}", cx.route());
            };
            let mut next = next.lock().unwrap();
            let number = next[thread as usize];
            next[thread as usize] += 1;
            let expected = body(thread, number as u32, sizes(thread, count)[number]);
            let is_intact = got.as_bytes() == expected;
            let last = left.fetch_sub(1, Ordering::SeqCst) == 1;
            if !is_intact || last {
                let what = format!("{} bytes, message {number} of thread {thread}", got.len());
                sender.send((is_intact, what)).unwrap();
            }
        })
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Client::connect(server.local_address()).unwrap();
    thread::scope(|scope| {
        for thread in 0..threads {
            let client = &client;
            scope.spawn(move || {
                for (number, size) in sizes(thread, count).into_iter().enumerate() {
                    let body = body(thread, number as u32, size);
                    client.push(thread, body).unwrap();
                }
            });
        }
    });
    let (is_intact, what) = done.recv_timeout(LIMIT * 3).unwrap();
    assert!(is_intact, "{what} differ from what was sent, seed {SEED}");
    let report = client.shutdown(LIMIT).unwrap();
    assert_eq!(report.confirmed.messages, u64::from(threads) * count as u64);
}

#[test]
fn pushes_of_one_thread_arrive_intact() {
    within(Duration::from_secs(60), || pushed_by(1, 120));
}

#[test]
fn pushes_of_four_threads_arrive_intact() {
    within(Duration::from_secs(60), || pushed_by(4, 40));
}

#[test]
fn pushes_of_sixteen_threads_arrive_intact() {
    within(Duration::from_secs(90), || pushed_by(16, 16));
}

/// Both the call and its answer are of all sizes; the answer is not a copy of the call.
fn called_by(threads: u32, count: usize) {
    let server = Server::builder()
        .on_other_calls(move |cx, got| {
            let Route::Number(thread) = cx.route() else {
                panic!("{}", cx.route());
            };
            let number = sizes(thread, count)
                .iter()
                .enumerate()
                .position(|(number, size)| {
                    got.len() == *size && got.as_bytes() == body(thread, number as u32, *size)
                });
            let Some(number) = number else {
                panic!("{} bytes of thread {thread}, seed {SEED}", got.len());
            };
            body(thread + 1_000, number as u32, got.len())
        })
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Client::connect(server.local_address()).unwrap();
    thread::scope(|scope| {
        for thread in 0..threads {
            let client = &client;
            scope.spawn(move || {
                for (number, size) in sizes(thread, count).into_iter().enumerate() {
                    let sent = body(thread, number as u32, size);
                    let expected = body(thread + 1_000, number as u32, size);
                    // An empty body does not tell which of its thread's empty ones it is.
                    let reply = client.call(thread, sent).unwrap();
                    assert!(
                        reply.body() == expected,
                        "the answer to message {number} of thread {thread}, seed {SEED}"
                    );
                }
            });
        }
    });
}

#[test]
fn answers_to_one_thread_arrive_intact() {
    within(Duration::from_secs(60), || called_by(1, 60));
}

#[test]
fn answers_to_four_threads_arrive_intact() {
    within(Duration::from_secs(60), || called_by(4, 24));
}

#[test]
fn answers_to_sixteen_threads_arrive_intact() {
    within(Duration::from_secs(90), || called_by(16, 8));
}
