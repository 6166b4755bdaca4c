//! The threads of a pool: what runs on them, and when they begin and end.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use trunkline::{Client, Exchange, Interceptor, Server, Status, ThreadRole};

use super::{ASK, NOTE, WAIT, pool};
use crate::support::{LIMIT, eventually, within};
use crate::threads::{alone, thread_names};

type Names = Arc<Mutex<Vec<(&'static str, String)>>>;

fn note(names: &Names, what: &'static str) {
    let name = thread::current().name().unwrap().to_owned();
    names.lock().unwrap().push((what, name));
}

struct Notes(Names);

impl Interceptor for Notes {
    fn before(&self, _: &Exchange<'_>) -> Result<(), Status> {
        note(&self.0, "interceptor");
        Ok(())
    }
}

#[test]
fn handlers_and_their_interceptors_run_on_workers_and_events_do_not() {
    within(LIMIT, || {
        let names = Names::default();
        let [begun, ended, handled, started] = [(); 4].map(|()| names.clone());
        let server = Server::builder()
            .dispatch(pool(1, 16, true))
            .intercept(Notes(names.clone()))
            .on_thread_start(move |thread| {
                if thread.role == ThreadRole::Pool {
                    note(&started, "start");
                }
            })
            .on_connected(move |_| note(&begun, "connected"))
            .on_call(ASK, move |_, _| note(&handled, "handler"))
            .on_closed(move |_, _| note(&ended, "closed"))
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        client.call(ASK, ()).unwrap();
        let samples = || server.stats().handler_time().map(|time| time.samples);
        assert!(eventually(LIMIT, || samples() == Some(1)));
        client.shutdown(LIMIT).unwrap();
        server.shutdown(LIMIT).unwrap();
        let names = names.lock().unwrap();
        let expected = [
            ("connected", "tl-read"),
            ("start", "tl-pool-1"),
            ("interceptor", "tl-pool-1"),
            ("handler", "tl-pool-1"),
            ("closed", "tl-read"),
        ];
        let names = names.iter().map(|(what, name)| (*what, name.as_str()));
        assert_eq!(names.collect::<Vec<_>>(), expected);
    });
}

fn workers() -> usize {
    let names = thread_names().into_iter();
    names.filter(|name| name.starts_with("tl-pool")).count()
}

const PANICS: &str = "pools::workers::panics_cost_no_worker";

#[test]
fn panics_cost_no_worker() {
    alone(PANICS, Duration::from_secs(60), || {
        let meeting = Barrier::new(4);
        let server = Server::builder()
            .dispatch(pool(4, 16, false))
            .on_call(WAIT, move |_, _| {
                meeting.wait();
            })
            .on_call(ASK, |_, body| match body.is_empty() {
                true => panic!("on purpose"),
                false => body.to_vec(),
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let meet = || {
            let pending = [(); 4].map(|()| client.request(WAIT).start(()).unwrap());
            for pending in pending {
                pending.wait().unwrap();
            }
        };
        meet();
        assert_eq!(workers(), 4);
        for _ in 0..500 {
            let error = client.call(ASK, ()).unwrap_err();
            assert_eq!(error.status().unwrap().code(), Status::HANDLER_PANICKED);
        }
        assert_eq!(client.call(ASK, "well").unwrap().body(), b"well");
        // All four are there.
        meet();
        assert_eq!(workers(), 4);
        assert_eq!(server.stats().panics, 500);
    });
}

const COMINGS: &str = "pools::workers::workers_start_when_they_are_needed_and_end_with_their_owner";

#[test]
fn workers_start_when_they_are_needed_and_end_with_their_owner() {
    alone(COMINGS, Duration::from_secs(60), || {
        let meeting = Barrier::new(3);
        let server = Server::builder()
            .dispatch(pool(8, 16, false))
            .on_call(ASK, |_, _| ())
            .on_call(WAIT, move |_, _| {
                meeting.wait();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .dispatch(pool(8, 16, true))
            .on_push(NOTE, |_, _| ())
            .connect(server.local_address())
            .unwrap();
        client.call(NOTE, ()).unwrap_err();
        assert_eq!(workers(), 0);
        client.call(ASK, ()).unwrap();
        assert_eq!(workers(), 1);
        let pending = [(); 3].map(|()| client.request(WAIT).start(()).unwrap());
        for pending in pending {
            pending.wait().unwrap();
        }
        // One more where one that has answered is not at rest yet.
        let needed = 3..=4;
        assert!(needed.contains(&workers()), "{:?}", thread_names());
        let session = server.hub().session(client.id()).unwrap();
        session.push(NOTE, ()).unwrap();
        let both = 4..=5;
        assert!(eventually(LIMIT, || both.contains(&workers())));
        client.shutdown(LIMIT).unwrap();
        assert!(eventually(LIMIT, || needed.contains(&workers())));
        // They stay for the next session.
        let client = Client::connect(server.local_address()).unwrap();
        client.call(ASK, ()).unwrap();
        assert!(needed.contains(&workers()));
        drop(server);
        client.wait_closed(LIMIT).unwrap();
        assert!(eventually(LIMIT, || workers() == 0), "{:?}", thread_names());
    });
}
