//! The login hook: before anything of the program, and what its failure does.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, ClientState, Error, ErrorKind, Hold, Server, Session, Status};

use super::{ANY, Changes, echo, quick};
use crate::support::{LIMIT, eventually, server_session, tcp_address, within};

const LOGIN: u32 = 20;
const WORK: u32 = 21;

struct LoggedIn;

/// A server that answers only sessions that have logged in; with it, how many pushes came before.
fn guarded(refuse: impl Fn(usize) -> Option<Status> + Send + Sync + 'static) -> (Server, Counts) {
    let counts = Counts::default();
    let (logins, strangers) = (counts.logins.clone(), counts.strangers.clone());
    let more = counts.strangers.clone();
    let is_known = |session: &Session| session.data::<LoggedIn>().is_some();
    let server = echo()
        .on_call(LOGIN, move |cx, _| -> Result<(), Status> {
            if let Some(status) = refuse(logins.fetch_add(1, Ordering::SeqCst)) {
                return Err(status);
            }
            cx.session().set_data(LoggedIn);
            Ok(())
        })
        .on_call(WORK, move |cx, _| match is_known(cx.session()) {
            true => Ok(()),
            false => {
                strangers.fetch_add(1, Ordering::SeqCst);
                Err(Status::new(Status::FORBIDDEN, "who are you?"))
            }
        })
        .on_push(WORK, move |cx, _| {
            if !is_known(cx.session()) {
                more.fetch_add(1, Ordering::SeqCst);
            }
        })
        .bind(ANY)
        .unwrap();
    (server, counts)
}

#[derive(Clone, Default)]
struct Counts {
    logins: Arc<AtomicUsize>,
    strangers: Arc<AtomicUsize>,
}

fn log_in(session: &Session) -> Result<(), Error> {
    session.call(LOGIN, "let me in").map(drop)
}

#[test]
fn every_session_logs_in_before_anything_of_the_program_comes() {
    within(Duration::from_secs(60), || {
        let (server, counts) = guarded(|_| None);
        let client = Client::builder()
            .reconnect(quick())
            .hold(Hold::default())
            .on_login(log_in)
            .connect(tcp_address(&server))
            .unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::SeqCst) {
                        let _ = client.push(WORK, "");
                        match client.call(WORK, "") {
                            Ok(_) => {}
                            Err(error) => assert!(error.is_closed(), "{error:?}"),
                        }
                    }
                });
            }
            for _ in 0..20 {
                let session = client.wait_connected(LIMIT).unwrap();
                client.call(WORK, "").map(drop).unwrap_or_default();
                server_session(&server, session.id()).abort();
                assert!(eventually(LIMIT, || client.session() != session));
            }
            stop.store(true, Ordering::SeqCst);
        });
        assert!(counts.logins.load(Ordering::SeqCst) > 20);
        assert_eq!(counts.strangers.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_login_that_is_refused_is_the_error_of_connect_and_stops_a_client_that_reconnects() {
    within(Duration::from_secs(30), || {
        let (server, counts) = guarded(|_| Some(Status::new(Status::FORBIDDEN, "wrong password")));
        for builder in [Client::builder(), Client::builder().reconnect(quick())] {
            let builder = builder.on_login(log_in);
            let error = builder.connect(tcp_address(&server)).unwrap_err();
            assert_eq!(error.status().unwrap().code(), Status::FORBIDDEN);
        }
        assert_eq!(counts.logins.load(Ordering::SeqCst), 2);
        let builder = Client::builder().reconnect(quick()).on_login(log_in);
        let (builder, changes) = Changes::of(builder);
        let client = builder.connect_later(tcp_address(&server)).unwrap();
        changes.next(ClientState::Connecting);
        let reason = changes.next(ClientState::Stopped).reason.unwrap();
        assert_eq!(reason.kind(), ErrorKind::Status);
        thread::sleep(Duration::from_millis(100));
        assert_eq!(counts.logins.load(Ordering::SeqCst), 3);
        assert!(eventually(LIMIT, || server.hub().is_empty()));
        assert_eq!(client.id().0, 0);
    });
}

#[test]
fn a_login_that_fails_for_now_is_tried_again() {
    within(Duration::from_secs(30), || {
        let passing = [
            Status::OVERLOADED,
            Status::DEADLINE_EXCEEDED,
            Status::GOING_AWAY,
        ];
        let (server, counts) = guarded(move |count| {
            let code = passing.get(count)?;
            Some(Status::new(*code, "not now"))
        });
        let builder = Client::builder().reconnect(quick()).on_login(log_in);
        let (builder, changes) = Changes::of(builder);
        let client = builder.connect_later(tcp_address(&server)).unwrap();
        client.wait_connected(LIMIT).unwrap();
        assert_eq!(counts.logins.load(Ordering::SeqCst), 4);
        assert_eq!(changes.until(ClientState::Connected).attempt, 3);
        client.call(WORK, "").unwrap();
        assert_eq!(client.totals().sessions, 4);
    });
}

#[test]
fn a_session_that_is_lost_during_its_login_is_followed_by_another() {
    within(Duration::from_secs(30), || {
        let tries = Arc::new(AtomicUsize::new(0));
        let count = tries.clone();
        let server = echo()
            .on_call(LOGIN, move |cx, _| {
                if count.fetch_add(1, Ordering::SeqCst) < 2 {
                    cx.session().abort();
                }
            })
            .bind(ANY)
            .unwrap();
        let client = Client::builder()
            .reconnect(quick())
            .on_login(log_in)
            .connect_later(tcp_address(&server))
            .unwrap();
        client.wait_connected(LIMIT).unwrap();
        assert_eq!(tries.load(Ordering::SeqCst), 3);
        // Another address may let in whom the first one loses.
        tries.store(0, Ordering::SeqCst);
        let other = echo().on_call(LOGIN, |_, _| ()).bind(ANY).unwrap();
        let client = Client::builder()
            .on_login(log_in)
            .also_at(tcp_address(&other))
            .connect(tcp_address(&server))
            .unwrap();
        assert_eq!(other.hub().len(), 1);
        client.call(1, "").unwrap();
    });
}

#[test]
fn a_login_that_panics_is_a_failure_and_one_may_wait_on_its_own_session() {
    within(Duration::from_secs(30), || {
        let server = echo()
            .on_call(30, |cx, _| {
                let back = cx.session().call(31, "").unwrap();
                back.into_body()
            })
            .bind(ANY)
            .unwrap();
        let error = Client::builder()
            .on_login(|_| panic!("a login"))
            .connect(tcp_address(&server))
            .unwrap_err();
        let status = error.status().unwrap();
        assert_eq!(status.code(), Status::HANDLER_PANICKED);
        assert!(eventually(LIMIT, || server.hub().is_empty()));

        let (sender, order) = mpsc::channel();
        let second = sender.clone();
        let client = Client::builder()
            .on_call(31, |_, _| "yes")
            .on_connected(move |_| sender.send("connected").unwrap())
            .on_login(move |session| {
                second.send("login").unwrap();
                // The server calls back meanwhile.
                let reply: String = session.call_as(30, ())?;
                assert_eq!(reply, "yes");
                session.flush(LIMIT)
            })
            .connect(tcp_address(&server))
            .unwrap();
        assert_eq!(order.try_iter().collect::<Vec<_>>(), ["connected", "login"]);
        client.call(1, "").unwrap();
    });
}
