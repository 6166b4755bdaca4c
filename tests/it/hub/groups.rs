//! Groups: joined, left, pushed to, and gone with their sessions.

use std::sync::mpsc;
use std::time::Duration;

use trunkline::{Client, ErrorKind, Hub, Sent, Server, Session, SessionId};

use super::{NOTE, connected, server};
use crate::support::{LIMIT, RawPeer, eventually, millis, server_session, within};

fn ids(sessions: &[Session]) -> Vec<SessionId> {
    let mut ids: Vec<_> = sessions.iter().map(Session::id).collect();
    ids.sort_unstable();
    ids
}

fn groups(hub: &Hub) -> Vec<String> {
    let mut groups: Vec<String> = hub.groups().iter().map(|name| name.to_string()).collect();
    groups.sort_unstable();
    groups
}

fn sent(queued: usize, full: usize, closed: usize) -> Sent {
    let mut sent = Sent::default();
    (sent.queued, sent.full, sent.closed) = (queued, full, closed);
    sent
}

#[test]
fn sessions_join_and_leave_groups_which_vanish_when_empty() {
    within(Duration::from_secs(30), || {
        let server = server();
        let [(_a, first), (_b, second)] = [(); 2].map(|()| connected(&server));
        let hub = server.hub();
        assert_eq!((hub.group("red"), groups(hub)), (vec![], vec![]));
        assert!(hub.join(&first, "red").unwrap());
        assert!(!hub.join(&first, "red").unwrap());
        assert!(hub.join(&first, "blue").unwrap());
        assert!(hub.join(&second, "red").unwrap());
        assert_eq!(groups(hub), ["blue", "red"]);
        assert_eq!(
            ids(&hub.group("red")),
            ids(&[first.clone(), second.clone()])
        );
        assert_eq!(ids(&hub.group("blue")), [first.id()]);
        let names = first.groups();
        assert_eq!(
            names.iter().map(|name| &**name).collect::<Vec<_>>(),
            ["blue", "red"]
        );
        assert!(hub.leave(&first, "red"));
        assert!(!hub.leave(&first, "red") && !hub.leave(&second, "blue"));
        assert_eq!(ids(&hub.group("red")), [second.id()]);
        assert!(hub.leave(&second, "red"));
        assert_eq!(
            (groups(hub), second.groups()),
            (vec!["blue".to_owned()], vec![])
        );
        assert!(!hub.leave(&first, "nowhere"));
    });
}

#[test]
fn a_session_of_another_server_joins_no_group_and_leaves_none() {
    within(Duration::from_secs(30), || {
        let [here, there] = [server(), server()];
        let [(client, own), (_other, foreign)] = [&here, &there].map(connected);
        for session in [&foreign, &client.session()] {
            let error = here.hub().join(session, "red").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        here.hub().join(&own, "red").unwrap();
        there.hub().join(&foreign, "red").unwrap();
        assert!(!here.hub().leave(&foreign, "red"));
        assert_eq!(foreign.groups().len(), 1);
        assert_eq!(here.hub().group("red"), [own]);
    });
}

#[test]
fn a_session_that_ended_is_in_no_group_and_joins_none() {
    within(Duration::from_secs(30), || {
        let (sender, closed) = mpsc::channel();
        let server = Server::builder()
            .on_closed(move |session, _| {
                sender
                    .send((session.clone(), session.groups().len()))
                    .unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let hub = server.hub();
        for how in [Session::close, Session::abort] {
            let (client, session) = connected(&server);
            for group in ["red", "blue"] {
                hub.join(&session, group).unwrap();
            }
            how(&client.session());
            let (ended, count) = closed.recv_timeout(LIMIT).unwrap();
            assert_eq!((ended, count), (session.clone(), 0));
            assert_eq!((groups(hub), hub.group("red")), (vec![], vec![]));
            let error = hub.join(&session, "red").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed);
            assert_eq!((groups(hub), session.groups()), (vec![], vec![]));
        }
    });
}

/// A client that tells which pushes it got.
fn listener(server: &Server) -> (Client, Session, mpsc::Receiver<Vec<u8>>) {
    let (sender, pushes) = mpsc::channel();
    let client = Client::builder()
        .on_push(NOTE, move |_, body| sender.send(body.to_vec()).unwrap())
        .connect(server.local_address())
        .unwrap();
    let session = server_session(server, client.id());
    (client, session, pushes)
}

#[test]
fn a_push_to_a_group_reaches_its_sessions_alone_and_counts_them() {
    within(Duration::from_secs(30), || {
        let server = server();
        let hub = server.hub();
        let listeners = [(); 4].map(|()| listener(&server));
        for (_, session, _) in &listeners[..3] {
            hub.join(session, "red").unwrap();
        }
        // It does not answer the goodbye, so its session stays a while, closed.
        let peer = RawPeer::dial(server.local_address());
        let closing = server_session(&server, peer.session);
        hub.join(&closing, "red").unwrap();
        closing.close();
        assert_eq!(
            hub.push_to_group("red", NOTE, b"first").unwrap(),
            sent(3, 0, 1)
        );
        hub.leave(&listeners[2].1, "red");
        assert_eq!(
            hub.push_to_group("red", NOTE, b"second").unwrap(),
            sent(2, 0, 1)
        );
        assert_eq!(
            hub.push_to_group("none", NOTE, b"x").unwrap(),
            sent(0, 0, 0)
        );
        let error = hub.push_to_group("red", "", b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(hub.broadcast(NOTE, b"last").unwrap(), sent(4, 0, 1));
        let expected: [&[&[u8]]; 4] = [
            &[b"first", b"second", b"last"],
            &[b"first", b"second", b"last"],
            &[b"first", b"last"],
            &[b"last"],
        ];
        for ((_, _, pushes), expected) in listeners.iter().zip(expected) {
            for body in expected {
                assert_eq!(pushes.recv_timeout(LIMIT).unwrap(), *body);
            }
            assert!(pushes.recv_timeout(millis(10)).is_err());
        }
    });
}

#[test]
fn a_broadcast_with_a_condition_asks_it_of_each_session_and_may_use_the_hub() {
    within(Duration::from_secs(30), || {
        let server = server();
        let hub = server.hub();
        let listeners = [(); 4].map(|()| listener(&server));
        let speaker = &listeners[0].1;
        let mut asked = Vec::new();
        let done = hub.broadcast_if(NOTE, b"news", |session| {
            asked.push(session.clone());
            // No lock is held, for reading or writing, and the encoder is done.
            hub.join(session, "asked").unwrap();
            session.push(2, b"asked").unwrap();
            session != speaker
        });
        assert_eq!(done.unwrap(), sent(3, 0, 0));
        assert_eq!(ids(&asked), ids(&hub.sessions()));
        assert_eq!(hub.group("asked").len(), 4);
        for (_, session, pushes) in &listeners {
            let got = pushes.recv_timeout(if session == speaker {
                millis(10)
            } else {
                LIMIT
            });
            assert_eq!(
                got.ok().as_deref(),
                (session != speaker).then_some(&b"news"[..])
            );
        }
        let error = hub.broadcast_if("", b"x", |_| panic!("nobody is asked"));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(
            hub.broadcast_if(NOTE, b"x", |_| false).unwrap(),
            sent(0, 0, 0)
        );
        assert!(eventually(LIMIT, || hub.len() == 4));
    });
}
