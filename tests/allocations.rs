//! In the steady state neither a push nor a call whose reply is lent allocates, at either end. In a
//! process of its own: the allocations of all threads are counted.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::alloc::System;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use trunkline::{Client, Server, Session};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LIMIT: Duration = Duration::from_secs(120);
const SINK: u32 = 1;
const ECHO: u32 = 2;
const MESSAGES: usize = 2_000;
/// What remains has to do with moments, not with messages: the queue gives its memory back when it
/// was idle for one and grows it again, and a sender that finds another thread in it for long
/// puts its frame aside.
const FEW: usize = MESSAGES / 4;

/// The fewest allocations of three runs, as others use the machine too.
fn allocations(run: impl Fn()) -> usize {
    run();
    let measured = (0..3).map(|_| {
        let region = Region::new(ALLOCATOR);
        run();
        let change = region.change();
        change.allocations + change.reallocations
    });
    measured.min().unwrap()
}

fn pushes(session: &Session, size: usize) {
    let body = vec![7; size];
    let allocated = allocations(|| {
        for _ in 0..MESSAGES {
            session.push(SINK, &body[..]).unwrap();
        }
        // The answer comes when all of them are handled.
        session.call_with(ECHO, "", |_| ()).unwrap();
    });
    println!("{MESSAGES} pushes of {size} bytes: {allocated} allocations");
    assert!(allocated < FEW, "{allocated}");
}

fn calls(session: &Session, size: usize) {
    let body = vec![7; size];
    let allocated = allocations(|| {
        for _ in 0..MESSAGES {
            let length = session.call_with(ECHO, &body[..], |reply| reply.as_bytes().len());
            assert_eq!(length.unwrap(), size);
        }
    });
    println!("{MESSAGES} calls of {size} bytes: {allocated} allocations");
    assert!(allocated < FEW, "{allocated}");
}

#[test]
fn in_the_steady_state_neither_pushes_nor_lent_replies_allocate() {
    let (sender, done) = mpsc::channel();
    let test = thread::spawn(move || {
        let server = Server::builder()
            .on_push(SINK, |_, _| ())
            .on_call(ECHO, |cx, body| cx.reply(body.as_bytes()))
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .on_push(SINK, |_, _| ())
            .on_call(ECHO, |cx, body| cx.reply(body.as_bytes()))
            .connect(server.local_address())
            .unwrap();
        let of_client = client.session();
        let of_server = server.hub().session(client.id()).unwrap();
        for session in [&of_client, &of_server] {
            for size in [4, 64, 1024] {
                pushes(session, size);
            }
            calls(session, 64);
        }
        sender.send(()).unwrap();
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = done.recv_timeout(LIMIT) {
        panic!("not over within {LIMIT:?}");
    }
    test.join().unwrap();
}
