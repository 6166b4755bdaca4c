//! From a message to its handler, and from the handler's result to the answer.

mod callbacks;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{
    Client, CodecId, ErrorKind, Kind, Limits, Replied, Responder, Route, Server, ServerBuilder,
    Status,
};

use crate::support::{LIMIT, RawPeer, eventually, frame, millis, within};

fn serve(builder: ServerBuilder) -> (Server, Client) {
    let server = builder.bind("127.0.0.1:0").unwrap();
    let client = Client::connect(server.local_address()).unwrap();
    (server, client)
}

/// The status that a call is answered with.
#[track_caller]
fn status_of<'r>(client: &Client, route: impl Into<Route<'r>>, body: &[u8]) -> Status {
    let error = client.call(route, body).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Status, "{error:?}");
    assert!(!error.maybe_executed());
    error.status().unwrap().clone()
}

#[test]
fn handlers_are_found_by_number_by_name_and_else_by_the_fallback() {
    within(LIMIT, || {
        let (sender, pushed) = mpsc::channel();
        let [by_number, by_name, other] = [0; 3].map(|_| sender.clone());
        let (_server, client) = serve(
            Server::builder()
                .on_call(0, |_, _| "number 0")
                .on_call(4_294_967_294, |_, _| "the highest number")
                .on_call("/a", |_, _| "/a")
                .on_call("/a/b", |_, _| "/a/b")
                .on_other_calls(|cx, _| format!("other {}", cx.route()))
                .on_push(7, move |_, _| by_number.send("7".to_owned()).unwrap())
                .on_push("7", move |_, _| by_name.send("name 7".to_owned()).unwrap())
                .on_other_pushes(move |cx, _| {
                    other.send(format!("other {}", cx.route())).unwrap();
                }),
        );
        let called = |route: Route<'_>| client.call_as::<String>(route, ()).unwrap();
        assert_eq!(called(0.into()), "number 0");
        assert_eq!(called(4_294_967_294.into()), "the highest number");
        assert_eq!(called("/a".into()), "/a");
        assert_eq!(called("/a/b".into()), "/a/b");
        assert_eq!(called("/a/".into()), "other /a/");
        // A push handler does not answer calls.
        assert_eq!(called(7.into()), "other #7");
        for route in [Route::Number(7), "7".into(), "/a".into(), 0.into()] {
            client.push(route, ()).unwrap();
        }
        let pushed: Vec<String> = (0..4)
            .map(|_| pushed.recv_timeout(LIMIT).unwrap())
            .collect();
        assert_eq!(pushed, ["7", "name 7", "other /a", "other #0"]);
    });
}

#[test]
fn without_a_handler_calls_are_answered_no_route_and_pushes_are_counted() {
    within(LIMIT, || {
        let (server, client) = serve(Server::builder().on_push(1, |_, _| {}));
        for _ in 0..10 {
            client.push(2, b"nobody").unwrap();
            client.push("/nobody", b"nobody").unwrap();
        }
        client.push(1, b"somebody").unwrap();
        let status = status_of(&client, 1, b"");
        assert_eq!(status.code(), Status::NO_ROUTE);
        assert!(status.text().contains("#1"), "{status}");
        let status = status_of(&client, "/nobody", b"");
        assert_eq!(status.code(), Status::NO_ROUTE);
        assert!(status.text().contains("/nobody"), "{status}");
        assert_eq!(server.stats().dropped_pushes, 20);
        assert_eq!(server.stats().received_messages, 23);
        assert!(!client.is_closed());
    });
}

#[test]
fn a_panicking_handler_answers_a_status_and_the_connection_lives() {
    within(Duration::from_secs(30), || {
        let (server, client) = serve(
            Server::builder()
                .on_call("/panic", |_, _| -> () { panic!("of the test") })
                .on_push("/panic", |_, _| panic!("of the test"))
                .on_call("/after", |cx, _| -> () {
                    let _ = cx.reply(b"answered before");
                    panic!("of the test")
                })
                .on_call("/fine", |_, body| body.to_vec()),
        );
        for round in 0..500u32 {
            let status = status_of(&client, "/panic", b"");
            assert_eq!(status.code(), Status::HANDLER_PANICKED);
            client.push("/panic", b"").unwrap();
            let reply = client.call("/fine", round.to_le_bytes()).unwrap();
            assert_eq!(reply.body(), round.to_le_bytes());
        }
        let reply = client.call("/after", b"").unwrap();
        assert_eq!(reply.body(), b"answered before");
        assert!(eventually(LIMIT, || server.stats().panics == 1_001));
        assert_eq!(server.hub().len(), 1);
    });
}

#[test]
fn a_deferred_answer_comes_from_another_thread() {
    within(LIMIT, || {
        let (sender, responders) = mpsc::channel::<(Responder, Vec<u8>)>();
        let answering = thread::spawn(move || {
            // The last first: answers need not keep the order of the calls.
            let mut held: Vec<_> = responders.iter().take(100).collect();
            while let Some((mut responder, body)) = held.pop() {
                match body[0] % 2 {
                    0 => {
                        responder.meta("left", &held.len().to_string()).unwrap();
                        responder.reply(body);
                    }
                    _ => responder.fail(Status::new(2_000 + i32::from(body[0]), "odd")),
                }
            }
        });
        let (_server, client) = serve(Server::builder().on_call(1, move |cx, body| {
            let (responder, deferred) = cx.defer();
            sender.send((responder, body.to_vec())).unwrap();
            deferred
        }));
        let calls: Vec<_> = (0..100u8)
            .map(|number| client.request(1).start([number]).unwrap())
            .collect();
        for (number, call) in (0..100u8).zip(calls) {
            match call.wait() {
                Ok(reply) => {
                    assert_eq!(reply.body(), [number]);
                    assert_eq!(reply.metadata().get("left"), Some(&*number.to_string()));
                    assert_eq!(number % 2, 0);
                }
                Err(error) => {
                    let status = error.status().unwrap();
                    assert_eq!(status.code(), 2_000 + i32::from(number));
                    assert_eq!(number % 2, 1);
                }
            }
        }
        answering.join().unwrap();
    });
}

#[test]
fn a_responder_that_is_dropped_answers_no_reply() {
    within(LIMIT, || {
        let (_server, client) = serve(
            Server::builder()
                .on_call("/dropped", |cx, _| {
                    let (responder, deferred) = cx.defer();
                    drop(responder);
                    deferred
                })
                .on_call("/elsewhere", |cx, _| {
                    let (responder, deferred) = cx.defer();
                    thread::spawn(move || drop(responder));
                    deferred
                })
                .on_call("/panicking", |cx, _| -> () {
                    let (_responder, _deferred) = cx.defer();
                    panic!("of the test")
                }),
        );
        for route in ["/dropped", "/elsewhere", "/panicking"] {
            let status = status_of(&client, route, b"");
            assert_eq!(status.code(), Status::NO_REPLY, "{route}");
        }
        assert_eq!(client.stats().calls_in_flight, 0);
    });
}

#[test]
fn a_result_that_belongs_to_another_call_is_answered_no_reply() {
    within(LIMIT, || {
        let slot: Arc<std::sync::Mutex<Option<Replied>>> = Arc::default();
        let (keep, take) = (slot.clone(), slot);
        let (_server, client) = serve(
            Server::builder()
                .on_call("/keep", move |cx, _| {
                    *keep.lock().unwrap() = Some(cx.reply(b"kept"));
                })
                .on_call("/take", move |_, _| take.lock().unwrap().take().unwrap()),
        );
        assert_eq!(client.call("/keep", b"").unwrap().body(), b"kept");
        let status = status_of(&client, "/take", b"");
        assert_eq!(status.code(), Status::NO_REPLY);
    });
}

#[test]
fn of_several_answers_the_first_counts() {
    within(LIMIT, || {
        let (_server, client) = serve(Server::builder().on_call(1, |cx, _| {
            let (responder, _deferred) = cx.defer();
            responder.reply(b"first");
            let _ = cx.reply(b"second");
            let (again, _deferred) = cx.defer();
            again.fail(Status::new(1_111, "third"));
            b"fourth"
        }));
        for _ in 0..100 {
            assert_eq!(client.call(1, b"").unwrap().body(), b"first");
        }
        let stats = client.stats();
        assert_eq!((stats.received_messages, stats.unknown_replies), (100, 0));
    });
}

#[test]
fn a_push_has_no_answer_whatever_its_handler_tries() {
    within(LIMIT, || {
        let (sender, done) = mpsc::channel();
        let (_server, client) = serve(Server::builder().on_push(1, move |cx, _| {
            assert_eq!((cx.kind(), cx.sequence()), (Kind::Push, 0));
            let (responder, _deferred) = cx.defer();
            responder.reply(b"to nobody");
            let (responder, _deferred) = cx.defer();
            drop(responder);
            let _ = cx.reply(b"to nobody");
            sender.send(()).unwrap();
        }));
        client.push(1, b"").unwrap();
        done.recv_timeout(LIMIT).unwrap();
        let status = status_of(&client, 2, b"");
        assert_eq!(status.code(), Status::NO_ROUTE);
        let stats = client.stats();
        assert_eq!((stats.received_messages, stats.unknown_replies), (1, 0));
    });
}

#[test]
fn a_handlers_status_comes_with_its_text_and_cause() {
    within(LIMIT, || {
        let (_server, client) = serve(Server::builder().on_call(
            1,
            |_, body| -> Result<Vec<u8>, Status> {
                match body.as_bytes() {
                    b"good" => Ok(b"fine".to_vec()),
                    _ => Err(Status::new(-5, "bad").with_cause("not good")),
                }
            },
        ));
        assert_eq!(client.call(1, b"good").unwrap().body(), b"fine");
        let expected = Status::new(-5, "bad").with_cause("not good");
        assert_eq!(status_of(&client, 1, b"evil"), expected);
    });
}

#[test]
fn a_body_that_does_not_decode_is_answered_bad_body_or_unsupported() {
    within(LIMIT, || {
        struct Own(Vec<u8>);
        impl trunkline::IntoBody for Own {
            fn codec(&self) -> CodecId {
                CodecId(200)
            }
            fn bytes<'a>(&'a self, _: &'a mut Vec<u8>) -> Result<&'a [u8], trunkline::Error> {
                Ok(&self.0)
            }
        }
        let (_server, client) = serve(
            Server::builder()
                .on_call("/text", |_, body| -> Result<String, Status> {
                    Ok(body.decode::<&str>()?.to_uppercase())
                })
                .on_call("/own", |_, _| Own(b"own".to_vec())),
        );
        let text: String = client.call_as("/text", "abc").unwrap();
        assert_eq!(text, "ABC");
        let status = status_of(&client, "/text", b"\xff");
        assert_eq!(status.code(), Status::BAD_BODY, "{status}");
        let error = client.call("/text", Own(b"abc".to_vec())).unwrap_err();
        assert_eq!(error.status().unwrap().code(), Status::UNSUPPORTED);
        // And the other way: what the caller cannot decode is its own error.
        let error = client.call_as::<String>("/own", b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
        assert_eq!(client.call("/own", b"").unwrap().codec(), CodecId(200));
    });
}

#[test]
fn an_answer_that_does_not_encode_becomes_a_status() {
    within(LIMIT, || {
        struct Broken;
        impl trunkline::IntoBody for Broken {
            fn codec(&self) -> CodecId {
                CodecId::TEXT
            }
            fn bytes<'a>(&'a self, _: &'a mut Vec<u8>) -> Result<&'a [u8], trunkline::Error> {
                <&str as trunkline::FromBody<'_>>::from_body(b"\xff").map(str::as_bytes)
            }
        }
        let (_server, client) = serve(Server::builder().on_call(1, |_, _| Broken));
        let status = status_of(&client, 1, b"");
        assert_eq!(status.code(), Status::BAD_BODY);
        // To send it is refused, too, and then nothing is sent.
        let error = client.call(1, Broken).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadBody);
        let error = client.try_push(1, Broken).unwrap_err();
        assert_eq!(error.error().kind(), ErrorKind::BadBody);
        assert_eq!(client.stats().sent_messages, 1);
    });
}

#[test]
fn metadata_travels_both_ways() {
    within(LIMIT, || {
        let (sender, pushed) = mpsc::channel();
        let (_server, client) = serve(
            Server::builder()
                .on_call(1, |cx, _| {
                    for (key, value) in cx.metadata().iter() {
                        cx.reply_meta(value, key).unwrap();
                    }
                    cx.reply_meta("wire", &cx.wire_bytes().to_string()).unwrap();
                })
                .on_call("/fail", |cx, _| -> Result<(), Status> {
                    cx.reply_meta("on", "failure").unwrap();
                    Err(Status::new(1_000, ""))
                })
                .on_push(1, move |cx, _| {
                    sender.send(cx.metadata().to_metadata()).unwrap()
                }),
        );
        let request = || {
            client
                .request(1)
                .meta("a", "1")
                .meta("b", "")
                .meta("a", "2")
        };
        let reply = request().call(b"x").unwrap();
        let pairs: Vec<_> = reply.metadata().iter().collect();
        let wire = (16 + 4 * 5 - 5 + 5 + 1).to_string();
        assert_eq!(pairs[..3], [("1", "a"), ("", "b"), ("2", "a")]);
        assert_eq!(pairs[3], ("wire", &*wire));
        request().push(b"x").unwrap();
        let metadata = pushed.recv_timeout(LIMIT).unwrap();
        let pairs: Vec<_> = metadata.iter().collect();
        assert_eq!(pairs, [("a", "1"), ("b", ""), ("a", "2")]);
        let status = status_of(&client, "/fail", b"");
        assert_eq!(status.code(), 1_000);
    });
}

#[test]
fn a_handler_sees_how_long_its_caller_would_wait() {
    within(LIMIT, || {
        let (_server, client) = serve(Server::builder().on_call(1, |cx, _| {
            cx.time_left()
                .map_or(0, |left| left.as_millis() as u64)
                .to_le_bytes()
        }));
        let left = |limit: Duration| {
            let reply = client.request(1).timeout(limit).call(b"").unwrap();
            u64::from_le_bytes(reply.body().try_into().unwrap())
        };
        assert!((1..=7_000).contains(&left(Duration::from_secs(7))));
        assert!((1..=4_234).contains(&left(millis(4_234))));
        assert_eq!(left(Duration::MAX), 0);
    });
}

#[test]
fn the_context_tells_what_came_and_from_whom() {
    within(LIMIT, || {
        let (sender, seen) = mpsc::channel();
        let (server, client) = serve(Server::builder().on_call("/who", move |cx, body| {
            assert_eq!((cx.kind(), cx.codec()), (Kind::Call, CodecId::TEXT));
            assert_eq!(cx.route(), Route::Name("/who"));
            assert_ne!(cx.sequence(), 0);
            let who = (cx.session().id(), cx.peer_address().clone(), body.to_vec());
            sender.send(who).unwrap();
        }));
        client.call("/who", "it's me").unwrap();
        let who = seen.recv_timeout(LIMIT).unwrap();
        let expected = (
            client.id(),
            client.local_address().clone(),
            b"it's me".to_vec(),
        );
        assert_eq!(who, expected);
        assert_eq!(client.session().peer_address(), server.local_address());
    });
}

#[test]
fn two_handlers_of_one_route_are_an_error_of_the_builder() {
    let refused = [
        Server::builder()
            .on_call(1, |_, _| ())
            .on_call(1, |_, _| ()),
        Server::builder()
            .on_call("/a", |_, _| ())
            .on_push("/a", |_, _| ())
            .on_push("/a", |_, _| ()),
        Server::builder().on_push(u32::MAX, |_, _| ()),
        Server::builder().on_push("", |_, _| ()),
    ];
    for builder in refused {
        let error = builder.bind("127.0.0.1:0").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error:?}");
    }
    let server = Server::builder()
        .on_call(1, |_, _| ())
        .on_push(1, |_, _| ())
        .bind("127.0.0.1:0")
        .unwrap();
    let error = Client::builder()
        .on_push(1, |_, _| ())
        .on_push(1, |_, _| ())
        .connect(server.local_address())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error:?}");
    assert!(error.to_string().contains("#1"), "{error}");
}

#[test]
fn an_answer_that_the_caller_does_not_admit_becomes_too_large() {
    within(LIMIT, || {
        let server = Server::builder()
            .on_call(1, |_, body| {
                let size = u32::from_le_bytes(body[..4].try_into().unwrap());
                vec![1; size as usize]
            })
            .on_call("/meta", |cx, _| {
                cx.reply_meta("long", &"x".repeat(2_000)).unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let mut limits = Limits::default();
        limits.body_bytes = 10_000;
        limits.metadata_bytes = 1_000;
        let client = Client::builder()
            .limits(limits)
            .connect(server.local_address())
            .unwrap();
        for _ in 0..20 {
            let reply = client.call(1, 10_000u32.to_le_bytes()).unwrap();
            assert_eq!(reply.body().len(), 10_000);
            let status = status_of(&client, 1, &10_001u32.to_le_bytes());
            assert_eq!(status.code(), Status::TOO_LARGE, "{status}");
            let status = status_of(&client, "/meta", b"");
            assert_eq!(status.code(), Status::TOO_LARGE, "{status}");
        }
    });
}

#[test]
fn answers_beyond_the_reserve_become_overloaded() {
    within(Duration::from_secs(30), || {
        const CALLS: u32 = 200;
        let mut limits = Limits::default();
        limits.queued_bytes = 256 << 10;
        limits.reply_reserve_bytes = 256 << 10;
        let mut options = trunkline::SocketOptions::default();
        options.send_buffer = Some(64 << 10);
        let server = Server::builder()
            .limits(limits)
            .socket_options(options)
            .on_call(1, |_, _| vec![1; 100_000])
            .bind("127.0.0.1:0")
            .unwrap();
        let mut peer = RawPeer::dial(server.local_address());
        for sequence in 1..=CALLS {
            peer.send(&frame(Kind::Call, 1, sequence, b""));
        }
        // All are answered though the peer has read nothing yet.
        assert!(eventually(LIMIT, || {
            server.stats().calls_answered == u64::from(CALLS)
        }));
        assert!(server.stats().queued_bytes <= 512 << 10 | 20_000);
        let (mut whole, mut overloaded) = (0, 0);
        for sequence in 1..=CALLS {
            let reply = peer.next().unwrap();
            assert_eq!((reply.kind, reply.sequence), (Kind::Reply, sequence));
            match reply.status {
                None => {
                    assert_eq!(reply.body.len(), 100_000);
                    whole += 1;
                }
                Some(status) => {
                    assert_eq!(status.code(), Status::OVERLOADED, "{status}");
                    overloaded += 1;
                }
            }
        }
        assert!(whole >= 5 && overloaded > 0, "{whole} and {overloaded}");
        peer.call(1, CALLS + 1, b"");
        assert_eq!(peer.next().unwrap().body.len(), 100_000);
    });
}

/// Two calls in one read; the second one's handler ends only when the caller has the answer to
/// the first.
#[test]
fn a_slow_handler_does_not_hold_back_an_earlier_answer() {
    within(Duration::from_secs(30), || {
        let (go, wait) = mpsc::channel();
        let wait = std::sync::Mutex::new(wait);
        let server = Server::builder()
            .on_call("/quick", |_, _| b"quick")
            .on_call("/slow", move |_, _| {
                let got = wait.lock().unwrap().recv_timeout(LIMIT);
                match got {
                    Ok(()) => b"slow".to_vec(),
                    Err(_) => b"the first answer did not come".to_vec(),
                }
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let mut peer = RawPeer::dial(server.local_address());
        for round in 0..50 {
            let calls: Vec<u8> = ["/quick", "/slow"]
                .iter()
                .zip([1, 2])
                .flat_map(|(route, sequence)| call_by_name(route, 2 * round + sequence))
                .collect();
            peer.send(&calls);
            assert_eq!(peer.next().unwrap().body, b"quick");
            go.send(()).unwrap();
            assert_eq!(peer.next().unwrap().body, b"slow");
        }
    });
}

fn call_by_name(name: &str, sequence: u32) -> Vec<u8> {
    use trunkline::message::MessageRef;
    use trunkline::protocol::{Native, Protocol};
    let call = MessageRef::new(Kind::Call, name.into(), sequence, CodecId::BYTES, b"");
    let mut frame = Vec::new();
    Native.encode(&call, &mut frame).unwrap();
    frame
}

/// A handler that works on without waiting by the crate's own means: what it has sent so far
/// goes out all the same.
#[test]
fn a_slow_handler_does_not_hold_back_what_it_has_sent_itself() {
    within(Duration::from_secs(30), || {
        let (go, wait) = mpsc::channel();
        let wait = std::sync::Mutex::new(wait);
        let waits = move || wait.lock().unwrap().recv_timeout(LIMIT).is_ok();
        let waits = Arc::new(waits);
        let (pushes, replies, responds) = (waits.clone(), waits.clone(), waits);
        let server = Server::builder()
            .on_call("/push", move |cx, _| {
                cx.session().push(1, b"early").unwrap();
                assert!(pushes(), "the push did not go out");
            })
            .on_call("/reply", move |cx, _| {
                let replied = cx.reply(b"early");
                assert!(replies(), "the answer did not go out");
                replied
            })
            .on_call("/respond", move |cx, _| {
                let (responder, deferred) = cx.defer();
                responder.reply(b"early");
                assert!(responds(), "the answer did not go out");
                deferred
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let mut peer = RawPeer::dial(server.local_address());
        for round in 0..10 {
            peer.send(&call_by_name("/push", 3 * round + 1));
            assert_eq!(peer.next().unwrap().kind, Kind::Push);
            go.send(()).unwrap();
            let reply = peer.next().unwrap();
            assert_eq!((reply.kind, reply.status), (Kind::Reply, None));
            for (index, route) in (2..).zip(["/reply", "/respond"]) {
                peer.send(&call_by_name(route, 3 * round + index));
                assert_eq!(peer.next().unwrap().body, b"early");
                go.send(()).unwrap();
            }
        }
        assert_eq!(server.stats().panics, 0);
    });
}

#[test]
fn handlers_of_one_session_run_one_at_a_time() {
    within(Duration::from_secs(30), || {
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let (now, peak) = (running, most.clone());
        let (_server, client) = serve(Server::builder().on_call(1, move |_, body| {
            let at_once = now.fetch_add(1, Ordering::SeqCst) + 1;
            peak.fetch_max(at_once, Ordering::SeqCst);
            thread::yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
            body.to_vec()
        }));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        client.call(1, b"x").unwrap();
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 1);
    });
}

/// A body whose encoder panics.
struct Panics;

impl trunkline::IntoBody for Panics {
    fn codec(&self) -> trunkline::CodecId {
        trunkline::CodecId::BYTES
    }

    fn bytes<'a>(&'a self, _: &'a mut Vec<u8>) -> Result<&'a [u8], trunkline::Error> {
        panic!("this body cannot be encoded")
    }
}

/// A panic that panics once more when it is dropped.
struct PanicsAgain;

impl Drop for PanicsAgain {
    fn drop(&mut self) {
        panic!("and again")
    }
}

#[test]
fn an_answer_whose_encoder_panics_is_answered_all_the_same() {
    within(Duration::from_secs(20), || {
        let server = Server::builder()
            .on_call(1, |_, _| Panics)
            .on_call(2, |cx, _| cx.reply(Panics))
            .on_call(3, |cx, _| {
                let (responder, deferred) = cx.defer();
                std::thread::spawn(move || responder.reply(Panics));
                deferred
            })
            .on_call(4, |_, _| -> () { std::panic::panic_any(PanicsAgain) })
            .on_call(5, |_, _| Err::<(), _>(Status::new(0, "fine?")))
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        for (route, code) in [
            (1, Status::HANDLER_PANICKED),
            (2, Status::HANDLER_PANICKED),
            (3, Status::NO_REPLY),
            (4, Status::HANDLER_PANICKED),
            (5, Status::HANDLER_FAILED),
            (1, Status::HANDLER_PANICKED),
        ] {
            let error = client.call(route, b"").unwrap_err();
            assert_eq!(
                error.status().map(Status::code),
                Some(code),
                "route {route}"
            );
        }
        assert_eq!(client.stats().calls_in_flight, 0);
    });
}
