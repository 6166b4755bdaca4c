//! A call ends once, with its own answer or with an error that says why.

mod ends;
mod pending;
mod stray;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Body, Client, Context, Deferred, Server, Session, Timeouts};

use crate::support::{LIMIT, within};

const ECHO: u32 = 1;
const SINK: u32 = 2;

/// A server that echoes route 1 and counts what comes on route 2.
fn echo() -> (Server, Arc<AtomicU64>) {
    let counter = Arc::new(AtomicU64::new(0));
    let count = counter.clone();
    let server = Server::builder()
        .on_call(ECHO, |_, body| body.to_vec())
        .on_push(SINK, move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
        })
        .bind("127.0.0.1:0")
        .unwrap();
    (server, counter)
}

#[test]
fn each_of_many_threads_gets_its_own_answers() {
    within(Duration::from_secs(60), || {
        let (server, _) = echo();
        let client = Client::connect(server.local_address()).unwrap();
        thread::scope(|scope| {
            for thread in 0..32u64 {
                let client = &client;
                scope.spawn(move || {
                    for number in 0..1_000u64 {
                        let nonce = (thread << 32 | number).to_le_bytes();
                        if number % 2 == 0 {
                            let reply = client.call(ECHO, nonce).unwrap();
                            assert_eq!(reply.body(), nonce);
                        } else {
                            client
                                .call_with(ECHO, nonce, |body| assert_eq!(*body, nonce))
                                .unwrap();
                        }
                    }
                });
            }
        });
        let stats = client.stats();
        assert_eq!((stats.calls_sent, stats.calls_in_flight), (32_000, 0));
        assert_eq!((stats.late_replies, stats.unknown_replies), (0, 0));
    });
}

const BATCH: usize = 100;

/// A handler that answers once it has a whole batch, the last call first; so that a batch has
/// all its sequence numbers at the same time.
fn in_batches(
    sequences: mpsc::Sender<u32>,
) -> impl Fn(&Context<'_>, Body<'_>) -> Deferred + Send + Sync + 'static {
    let batch = Mutex::new(Vec::new());
    move |cx, body| {
        let (responder, deferred) = cx.defer();
        sequences.send(cx.sequence()).unwrap();
        let mut batch = batch.lock().unwrap();
        batch.push((responder, [&body[..], b"!"].concat()));
        if batch.len() == BATCH {
            for (responder, answer) in batch.drain(..).rev() {
                responder.reply(answer);
            }
        }
        deferred
    }
}

fn call_in_batches(session: &Session, salt: u64) {
    for batch in 0..100 {
        let calls: Vec<_> = (0..BATCH as u64)
            .map(|number| (salt << 32 | batch << 16 | number).to_le_bytes())
            .map(|nonce| (nonce, session.request(ECHO).start(nonce).unwrap()))
            .collect();
        for (nonce, call) in calls {
            assert_eq!(call.wait().unwrap().body(), [&nonce[..], b"!"].concat());
        }
    }
}

#[test]
fn both_sides_call_each_other_at_once_with_equal_sequence_numbers() {
    within(Duration::from_secs(60), || {
        let (sender, at_server) = mpsc::channel();
        let server = Server::builder()
            .on_call(ECHO, in_batches(sender))
            .bind("127.0.0.1:0")
            .unwrap();
        let (sender, at_client) = mpsc::channel();
        let client = Client::builder()
            .on_call(ECHO, in_batches(sender))
            .connect(server.local_address())
            .unwrap();
        let session = server.hub().session(client.id()).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| call_in_batches(&client.session(), 1));
            scope.spawn(|| call_in_batches(&session, 2));
        });
        let mut at_server: Vec<u32> = at_server.try_iter().collect();
        let mut at_client: Vec<u32> = at_client.try_iter().collect();
        assert_eq!(at_server.len(), 10_000);
        at_server.sort_unstable();
        at_client.sort_unstable();
        assert_eq!(at_server, at_client);
    });
}

#[test]
fn empty_calls_and_pushes_arrive() {
    within(Duration::from_secs(30), || {
        let (server, pushes) = echo();
        let client = Client::connect(server.local_address()).unwrap();
        for _ in 0..1_000 {
            client.push(SINK, ()).unwrap();
            assert_eq!(client.call(ECHO, ()).unwrap().body(), b"");
        }
        // Each push came before the call behind it.
        assert_eq!(pushes.load(Ordering::SeqCst), 1_000);
    });
}

#[test]
fn no_time_limit_at_all_works_everywhere() {
    within(Duration::from_secs(30), || {
        let mut timeouts = Timeouts::default();
        timeouts.connect = Duration::MAX;
        timeouts.handshake = Duration::MAX;
        timeouts.frame = Duration::MAX;
        timeouts.write = Duration::MAX;
        timeouts.push = Duration::MAX;
        timeouts.call = Duration::MAX;
        timeouts.idle = Duration::MAX;
        timeouts.close = Duration::MAX;
        let server = Server::builder()
            .on_call(ECHO, |_, body| body.to_vec())
            .timeouts(timeouts.clone())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .timeouts(timeouts)
            .connect(server.local_address())
            .unwrap();
        client.push(SINK, b"x").unwrap();
        client.push_timeout(SINK, b"x", Duration::MAX).unwrap();
        assert_eq!(client.call(ECHO, b"a").unwrap().body(), b"a");
        let call = client.request(ECHO).timeout(Duration::MAX);
        assert_eq!(call.call(b"b").unwrap().body(), b"b");
        let mut call = client
            .request(ECHO)
            .timeout(Duration::MAX)
            .start(b"c")
            .unwrap();
        let reply = call.wait_timeout(Duration::MAX).unwrap().unwrap();
        assert_eq!(reply.body(), b"c");
        let (sender, reply) = mpsc::channel();
        let call = client.request(ECHO).timeout(Duration::MAX).start(b"d");
        call.unwrap()
            .on_reply(move |reply| sender.send(reply.unwrap().into_body()).unwrap());
        assert_eq!(reply.recv_timeout(LIMIT).unwrap(), b"d");
        client.flush(Duration::MAX).unwrap();
        client.shutdown(Duration::MAX).unwrap();
        server.shutdown(Duration::MAX).unwrap();
    });
}

#[test]
fn a_nanosecond_as_time_limit_ends_everything_at_once_and_breaks_nothing() {
    const NANOSECOND: Duration = Duration::from_nanos(1);
    within(Duration::from_secs(30), || {
        let (server, _) = echo();
        let mut timeouts = Timeouts::default();
        timeouts.connect = NANOSECOND;
        let refused = Client::builder()
            .timeouts(timeouts)
            .connect(server.local_address());
        assert!(refused.unwrap_err().is_timeout());
        let mut timeouts = Timeouts::default();
        timeouts.handshake = NANOSECOND;
        let refused = Client::builder()
            .timeouts(timeouts)
            .connect(server.local_address());
        assert!(refused.unwrap_err().is_timeout());

        let mut timeouts = Timeouts::default();
        timeouts.push = NANOSECOND;
        timeouts.call = NANOSECOND;
        let client = Client::builder()
            .timeouts(timeouts)
            .connect(server.local_address())
            .unwrap();
        for _ in 0..100 {
            // There is room, so nothing waits.
            client.push(SINK, b"x").unwrap();
            client.push_timeout(SINK, b"x", NANOSECOND).unwrap();
            if let Err(error) = client.call(ECHO, b"x") {
                assert!(error.is_timeout(), "{error:?}");
            }
            let mut call = client.request(ECHO).timeout(LIMIT).start(b"y").unwrap();
            if let Some(reply) = call.wait_timeout(NANOSECOND) {
                assert_eq!(reply.unwrap().body(), b"y");
            }
            if let Err(error) = client.flush(NANOSECOND) {
                assert!(error.is_timeout(), "{error:?}");
            }
        }
        let call = client.request(ECHO).timeout(LIMIT);
        assert_eq!(call.call(b"still here").unwrap().body(), b"still here");
        let report = client.shutdown(NANOSECOND).unwrap();
        assert_eq!(report.session, client.id());
        server.shutdown(NANOSECOND).unwrap();
    });
}
