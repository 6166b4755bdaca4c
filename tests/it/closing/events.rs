//! The closed event: exactly one for each connected event, after the last message, with the
//! right reason, however the session ends.

use std::collections::HashMap;
use std::io::Write;
use std::net::Shutdown;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use trunkline::{
    Client, ClientBuilder, CloseReason, ErrorKind, Kind, Server, Session, SessionId, Timeouts,
};

use crate::support::{
    LIMIT, RawPeer, counts_frame, eventually, frame, millis, server_session, within,
};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Connected,
    Message(u8),
    Closed(CloseReason, Option<ErrorKind>),
}

/// What happened to each session, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<HashMap<SessionId, Vec<Event>>>>);

impl Log {
    fn add(&self, session: &Session, event: Event) {
        let mut log = self.0.lock().unwrap();
        log.entry(session.id()).or_default().push(event);
    }

    fn of(&self, id: SessionId) -> Vec<Event> {
        self.0.lock().unwrap().get(&id).cloned().unwrap_or_default()
    }

    /// Waits for the closed event and gives all events.
    fn to_the_end(&self, id: SessionId) -> Vec<Event> {
        let has_ended = || matches!(self.of(id).last(), Some(Event::Closed(..)));
        assert!(eventually(LIMIT, has_ended), "{:?}", self.of(id));
        self.of(id)
    }
}

/// Routes: 1 is noted, 2 closes, 3 aborts, 4 panics.
macro_rules! noting {
    ($builder:expr, $log:expr) => {{
        let [connected, message, closed] = [0; 3].map(|_| $log.clone());
        $builder
            .on_connected(move |session| connected.add(session, Event::Connected))
            .on_push(1, move |cx, body| {
                message.add(cx.session(), Event::Message(body[0]));
            })
            .on_push(2, |cx, _| cx.session().close())
            .on_push(3, |cx, _| cx.session().abort())
            .on_push(4, |_, _| panic!("as the test asks"))
            .on_call(5, |_, _| ())
            .on_closed(move |session, report| {
                let kind = report.error.as_ref().map(|error| error.kind());
                closed.add(session, Event::Closed(report.reason, kind));
            })
    }};
}

/// How a session is brought to its end, after three messages.
enum Way {
    /// By hand.
    Raw(fn(RawPeer)),
    /// By a client, which sees the second pair of reason and kind.
    Client(fn(Client), CloseReason, Option<ErrorKind>),
}

/// Ends some sessions in a way and looks at the events of both sides.
#[track_caller]
fn each_ends(
    rounds: usize,
    timeouts: Timeouts,
    way: Way,
    reason: CloseReason,
    kind: Option<ErrorKind>,
) {
    within(Duration::from_secs(60), move || {
        let log = Log::default();
        let (sender, errors) = mpsc::channel();
        let server = noting!(Server::builder(), log)
            .timeouts(timeouts)
            .on_error(move |error| sender.send(error.kind()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let expected = |reason, kind| {
            vec![
                Event::Connected,
                Event::Message(0),
                Event::Message(1),
                Event::Message(2),
                Event::Closed(reason, kind),
            ]
        };
        let mut sessions = Vec::new();
        for _ in 0..rounds {
            match &way {
                Way::Raw(end) => {
                    let mut peer = RawPeer::dial(server.local_address());
                    let id = peer.session;
                    for number in 0..3 {
                        peer.push(1, &[number]);
                    }
                    assert!(eventually(LIMIT, || log.of(id).len() >= 4));
                    end(peer);
                    sessions.push(id);
                }
                Way::Client(end, reason, kind) => {
                    let own_log = Log::default();
                    let builder: ClientBuilder = noting!(Client::builder(), own_log);
                    let client = builder.connect(server.local_address()).unwrap();
                    let id = client.id();
                    let session = server_session(&server, id);
                    for number in 0..3 {
                        client.push(1, [number]).unwrap();
                    }
                    assert!(eventually(LIMIT, || log.of(id).len() >= 4));
                    for number in 0..3 {
                        session.push(1, [number]).unwrap();
                    }
                    assert!(eventually(LIMIT, || own_log.of(id).len() >= 4));
                    end(client);
                    assert_eq!(own_log.to_the_end(id), expected(*reason, *kind));
                    sessions.push(id);
                }
            }
        }
        for id in &sessions {
            assert_eq!(log.to_the_end(*id), expected(reason, kind), "session {id}");
        }
        server.shutdown(LIMIT).unwrap();
        // Nothing comes after the closed event, not even at the shutdown.
        for id in &sessions {
            assert_eq!(log.of(*id), expected(reason, kind), "session {id}");
        }
        assert_eq!(log.0.lock().unwrap().len(), sessions.len());
        // The error event tells each of them too.
        let told: Vec<ErrorKind> = errors.try_iter().collect();
        assert_eq!(
            told,
            vec![kind; rounds].into_iter().flatten().collect::<Vec<_>>()
        );
    });
}

const CLEAN: CloseReason = CloseReason::Clean;
const CUT: CloseReason = CloseReason::Cut;
const DISCONNECTED: Option<ErrorKind> = Some(ErrorKind::Disconnected);

#[test]
fn a_stream_that_ends_between_frames_closes_once_as_ended() {
    let way = Way::Raw(|peer| peer.stream.shutdown(Shutdown::Both).unwrap());
    let reason = CloseReason::Ended;
    each_ends(100, Timeouts::default(), way, reason, DISCONNECTED);
}

#[test]
fn a_stream_that_ends_inside_a_frame_closes_once_as_truncated() {
    let way = Way::Raw(|mut peer| {
        let frame = frame(Kind::Push, 1, 0, b"never whole");
        peer.send(&frame[..frame.len() - 1]);
    });
    let reason = CloseReason::Truncated;
    each_ends(100, Timeouts::default(), way, reason, DISCONNECTED);
}

#[test]
fn a_reset_closes_once_as_reset() {
    let way = Way::Raw(RawPeer::reset);
    let reason = CloseReason::Reset;
    each_ends(100, Timeouts::default(), way, reason, DISCONNECTED);
}

#[test]
fn a_goodbye_by_hand_closes_once_as_clean() {
    let way = Way::Raw(|peer| peer.close(0, 0));
    each_ends(100, Timeouts::default(), way, CLEAN, None);
}

#[test]
fn a_shutdown_of_the_client_closes_once_as_clean() {
    let way = |client: Client| {
        client.shutdown(LIMIT).unwrap();
    };
    each_ends(
        100,
        Timeouts::default(),
        Way::Client(way, CLEAN, None),
        CLEAN,
        None,
    );
}

#[test]
fn a_dropped_client_closes_once_as_clean() {
    let way = Way::Client(drop, CLEAN, None);
    each_ends(100, Timeouts::default(), way, CLEAN, None);
}

#[test]
fn a_close_in_a_handler_closes_once_as_clean() {
    let way = |client: Client| client.push(2, b"").unwrap();
    each_ends(
        100,
        Timeouts::default(),
        Way::Client(way, CLEAN, None),
        CLEAN,
        None,
    );
}

#[test]
fn an_abort_closes_once_as_cut() {
    let way = |client: Client| client.push(3, b"").unwrap();
    let kind = Some(ErrorKind::Closed);
    let way = Way::Client(way, CloseReason::Ended, DISCONNECTED);
    each_ends(100, Timeouts::default(), way, CUT, kind);
}

#[test]
fn an_abort_of_the_peer_closes_once_as_ended() {
    let kind = Some(ErrorKind::Closed);
    let way = Way::Client(|client| client.abort(), CUT, kind);
    let reason = CloseReason::Ended;
    each_ends(100, Timeouts::default(), way, reason, DISCONNECTED);
}

#[test]
fn a_panic_of_a_handler_does_not_close_and_the_close_comes_once() {
    let way = |client: Client| {
        client.push(4, b"").unwrap();
        client.call(5, b"").unwrap();
        client.shutdown(LIMIT).unwrap();
    };
    each_ends(
        100,
        Timeouts::default(),
        Way::Client(way, CLEAN, None),
        CLEAN,
        None,
    );
}

#[test]
fn a_bad_frame_closes_once_as_malformed() {
    let way = Way::Raw(|mut peer| {
        peer.send(&[1, 0, 0, 0]);
        assert!(peer.is_closed_within(LIMIT));
    });
    let kind = Some(ErrorKind::Malformed);
    each_ends(100, Timeouts::default(), way, CUT, kind);
}

#[test]
fn a_frame_over_the_limit_closes_once_as_too_large() {
    let way = Way::Raw(|mut peer| {
        peer.send(&u32::MAX.to_le_bytes());
        assert!(peer.is_closed_within(LIMIT));
    });
    let kind = Some(ErrorKind::FrameTooLarge);
    each_ends(100, Timeouts::default(), way, CUT, kind);
}

#[test]
fn a_flood_of_stray_replies_closes_once_as_abuse() {
    let way = Way::Raw(|mut peer| {
        let stray = frame(Kind::Reply, 0, 0x0001_0000, b"").repeat(1001);
        // The server may close before it has read all.
        let _ = peer.stream.write_all(&stray);
        assert!(peer.is_closed_within(LIMIT));
    });
    let kind = Some(ErrorKind::ProtocolAbuse);
    each_ends(20, Timeouts::default(), way, CUT, kind);
}

#[test]
fn a_pong_without_counts_closes_once_as_malformed() {
    let way = Way::Raw(|mut peer| {
        peer.send(&frame(Kind::Pong, 0, 0, &[0; 15]));
        assert!(peer.is_closed_within(LIMIT));
    });
    let kind = Some(ErrorKind::Malformed);
    each_ends(20, Timeouts::default(), way, CUT, kind);
}

#[test]
fn a_frame_that_is_not_finished_closes_once_by_its_deadline() {
    let mut timeouts = Timeouts::default();
    timeouts.frame = millis(50);
    let way = Way::Raw(|mut peer| {
        peer.send(&[30, 0, 0]);
        assert!(peer.is_closed_within(LIMIT));
    });
    each_ends(20, timeouts, way, CUT, Some(ErrorKind::FrameTimeout));
}

#[test]
fn a_silent_peer_closes_once_by_the_idle_limit() {
    let mut timeouts = Timeouts::default();
    timeouts.idle = millis(500);
    let way = Way::Raw(|mut peer| assert!(peer.is_closed_within(LIMIT)));
    each_ends(5, timeouts, way, CUT, Some(ErrorKind::Timeout));
}

#[test]
fn a_peer_that_does_not_answer_a_goodbye_closes_once_by_the_limit() {
    let mut timeouts = Timeouts::default();
    timeouts.close = millis(50);
    let way = Way::Raw(|mut peer| {
        peer.push(2, b"close");
        assert_eq!(peer.next().unwrap().kind, Kind::Goodbye);
        assert!(peer.is_closed_within(LIMIT));
    });
    each_ends(20, timeouts, way, CUT, Some(ErrorKind::Timeout));
}

#[test]
fn the_shutdown_of_the_server_closes_each_session_once_as_clean() {
    within(Duration::from_secs(60), || {
        for _ in 0..20 {
            let log = Log::default();
            let server = noting!(Server::builder(), log).bind("127.0.0.1:0").unwrap();
            let mut clients = Vec::new();
            for _ in 0..5 {
                let own_log = Log::default();
                let builder: ClientBuilder = noting!(Client::builder(), own_log);
                let client = builder.connect(server.local_address()).unwrap();
                client.call(5, b"").unwrap();
                clients.push((client, own_log));
            }
            let report = server.shutdown(LIMIT).unwrap();
            assert_eq!((report.sessions, report.clean), (5, 5));
            for (client, own_log) in &clients {
                let expected = [Event::Connected, Event::Closed(CLEAN, None)];
                assert_eq!(log.of(client.id()), expected);
                assert_eq!(own_log.to_the_end(client.id()), expected);
            }
        }
    });
}

#[test]
fn what_came_before_a_reset_is_delivered() {
    within(Duration::from_secs(20), || {
        let log = Log::default();
        let server = noting!(Server::builder(), log).bind("127.0.0.1:0").unwrap();
        for _ in 0..50 {
            let mut peer = RawPeer::dial(server.local_address());
            let id = peer.session;
            let all: Vec<u8> = (0..50)
                .flat_map(|number| frame(Kind::Push, 1, 0, &[number]))
                .collect();
            peer.send(&all);
            peer.reset();
            let events = log.to_the_end(id);
            let mut expected: Vec<Event> = vec![Event::Connected];
            expected.extend((0..50).map(Event::Message));
            expected.push(Event::Closed(CloseReason::Reset, DISCONNECTED));
            assert_eq!(events, expected);
        }
    });
}

#[test]
fn a_panic_in_the_closed_event_does_not_keep_the_session() {
    within(Duration::from_secs(20), || {
        let server = Server::builder()
            .on_connected(|_| panic!("as the test asks"))
            .on_closed(|_, _| panic!("as the test asks"))
            .on_call(5, |_, _| ())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        client.call(5, b"").unwrap();
        let session = server.hub().session(client.id()).unwrap();
        assert_eq!(client.shutdown(LIMIT).unwrap().reason, CLEAN);
        assert_eq!(session.shutdown(LIMIT).unwrap().reason, CLEAN);
        assert_eq!(session.stats().panics, 2);
        assert!(eventually(LIMIT, || server.hub().is_empty()));
    });
}

/// Closes from within every kind of callback, in all the ways that there are.
#[test]
fn closing_in_a_callback_neither_hangs_nor_fails() {
    type Close = fn(&Session);
    const CLOSES: [Close; 3] = [Session::close, Session::abort, |session| {
        let error = session.shutdown(LIMIT).map(drop);
        // Where the session has ended already, or another thread runs the callback,
        // waiting is allowed.
        if let Err(error) = error {
            assert_eq!(error.kind(), ErrorKind::WouldDeadlock);
        }
    }];
    within(Duration::from_secs(60), || {
        for round in 0..150 {
            let close = CLOSES[round % 3];
            let server = Server::builder()
                .on_call(1, |_, _| ())
                .on_push(2, |cx, _| cx.session().push(2, b"").unwrap())
                .bind("127.0.0.1:0")
                .unwrap();
            let place = round / 3 % 5;
            let client: Arc<Mutex<Option<Client>>> = Arc::default();
            let dropped = client.clone();
            let (sender, ends) = mpsc::channel();
            let built = Client::builder()
                .on_connected(move |session| {
                    if place == 0 {
                        close(session);
                    }
                })
                .on_push(2, move |cx, _| match place {
                    1 => close(cx.session()),
                    2 => drop(dropped.lock().unwrap().take()),
                    _ => {}
                })
                .on_closed(move |session, _| {
                    close(session);
                    sender.send(()).unwrap();
                })
                .connect(server.local_address());
            let built = built.unwrap();
            let session = built.session();
            *client.lock().unwrap() = Some(built);
            match place {
                0 => {}
                1 | 2 => session.push(2, b"").unwrap(),
                3 => {
                    let own = session.clone();
                    session
                        .request(1)
                        .start(b"")
                        .unwrap()
                        .on_reply(move |_| close(&own));
                }
                _ => close(&session),
            }
            ends.recv_timeout(LIMIT).unwrap();
            assert!(session.shutdown(LIMIT).is_ok());
            assert!(server.shutdown(LIMIT).is_ok());
            assert!(ends.try_recv().is_err());
        }
    });
}

#[test]
fn counts_that_a_peer_exaggerates_confirm_no_more_than_was_written() {
    within(Duration::from_secs(20), || {
        let (sender, ends) = mpsc::channel();
        let server = Server::builder()
            .on_connected(|session| session.push(1, b"one").unwrap())
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let mut peer = RawPeer::dial(server.local_address());
        assert_eq!(peer.next().unwrap().kind, Kind::Push);
        peer.send(&counts_frame(Kind::Pong, u64::MAX, u64::MAX));
        peer.close(u64::MAX, u64::MAX);
        let report = ends.recv_timeout(LIMIT).unwrap();
        assert_eq!(report.confirmed.messages, 1, "{report}");
        assert_eq!(report.unconfirmed.messages, 0, "{report}");
    });
}
