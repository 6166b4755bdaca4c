//! The standing writer thread: it writes everything, and nothing is lost by it.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, ClientBuilder, CloseReason, Server, ThreadRole, Wait, Writer};

use super::{BACK, ECHO, NOTE, WAYS};
use crate::support::{LIMIT, server_session, within};

const AUTHORS: u32 = 4;
const PUSHES: u32 = 5_000;

/// The roles of the threads that were started, as they come.
fn roles(builder: ClientBuilder) -> (ClientBuilder, mpsc::Receiver<ThreadRole>) {
    let (sender, started) = mpsc::channel();
    let sender = Mutex::new(sender);
    let builder = builder.on_thread_start(move |thread| {
        let _ = sender.lock().unwrap().send(thread.role);
    });
    (builder, started)
}

#[test]
fn the_standing_writer_is_there_from_the_beginning_and_the_other_only_under_load() {
    within(LIMIT, || {
        let server = Server::builder()
            .on_call(ECHO, |_, body| body.to_vec())
            .bind("127.0.0.1:0")
            .unwrap();
        let (builder, started) = roles(Client::builder().writer(Writer::Thread));
        let _standing = builder.connect(server.local_address()).unwrap();
        let role = || started.recv_timeout(LIMIT).unwrap();
        assert_eq!([role(), role()], [ThreadRole::Reader, ThreadRole::Writer]);

        let (builder, started) = roles(Client::builder().writer(Writer::OnDemand));
        let client = builder.connect(server.local_address()).unwrap();
        for _ in 0..20 {
            client.call(ECHO, "alone").unwrap();
        }
        let all: Vec<_> = started.try_iter().collect();
        assert_eq!(all, [ThreadRole::Reader]);
    });
}

/// Pushes of several threads and calls of both sides at once.
fn everything_arrives(wait: Wait) {
    let seen = Arc::new(Mutex::new(vec![Vec::new(); AUTHORS as usize]));
    let noted = seen.clone();
    let server = Server::builder()
        .wait(wait)
        .writer(Writer::Thread)
        .on_push(NOTE, move |_, body| {
            let [author, number] = body.decode::<[u8; 8]>().map(halves).unwrap();
            noted.lock().unwrap()[author as usize].push(number);
        })
        .on_call(BACK, |cx, body| {
            // What a handler sends keeps its order, too.
            let session = cx.session();
            session.push(NOTE, "first").unwrap();
            let reply = session.call(ECHO, body.as_bytes()).unwrap();
            session.push(NOTE, "second").unwrap();
            reply.into_body()
        })
        .bind("127.0.0.1:0")
        .unwrap();
    let (sender, notes) = mpsc::channel();
    let client = Client::builder()
        .wait(wait)
        .writer(Writer::Thread)
        .on_push(NOTE, move |_, body| sender.send(body.to_vec()).unwrap())
        .on_call(ECHO, |_, body| body.to_vec())
        .connect(server.local_address())
        .unwrap();
    let session = server_session(&server, client.id());
    thread::scope(|scope| {
        for author in 0..AUTHORS {
            let client = &client;
            scope.spawn(move || {
                for number in 0..PUSHES {
                    let body = u64::from(author) << 32 | u64::from(number);
                    client.push(NOTE, body.to_le_bytes()).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for number in 0..100u32 {
                let body = number.to_le_bytes();
                assert_eq!(session.call(ECHO, body).unwrap().body(), body);
            }
        });
    });
    // Alone, as a handler that waits holds back only so many pushes.
    for number in 0..100u32 {
        let body = number.to_le_bytes();
        assert_eq!(client.call(BACK, body).unwrap().body(), body);
        assert_eq!(notes.recv_timeout(LIMIT).unwrap(), b"first");
        assert_eq!(notes.recv_timeout(LIMIT).unwrap(), b"second");
    }
    client.flush(LIMIT).unwrap();
    let report = client.shutdown(LIMIT).unwrap();
    assert_eq!(report.reason, CloseReason::Clean, "{wait:?}: {report}");
    assert_eq!(report.not_written.messages, 0, "{wait:?}: {report}");
    assert_eq!(report.unconfirmed.messages, 0, "{wait:?}: {report}");
    for numbers in &*seen.lock().unwrap() {
        assert!(numbers.iter().copied().eq(0..PUSHES), "{wait:?}");
    }
}

/// The number that was put together of two.
fn halves(body: [u8; 8]) -> [u32; 2] {
    let body = u64::from_le_bytes(body);
    [(body >> 32) as u32, body as u32]
}

#[test]
fn the_standing_writer_loses_nothing_and_keeps_the_order_both_ways() {
    for wait in WAYS {
        within(Duration::from_secs(60), move || everything_arrives(wait));
    }
}

#[test]
fn what_is_pushed_right_before_the_last_handle_is_dropped_arrives() {
    within(LIMIT, || {
        let (sender, notes) = mpsc::channel();
        let server = Server::builder()
            .on_push(NOTE, move |_, body| sender.send(body.len()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        for _ in 0..100 {
            let client = Client::builder().writer(Writer::Thread);
            let client = client.connect(server.local_address()).unwrap();
            client.push(NOTE, [7; 100]).unwrap();
            drop(client);
            assert_eq!(notes.recv_timeout(LIMIT).unwrap(), 100);
        }
    });
}
