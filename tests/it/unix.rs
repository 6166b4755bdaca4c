//! Unix sockets: what they carry, how they stop, and the errors of names that cannot be.

mod files;
mod peers;
mod starting;

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};
use trunkline::{Client, CloseReason, Error, ErrorKind, Server, ServerBuilder, Status, Timeouts};

use crate::support::folder::{Folder, unix};
use crate::support::{LIMIT, PROMPT, millis, within};

fn echo() -> ServerBuilder {
    Server::builder().on_call(1, |_, body| body.to_vec())
}

#[track_caller]
fn is_served(address: impl ToString) -> Client {
    let client = Client::connect(address).unwrap();
    assert_eq!(client.call(1, b"here?").unwrap().body(), b"here?");
    client
}

/// An abstract name that no other test has.
fn abstract_name(test: &str) -> String {
    format!("unix:@trunkline-{}-{test}", std::process::id())
}

#[test]
fn pushes_and_calls_go_both_ways_over_unix_sockets() {
    within(Duration::from_secs(20), || {
        let folder = Folder::new();
        for name in [unix(&folder.file("app")), abstract_name("both-ways")] {
            let (logged, logs) = mpsc::channel();
            let server = Server::builder()
                .on_push(1, move |_, body| logged.send(body.to_vec()).unwrap())
                .on_call(2, |cx, body| -> Result<String, Status> {
                    let name: String = cx.session().call_as(3, b"")?;
                    Ok(name + &body.decode::<String>()?)
                })
                .bind(&name)
                .unwrap();
            assert_eq!(server.local_address().to_string(), name);
            let (heard, news) = mpsc::channel();
            let client = Client::builder()
                .on_call(3, |_, _| "client ")
                .on_push(4, move |_, body| heard.send(body.to_vec()).unwrap())
                .connect(&name)
                .unwrap();
            client.push(1, b"a log").unwrap();
            let answer: String = client.call_as(2, "asks").unwrap();
            assert_eq!(answer, "client asks");
            assert_eq!(logs.recv_timeout(LIMIT).unwrap(), b"a log");
            let session = server.hub().session(client.id()).unwrap();
            let large = vec![7; 300_000];
            session.push(4, &large).unwrap();
            assert_eq!(news.recv_timeout(LIMIT).unwrap(), large);
            let report = client.shutdown(LIMIT).unwrap();
            assert_eq!(report.reason, CloseReason::Clean, "{report}");
            server.shutdown(LIMIT).unwrap();
        }
    });
}

#[test]
fn a_stop_wakes_the_accept_thread_and_frees_the_name_at_once() {
    within(Duration::from_secs(60), || {
        let folder = Folder::new();
        for name in [unix(&folder.file("app")), abstract_name("stop")] {
            for round in 0..50 {
                let server = echo().bind(&name).unwrap();
                let client = is_served(&name);
                let start = Instant::now();
                let report = server.shutdown(LIMIT).unwrap();
                let took = start.elapsed();
                assert!(took < PROMPT, "round {round} on {name}: {took:?}");
                assert_eq!((report.sessions, report.clean), (1, 1), "{report}");
                assert!(client.wait_closed(LIMIT).is_some());
                let error = Client::connect(&name).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectFailed, "{error}");
            }
        }
    });
}

/// One error of listening and one of connecting.
fn errors(address: &str) -> [Error; 2] {
    [
        echo().bind(address).unwrap_err(),
        Client::connect(address).unwrap_err(),
    ]
}

#[test]
fn names_that_no_unix_socket_can_have_are_invalid_input() {
    within(LIMIT, || {
        let long = "n".repeat(108);
        for wrong in [
            "unix:".to_owned(),
            "unix:@".to_owned(),
            "unix:/tmp/a\0b".to_owned(),
            format!("unix:/{long}"),
            format!("unix:@{long}"),
        ] {
            for error in errors(&wrong) {
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong:?}: {error}");
            }
        }
    });
}

#[test]
fn a_folder_that_does_not_exist_is_named_in_the_error() {
    within(LIMIT, || {
        let folder = Folder::new();
        let address = unix(&folder.file("gone/app"));
        let [listening, connecting] = errors(&address);
        assert_eq!(listening.kind(), ErrorKind::Io);
        assert_eq!(connecting.kind(), ErrorKind::ConnectFailed);
        for error in [listening, connecting] {
            assert!(error.to_string().contains(&address), "{error}");
        }
    });
}

#[test]
fn a_server_that_accepts_nobody_ends_a_connect_at_its_time_limit() {
    within(LIMIT, || {
        let folder = Folder::new();
        let path = folder.file("app");
        let _full = full_backlog(&path);
        let mut timeouts = Timeouts::default();
        timeouts.connect = millis(200);
        let start = Instant::now();
        let error = Client::builder()
            .timeouts(timeouts)
            .connect(unix(&path))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(error.to_string().contains("timeouts.connect"), "{error}");
        assert!(start.elapsed() >= millis(200), "{:?}", start.elapsed());
    });
}

/// A listener, and as many connections as may wait for it.
fn full_backlog(path: &Path) -> Vec<Socket> {
    let address = SockAddr::unix(path).unwrap();
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    listener.bind(&address).unwrap();
    listener.listen(1).unwrap();
    let mut sockets = vec![listener];
    loop {
        let waiting = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        waiting.set_nonblocking(true).unwrap();
        if waiting.connect(&address).is_err() {
            return sockets;
        }
        sockets.push(waiting);
    }
}
