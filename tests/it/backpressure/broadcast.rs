//! To many at once: encoded once, never waiting, and each session counted once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use trunkline::{Client, ErrorKind, Kind, Limits, Route, Server, SessionId};

use super::NOTE;
use crate::support::bodies::{body, number};
use crate::support::{LIMIT, RawPeer, allowed, eventually, millis, within};

const SESSIONS: usize = 50;

#[test]
fn a_broadcast_reaches_all_but_the_one_that_does_not_read_and_never_waits() {
    within(Duration::from_secs(60), || {
        const ROUNDS: usize = 200;
        const SIZE: usize = 10_000;
        let mut limits = Limits::default();
        limits.queued_bytes = 200_000;
        let mut options = trunkline::SocketOptions::default();
        options.send_buffer = Some(16 << 10);
        let server = Server::builder()
            .limits(limits)
            .socket_options(options)
            .bind("127.0.0.1:0")
            .unwrap();
        let received = Arc::new(AtomicUsize::new(0));
        let clients: Vec<Client> = (0..SESSIONS - 1)
            .map(|_| {
                let received = received.clone();
                let next = AtomicUsize::new(0);
                Client::builder()
                    .on_push(NOTE, move |_, got| {
                        let expected = next.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(number(&got), expected as u32);
                        assert_eq!(got.len(), SIZE);
                        received.fetch_add(1, Ordering::SeqCst);
                    })
                    .connect(server.local_address())
                    .unwrap()
            })
            .collect();
        let mut deaf = RawPeer::dial(server.local_address());
        assert_eq!(server.hub().len(), SESSIONS);
        let (mut to_deaf, mut longest) = (Vec::new(), Duration::ZERO);
        for round in 0..ROUNDS {
            let mut body = (round as u32).to_le_bytes().to_vec();
            body.resize(SIZE, 3);
            let begun = Instant::now();
            let sent = server.hub().broadcast(NOTE, body).unwrap();
            longest = longest.max(begun.elapsed());
            assert_eq!(sent.queued + sent.full, SESSIONS, "{sent:?}");
            assert_eq!(sent.closed, 0);
            assert!(sent.full <= 1, "{sent:?}");
            if sent.full == 0 {
                to_deaf.push(round as u32);
            }
            // The others keep up: what this is about is the one that does not.
            assert!(eventually(LIMIT, || {
                received.load(Ordering::SeqCst) == (round + 1) * (SESSIONS - 1)
            }));
        }
        assert!(to_deaf.len() < ROUNDS, "its queue was never full");
        assert!(longest < LIMIT / 2, "a broadcast took {longest:?}");
        // What was counted as queued for it is there, whole and in order; the rest is not.
        for expected in to_deaf {
            let push = deaf.next().unwrap();
            assert_eq!((number(&push.body), push.body.len()), (expected, SIZE));
        }
        drop(clients);
    });
}

#[test]
fn all_get_the_same_bytes() {
    within(Duration::from_secs(30), || {
        let server = Server::builder().bind("127.0.0.1:0").unwrap();
        let mut peers: Vec<RawPeer> = (0..10)
            .map(|_| RawPeer::dial(server.local_address()))
            .collect();
        assert!(eventually(LIMIT, || server.hub().len() == 10));
        for (index, size) in [0, 50, 5_000, 200_000].into_iter().enumerate() {
            let body = body(9, index as u32, size);
            let sent = server.hub().broadcast("/news", &body).unwrap();
            assert_eq!((sent.queued, sent.full, sent.closed), (10, 0, 0));
            let mut first = None;
            for peer in &mut peers {
                let length = 16 + 3 + 5 + size;
                while peer.received.len() < length {
                    peer.read_more().unwrap();
                }
                let frame: Vec<u8> = peer.received[..length].to_vec();
                let push = peer.next().unwrap();
                assert_eq!(
                    (push.kind, push.route.as_route()),
                    (Kind::Push, Route::Name("/news"))
                );
                assert_eq!(push.body, body);
                assert!(*first.get_or_insert_with(|| frame.clone()) == frame);
            }
        }
    });
}

#[test]
fn a_broadcast_in_a_handler_keeps_its_place_among_what_the_handler_sends() {
    within(Duration::from_secs(30), || {
        let hub: Arc<std::sync::Mutex<Option<trunkline::Hub>>> = Arc::default();
        let found = hub.clone();
        let server = Server::builder()
            .on_call(1, move |cx, _| {
                let hub = found.lock().unwrap().clone().unwrap();
                for number in (0..90u32).step_by(3) {
                    let session = cx.session();
                    session.push(NOTE, number.to_le_bytes()).unwrap();
                    let sent = hub.broadcast(NOTE, (number + 1).to_le_bytes()).unwrap();
                    assert_eq!(sent.queued, 1);
                    session.push(NOTE, (number + 2).to_le_bytes()).unwrap();
                }
            })
            .bind("127.0.0.1:0")
            .unwrap();
        *hub.lock().unwrap() = Some(server.hub().clone());
        let (sender, pushed) = mpsc::channel();
        let client = Client::builder()
            .on_push(NOTE, move |_, body| sender.send(number(&body)).unwrap())
            .connect(server.local_address())
            .unwrap();
        for _ in 0..20 {
            client.call(1, ()).unwrap();
            let pushed: Vec<u32> = pushed.try_iter().collect();
            assert_eq!(pushed, (0..90).collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_session_that_is_closing_is_counted_as_closed() {
    within(Duration::from_secs(30), || {
        let server = Server::builder().bind("127.0.0.1:0").unwrap();
        let _client = Client::connect(server.local_address()).unwrap();
        // It does not answer the goodbye, so the session stays a while.
        let peer = RawPeer::dial(server.local_address());
        assert!(eventually(LIMIT, || server.hub().len() == 2));
        server.hub().session(peer.session).unwrap().close();
        let sent = server.hub().broadcast(NOTE, b"news").unwrap();
        assert_eq!((sent.queued, sent.full, sent.closed), (1, 0, 1));
    });
}

#[test]
fn what_a_peer_does_not_admit_is_counted_and_what_does_not_encode_is_an_error() {
    within(Duration::from_secs(30), || {
        let server = Server::builder().bind("127.0.0.1:0").unwrap();
        let mut limits = Limits::default();
        limits.frame_bytes = 5_000;
        limits.body_bytes = 5_000;
        let small = Client::builder()
            .limits(limits)
            .connect(server.local_address())
            .unwrap();
        let _large = Client::connect(server.local_address()).unwrap();
        assert!(eventually(LIMIT, || server.hub().len() == 2));
        let sent = server.hub().broadcast(NOTE, vec![1; 10_000]).unwrap();
        assert_eq!((sent.queued, sent.full, sent.closed), (1, 1, 0));
        let sent = server.hub().broadcast(NOTE, vec![1; 1_000]).unwrap();
        assert_eq!((sent.queued, sent.full, sent.closed), (2, 0, 0));
        let error = server.hub().broadcast("", b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(!small.is_closed());
    });
}

#[test]
fn the_hub_counts_finds_and_lists_its_sessions() {
    within(Duration::from_secs(30), || {
        let (sender, closed) = mpsc::channel();
        let server = Server::builder()
            .on_closed(move |session, report| {
                assert_eq!(session.id(), report.session);
                sender.send(session.id()).unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let hub = server.hub();
        assert!(hub.is_empty());
        let mut clients: Vec<Client> = (0..10)
            .map(|_| Client::connect(server.local_address()).unwrap())
            .collect();
        assert!(eventually(LIMIT, || hub.len() == 10));
        let ids = || {
            let mut ids: Vec<SessionId> = hub.sessions().iter().map(|found| found.id()).collect();
            ids.sort_unstable();
            ids
        };
        let mut expected: Vec<SessionId> = clients.iter().map(|client| client.id()).collect();
        expected.sort_unstable();
        assert_eq!(ids(), expected);
        for client in &clients {
            let found = hub.session(client.id()).unwrap();
            assert_eq!(found.peer_address(), client.session().local_address());
        }
        let gone = clients.remove(3);
        let id = gone.id();
        gone.shutdown(LIMIT).unwrap();
        assert_eq!(closed.recv_timeout(LIMIT).unwrap(), id);
        assert_eq!(hub.len(), 9);
        assert_eq!(hub.session(id).unwrap_err().kind(), ErrorKind::Closed);
        expected.retain(|other| *other != id);
        assert_eq!(ids(), expected);
        // Numbers are not used again.
        let next = Client::connect(server.local_address()).unwrap();
        assert!(next.id() > *expected.last().unwrap() && next.id() > id);
        assert!(hub.session(SessionId(u64::MAX)).is_err());
        assert!(closed.recv_timeout(millis(20)).is_err());
    });
}

#[test]
fn the_hub_may_be_walked_while_sessions_come_and_go() {
    within(Duration::from_secs(30), || {
        fn walk(hub: &trunkline::Hub) {
            for session in hub.sessions() {
                let _ = session.try_push(NOTE, b"each");
                // Only those who do not find it are late.
                let _ = hub.session(session.id()).map(|found| found.stats());
            }
        }
        let hub: Arc<std::sync::OnceLock<trunkline::Hub>> = Arc::default();
        let [connected, closed, pushed] = [0; 3].map(|_| hub.clone());
        let server = Server::builder()
            .on_connected(move |_| connected.get().into_iter().for_each(walk))
            .on_closed(move |_, _| closed.get().into_iter().for_each(walk))
            .on_push(NOTE, move |cx, _| {
                pushed.get().into_iter().for_each(walk);
                cx.session().close();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        hub.set(server.hub().clone()).unwrap();
        let (hub, address) = (server.hub(), server.local_address());
        let until = Instant::now() + allowed(Duration::from_secs(1));
        let rounds = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    while Instant::now() < until {
                        walk(hub);
                        hub.broadcast(NOTE, b"all").unwrap();
                        if thread == 0 {
                            hub.sessions().first().inspect(|first| first.abort());
                        }
                    }
                });
                let rounds = &rounds;
                scope.spawn(move || {
                    while Instant::now() < until {
                        let client = match Client::connect(address) {
                            Ok(client) => client,
                            // Another thread has ended it before it had its welcome.
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
                                continue;
                            }
                        };
                        // It may have been ended by now.
                        let _ = client.push(NOTE, b"close");
                        match thread {
                            0 => drop(client),
                            1 => client.abort(),
                            _ => drop(client.shutdown(millis(100))),
                        }
                        rounds.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(rounds.into_inner() > 10);
        assert!(eventually(LIMIT, || hub.is_empty()), "{}", hub.len());
    });
}
