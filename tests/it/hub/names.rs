//! Names: one for each session at most, and each for one.

use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, CloseReason, Duplicate, ErrorKind, Hub, Server, Session, Status};

use super::{connected, server};
use crate::support::{LIMIT, RawPeer, eventually, server_session, within};

const NAME: &str = "user-42";

fn named(hub: &Hub, name: &str) -> Option<Session> {
    hub.named(name).ok()
}

#[test]
fn a_session_is_found_by_its_one_name() {
    within(Duration::from_secs(30), || {
        let server = server();
        let (_client, session) = connected(&server);
        let hub = server.hub();
        assert_eq!(session.name(), None);
        let error = hub.named(NAME).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(error.to_string().contains(NAME), "{error}");
        let set = |name| hub.set_name(&session, name, Duplicate::Refuse).unwrap();
        for _ in 0..2 {
            assert_eq!(set(NAME), None);
            assert_eq!(session.name().as_deref(), Some(NAME));
            assert_eq!(named(hub, NAME).as_ref(), Some(&session));
        }
        // Every handle knows it.
        let found = hub.session(session.id()).unwrap();
        assert_eq!(found.name().as_deref(), Some(NAME));
        assert_eq!(set("other"), None);
        assert_eq!(
            (named(hub, NAME), session.name().as_deref()),
            (None, Some("other"))
        );
        assert_eq!(named(hub, "other").as_ref(), Some(&session));
        assert_eq!(hub.remove_name(&session).as_deref(), Some("other"));
        assert_eq!((named(hub, "other"), session.name()), (None, None));
        assert_eq!(hub.remove_name(&session), None);
        assert!(!session.is_closed());
    });
}

#[test]
fn a_name_that_is_taken_is_refused_and_nothing_changes() {
    within(Duration::from_secs(30), || {
        let server = server();
        let [(first, holder), (_second, other)] = [(); 2].map(|()| connected(&server));
        let hub = server.hub();
        hub.set_name(&holder, NAME, Duplicate::Refuse).unwrap();
        hub.set_name(&other, "other", Duplicate::Replace).unwrap();
        let error = hub.set_name(&other, NAME, Duplicate::Refuse).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NameTaken);
        assert!(
            !error.is_retryable() && error.to_string().contains(NAME),
            "{error}"
        );
        assert_eq!(Status::from(error).code(), Status::NAME_TAKEN);
        assert_eq!(named(hub, NAME).as_ref(), Some(&holder));
        assert_eq!(named(hub, "other").as_ref(), Some(&other));
        assert_eq!(other.name().as_deref(), Some("other"));
        assert!(!holder.is_closed() && !first.is_closed());
    });
}

#[test]
fn a_name_that_is_taken_over_removes_its_holder_who_learns_why() {
    within(Duration::from_secs(30), || {
        let server = server();
        let [(first, holder), (_second, other)] = [(); 2].map(|()| connected(&server));
        let hub = server.hub();
        hub.set_name(&holder, NAME, Duplicate::Replace).unwrap();
        let replaced = hub.set_name(&other, NAME, Duplicate::Replace).unwrap();
        assert_eq!(replaced.as_ref(), Some(&holder));
        assert_eq!((holder.name(), other.name().as_deref()), (None, Some(NAME)));
        assert_eq!(named(hub, NAME).as_ref(), Some(&other));
        let report = first.wait_closed(LIMIT).unwrap();
        assert_eq!(report.reason, CloseReason::Clean);
        let farewell = report.farewell.unwrap();
        assert_eq!(farewell.code(), Status::NAME_TAKEN);
        assert!(farewell.text().contains(NAME), "{farewell}");
        // The end of the one takes nothing from the other.
        assert!(eventually(LIMIT, || hub.len() == 1));
        assert_eq!(named(hub, NAME).as_ref(), Some(&other));
        assert!(!other.is_closed());
    });
}

#[test]
fn a_session_that_closes_holds_no_name_against_others_and_gets_none() {
    within(Duration::from_secs(30), || {
        let server = server();
        // It does not answer the goodbye, so its session stays a while.
        let peer = RawPeer::dial(server.local_address());
        let holder = server_session(&server, peer.session);
        let (_client, other) = connected(&server);
        let hub = server.hub();
        hub.set_name(&holder, NAME, Duplicate::Refuse).unwrap();
        holder.close();
        let lost = hub.set_name(&other, NAME, Duplicate::Refuse).unwrap();
        assert_eq!((lost.as_ref(), holder.name()), (Some(&holder), None));
        let error = hub
            .set_name(&holder, "new", Duplicate::Replace)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert_eq!((named(hub, "new"), holder.name()), (None, None));
    });
}

#[test]
fn a_name_is_free_before_the_closed_event() {
    within(Duration::from_secs(30), || {
        let (sender, seen) = mpsc::channel();
        let server = Server::builder()
            .on_call(1, |cx, name| {
                let name: &str = name.decode().unwrap();
                let hub = cx.hub().unwrap();
                hub.set_name(cx.session(), name, Duplicate::Refuse)?;
                Ok::<_, Status>(())
            })
            .on_closed(move |session, _| sender.send((session.clone(), session.name())).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let hub = server.hub();
        for how in [Session::close, Session::abort] {
            let client = Client::connect(server.local_address()).unwrap();
            client.call(1, NAME).unwrap();
            assert_eq!(hub.named(NAME).unwrap().id(), client.id());
            let late = Client::connect(server.local_address()).unwrap();
            let error = late.call(1, NAME).unwrap_err();
            assert_eq!(error.status().unwrap().code(), Status::NAME_TAKEN);
            how(&client.session());
            let (session, name) = seen.recv_timeout(LIMIT).unwrap();
            assert_eq!((session.id(), name), (client.id(), None));
            assert_eq!(named(hub, NAME), None);
            let error = hub.set_name(&session, NAME, Duplicate::Refuse).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed);
            late.call(1, NAME).unwrap();
            late.shutdown(LIMIT).unwrap();
            seen.recv_timeout(LIMIT).unwrap();
        }
    });
}

#[test]
fn a_session_of_another_server_gets_no_name_and_loses_none() {
    within(Duration::from_secs(30), || {
        let [here, there] = [server(), server()];
        let [(client, own), (_other, foreign)] = [&here, &there].map(connected);
        assert_eq!(own.id(), foreign.id());
        let hub = here.hub();
        for session in [&foreign, &client.session()] {
            let error = hub.set_name(session, NAME, Duplicate::Replace).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        assert_eq!((named(hub, NAME), own.name()), (None, None));
        for (hub, session) in [(hub, &own), (there.hub(), &foreign)] {
            hub.set_name(session, NAME, Duplicate::Refuse).unwrap();
        }
        assert_eq!(hub.remove_name(&foreign), None);
        assert_eq!(foreign.name().as_deref(), Some(NAME));
        assert_eq!(named(hub, NAME), Some(own));
    });
}

#[test]
fn of_eight_threads_that_want_one_name_exactly_one_gets_it() {
    within(Duration::from_secs(60), || {
        let server = server();
        let pairs = [(); 8].map(|()| connected(&server));
        let hub = server.hub();
        for round in 0..200 {
            let name = format!("round {round}");
            let barrier = Barrier::new(pairs.len());
            let (barrier, name) = (&barrier, &name);
            let won: Vec<&Session> = thread::scope(|scope| {
                let threads = pairs.each_ref().map(|(_, session)| {
                    scope.spawn(move || {
                        barrier.wait();
                        match hub.set_name(session, name, Duplicate::Refuse) {
                            Ok(None) => Some(session),
                            Ok(Some(other)) => panic!("{other:?} lost it"),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::NameTaken);
                                None
                            }
                        }
                    })
                });
                let won = threads.map(|thread| thread.join().unwrap());
                won.into_iter().flatten().collect()
            });
            let [winner] = won[..] else {
                panic!("{won:?} have got it");
            };
            assert_eq!(named(hub, name).as_ref(), Some(winner));
            assert_eq!(winner.name().as_deref(), Some(&**name));
        }
    });
}

#[test]
fn of_eight_threads_that_take_over_one_name_the_last_has_it() {
    within(Duration::from_secs(60), || {
        let server = server();
        let pairs = [(); 8].map(|()| connected(&server));
        let hub = server.hub();
        let barrier = Barrier::new(pairs.len());
        let mut lost: Vec<Session> = thread::scope(|scope| {
            let threads = pairs.each_ref().map(|(_, session)| {
                scope.spawn(|| {
                    barrier.wait();
                    hub.set_name(session, NAME, Duplicate::Replace).unwrap()
                })
            });
            let lost = threads.map(|thread| thread.join().unwrap());
            lost.into_iter().flatten().collect()
        });
        let last = named(hub, NAME).unwrap();
        assert!(!last.is_closed());
        lost.push(last);
        lost.sort_by_key(Session::id);
        let all = pairs.each_ref().map(|(_, session)| session.clone());
        assert_eq!(lost, all);
        assert!(eventually(LIMIT, || hub.len() == 1));
    });
}
