//! What goes to the application's log, and how often.

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Instant;

use log::{Level, LevelFilter, Log, Metadata, Record};
use trunkline::{Backoff, Client, CloseReason, Limits, Server, SlowPeer, Status};

use crate::support::{LIMIT, RawPeer, eventually, frame, server_session, tcp_address, within};

/// The logger panics at a record with this route.
const LOGGER_PANICS: &str = "/log-records/logger-panics";

/// Keeps what the crate records; all tests of this process share it.
struct Keeper(Mutex<Vec<(String, Level, String)>>);

static KEEPER: Keeper = Keeper(Mutex::new(Vec::new()));
static BEGIN: Once = Once::new();

impl Log for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("trunkline::")
    }

    fn log(&self, record: &Record<'_>) {
        assert!(!record.args().to_string().contains(LOGGER_PANICS));
        let kept = (
            record.target().to_owned(),
            record.level(),
            record.args().to_string(),
        );
        self.all().push(kept);
    }

    fn flush(&self) {}
}

impl Keeper {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<(String, Level, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep() {
    BEGIN.call_once(|| {
        log::set_logger(&KEEPER).unwrap();
        log::set_max_level(LevelFilter::Debug);
    });
}

/// The records of a target and level whose text holds all the parts.
fn found(target: &str, level: Level, parts: &[&str]) -> Vec<String> {
    let all = KEEPER.all();
    let texts = all
        .iter()
        .filter(|(t, l, _)| t == target && *l == level)
        .map(|(_, _, text)| text.clone());
    texts
        .filter(|text| parts.iter().all(|part| text.contains(part)))
        .collect()
}

#[track_caller]
fn expect(target: &str, level: Level, parts: &[&str]) {
    let is_there = || !found(target, level, parts).is_empty();
    assert!(eventually(LIMIT, is_there), "{target} {level} {parts:?}");
}

#[test]
fn the_life_of_a_server_and_its_sessions_is_recorded_at_its_levels() {
    keep();
    within(LIMIT, || {
        // A route and a user's status that no other test has, to tell the records apart.
        let server = Server::builder()
            .on_call("/log-records/panics", |_, _| -> () { panic!("as asked") })
            .bind("127.0.0.1:0")
            .unwrap();
        let address = tcp_address(&server);
        let listening = format!("listening on {address}");
        expect("trunkline::server", Level::Info, &[&listening]);

        let client = Client::connect(address).unwrap();
        let began = format!("with {} began", client.local_address());
        expect("trunkline::session", Level::Debug, &[&began]);
        client.call("/log-records/panics", "").unwrap_err();
        let panicked = ["/log-records/panics", "panicked"];
        expect("trunkline::handler", Level::Warn, &panicked);

        let report = client.shutdown(LIMIT).unwrap();
        assert_eq!(report.reason, CloseReason::Clean);
        let closed = format!("session {} closed (Clean)", report.session);
        expect("trunkline::session", Level::Debug, &[&closed]);

        let peer = RawPeer::dial(address);
        let cut = format!("session {} closed (Ended)", peer.session);
        drop(peer);
        expect("trunkline::session", Level::Warn, &[&cut]);
        server.shutdown(LIMIT).unwrap();
        expect("trunkline::server", Level::Info, &["shut down: "]);
    });
}

#[test]
fn a_refused_connection_and_a_failed_handshake_name_the_peer() {
    keep();
    within(LIMIT, || {
        let server = Server::builder()
            .on_accept(|_| Err(Status::new(4711, "not today")))
            .bind("127.0.0.1:0")
            .unwrap();
        Client::connect(server.local_address()).unwrap_err();
        let refused = ["a connection from 127.0.0.1:", "4711"];
        expect("trunkline::server", Level::Warn, &refused);

        let server = Server::builder().bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(server.local_address()).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let from = stream.local_addr().unwrap().to_string();
        let failed = ["the handshake with", &from, "HTTP"];
        expect("trunkline::server", Level::Warn, &failed);
    });
}

#[test]
fn peers_that_break_the_protocol_write_few_lines() {
    keep();
    within(6 * LIMIT, || {
        let server = Server::builder()
            .on_push(4712, |_, _| panic!("flood of panics"))
            .bind("127.0.0.1:0")
            .unwrap();
        let address = tcp_address(&server);
        let start = Instant::now();
        for _ in 0..2_000 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"SSH-2.0-flood_of_lines\r\n").unwrap();
        }
        let failed = || server.stats().handshakes_failed;
        assert!(eventually(4 * LIMIT, || failed() == 2_000));
        let seconds = start.elapsed().as_secs() as usize + 2;
        let lines = found("trunkline::server", Level::Warn, &["an SSH peer"]).len();
        assert!(
            (1..=10 * seconds).contains(&lines),
            "{lines} lines in {seconds} s"
        );

        let start = Instant::now();
        let mut peer = RawPeer::dial(address);
        let push = frame(trunkline::Kind::Push, 4712, 0, b"never to be written");
        peer.send(&push.repeat(100));
        assert!(eventually(LIMIT, || server.stats().panics == 100));
        let seconds = start.elapsed().as_secs() as usize + 2;
        let lines = found("trunkline::handler", Level::Warn, &["route #4712"]).len();
        assert!(
            (1..=seconds).contains(&lines),
            "{lines} lines in {seconds} s"
        );
        let all = KEEPER.all();
        let with_body = all.iter().find(|(_, _, text)| text.contains("never to be"));
        assert_eq!(with_body, None);
    });
}

#[test]
fn dropped_pushes_write_a_line_a_second_and_count_the_others() {
    keep();
    within(6 * LIMIT, || {
        let mut limits = Limits::default();
        limits.queued_bytes = 10_000;
        let server = Server::builder()
            .limits(limits)
            .slow_peer(SlowPeer::DropNewest)
            .bind("127.0.0.1:0")
            .unwrap();
        let peer = RawPeer::dial(server.local_address());
        let session = server_session(&server, peer.session);
        let address = peer.stream.local_addr().unwrap().to_string();
        let parts = ["a push was dropped (SlowPeer::DropNewest)", &address];
        let lines = || found("trunkline::session", Level::Warn, &parts);
        let start = Instant::now();
        let is_counted = |line: &String| line.contains(" like it were left out)");
        while !lines().iter().any(is_counted) {
            session.push(4713, vec![1; 9_000]).unwrap();
        }
        let (lines, seconds) = (lines().len(), start.elapsed().as_secs() as usize + 2);
        assert!(lines <= seconds, "{lines} lines in {seconds} s");
    });
}

#[test]
fn a_logger_that_panics_ends_no_session() {
    keep();
    within(LIMIT, || {
        let server = Server::builder()
            .on_call(LOGGER_PANICS, |_, _| -> () { panic!("as asked") })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        for _ in 0..2 {
            let call = client.request(LOGGER_PANICS).timeout(LIMIT / 4);
            let error = call.call("").unwrap_err();
            assert_eq!(error.status().unwrap().code(), Status::HANDLER_PANICKED);
        }
        let report = client.shutdown(LIMIT / 4).unwrap();
        assert_eq!(report.reason, CloseReason::Clean);
    });
}

#[test]
fn a_client_that_reconnects_records_that_it_waits_is_back_and_stops() {
    within(LIMIT * 3, || {
        keep();
        const CLIENT: &str = "trunkline::client";
        let server = Server::builder().bind("127.0.0.1:0").unwrap();
        let address = tcp_address(&server);
        let client = Client::builder()
            .reconnect(Backoff::default())
            .connect(address)
            .unwrap();
        let to = format!("to {address}");
        let sessions = || server.hub().sessions();
        assert!(eventually(LIMIT, || sessions().len() == 1));
        sessions()[0].abort();
        let is_back = || found(CLIENT, Level::Info, &["connected", &to, "attempt 1"]).len() == 1;
        assert!(eventually(LIMIT, is_back));
        let text = "so it is, log-records";
        assert!(eventually(LIMIT, || sessions().len() == 1));
        sessions()[0].close_with(Status::new(1000, text));
        assert!(eventually(LIMIT, || {
            found(CLIENT, Level::Warn, &["client stopped", text]).len() == 1
        }));
        assert!(!found(CLIENT, Level::Info, &["waiting", "lost"]).is_empty());
        drop(client);
    });
}
