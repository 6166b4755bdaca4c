//! The hub used by everybody at once, also in callbacks, while sessions come and go.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use trunkline::{Client, Duplicate, ErrorKind, Hub, Server, Session, Status};

use super::NOTE;
use crate::support::{LIMIT, eventually, millis, within};

const GROUPS: [&str; 3] = ["red", "green", "blue"];
const NAMES: [&str; 4] = ["ann", "ben", "cleo", "dan"];

/// Everything that a hub can do, with sessions that may be over at any moment.
fn use_it(hub: &Hub, own: Option<&Session>, turn: usize) {
    let (group, name) = (GROUPS[turn % GROUPS.len()], NAMES[turn % NAMES.len()]);
    let any = own.cloned().or_else(|| hub.random());
    if let Some(session) = any {
        let rule = match turn % 5 {
            0 => Duplicate::Replace,
            _ => Duplicate::Refuse,
        };
        if let Err(error) = hub.set_name(&session, name, rule) {
            assert!(
                matches!(error.kind(), ErrorKind::NameTaken | ErrorKind::Closed),
                "{error}"
            );
        }
        match hub.join(&session, group) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Closed, "{error}"),
        }
        match turn % 3 {
            0 => drop(hub.remove_name(&session)),
            1 => drop(hub.leave(&session, group)),
            _ => {}
        }
        let _ = hub.session_at(session.peer_address());
    }
    let all = hub.push_to_group(group, NOTE, b"group").unwrap();
    assert!(all.queued + all.full + all.closed < 1_000);
    let asked = AtomicUsize::new(0);
    let sent = hub.broadcast_if(NOTE, b"some", |session| {
        asked.fetch_add(1, Ordering::SeqCst);
        session.name().is_none()
    });
    let sent = sent.unwrap();
    assert!(sent.queued + sent.full + sent.closed <= asked.into_inner());
    for session in hub.group(group) {
        // It may have left it meanwhile.
        let _ = (session.groups(), session.name());
    }
    let _ = hub
        .named(name)
        .map(|session| session.snapshot().to_string());
    let _ = (hub.snapshot().len(), hub.groups());
}

#[test]
fn names_and_groups_change_while_sessions_come_and_go_also_in_callbacks() {
    within(Duration::from_secs(60), || {
        let hub: Arc<OnceLock<Hub>> = Arc::default();
        let turns = Arc::new(AtomicUsize::new(0));
        let callback = || {
            let (hub, turns) = (hub.clone(), turns.clone());
            move |session: &Session| {
                if let Some(hub) = hub.get() {
                    use_it(hub, Some(session), turns.fetch_add(1, Ordering::SeqCst));
                }
            }
        };
        let (connected, closed, pushed) = (callback(), callback(), callback());
        // Begun and done in full; a panic in it is counted by nobody.
        let ended = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let ending = ended.clone();
        let server = Server::builder()
            .on_connected(connected)
            .on_closed(move |session, _| {
                ending[0].fetch_add(1, Ordering::SeqCst);
                closed(session);
                assert_eq!((session.name(), session.groups()), (None, vec![]));
                ending[1].fetch_add(1, Ordering::SeqCst);
            })
            .on_push(NOTE, move |cx, _| pushed(cx.session()))
            .bind("127.0.0.1:0")
            .unwrap();
        hub.set(server.hub().clone()).unwrap();
        let (hub, address) = (server.hub(), server.local_address());
        let until = Instant::now() + Duration::from_secs(2);
        let rounds = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let (rounds, turns) = (&rounds, &turns);
            for thread in 0..4 {
                scope.spawn(move || {
                    while Instant::now() < until {
                        let turn = turns.fetch_add(1, Ordering::SeqCst);
                        use_it(hub, None, turn);
                        if let (0, Some(session)) = (turn % 10, hub.random()) {
                            let _ = hub.remove(session.id(), Status::new(1000, "at random"));
                        }
                    }
                });
                scope.spawn(move || {
                    while Instant::now() < until {
                        let Ok(client) = Client::connect(address) else {
                            // Another thread has ended it before it had its welcome.
                            continue;
                        };
                        let _ = client.push(NOTE, b"change");
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
        assert!(hub.groups().is_empty(), "{:?}", hub.groups());
        for name in NAMES {
            assert!(hub.named(name).is_err());
        }
        assert_eq!(server.stats().panics, 0);
        let is_done = || {
            let [begun, done] = ended.each_ref().map(|count| count.load(Ordering::SeqCst));
            begun == done && begun > 10
        };
        assert!(eventually(LIMIT, is_done), "{ended:?}");
    });
}
