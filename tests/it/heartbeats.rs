//! Heartbeats: who sends them and when, and that they find dead peers and no others.

mod busy;
mod lost;
mod stopped;

use std::time::Duration;

use trunkline::{
    Client, ClientBuilder, ErrorKind, Framing, Heartbeat, Kind, Server, ServerBuilder,
};

use crate::support::{LIMIT, RawPeer, eventually, millis, server_session, tcp_address, within};
use crate::threads::{alone, thread_names};

const ECHO: u32 = 1;
const NOTE: u32 = 2;

/// Pings only as the peer asks for them, and no more silence than this.
fn within_limit(limit: Duration) -> Heartbeat {
    let mut heartbeat = Heartbeat::default();
    heartbeat.interval = Duration::MAX;
    heartbeat.limit = limit;
    heartbeat
}

fn echo(heartbeat: Heartbeat) -> ServerBuilder {
    Server::builder()
        .heartbeat(heartbeat)
        .on_call(ECHO, |_, body| body.to_vec())
}

fn client(heartbeat: Heartbeat) -> ClientBuilder {
    Client::builder()
        .heartbeat(heartbeat)
        .on_call(ECHO, |_, body| body.to_vec())
}

#[test]
fn a_session_without_traffic_lives_through_many_limits() {
    within(Duration::from_secs(30), || {
        let heartbeat = within_limit(millis(500));
        let server = echo(heartbeat.clone()).bind("127.0.0.1:0").unwrap();
        let client = client(heartbeat).connect(server.local_address()).unwrap();
        let session = server_session(&server, client.id());
        for side in [client.session(), session.clone()] {
            // Three in a limit.
            assert!(eventually(LIMIT, || side.stats().pings_sent >= 18));
            assert!(eventually(LIMIT, || side.stats().pings_received >= 18));
            assert!(eventually(LIMIT, || side.stats().pongs_received > 0));
            assert_eq!(side.stats().received_messages, 0);
        }
        assert_eq!(client.call(ECHO, b"there").unwrap().body(), b"there");
        assert_eq!(session.call(ECHO, b"there").unwrap().body(), b"there");
    });
}

#[test]
fn a_side_that_wants_no_heartbeats_sends_them_to_a_peer_that_does() {
    within(Duration::from_secs(30), || {
        let server = echo(within_limit(Duration::MAX))
            .bind("127.0.0.1:0")
            .unwrap();
        let unasked = RawPeer::dial(tcp_address(&server));
        let mut asking = RawPeer::dial_silent(tcp_address(&server), 500);
        for _ in 0..5 {
            assert_eq!(asking.next_of_all().unwrap().kind, Kind::Ping);
        }
        // Beside traffic, too.
        let mut pings = 0;
        for call in 0x0001_0000.. {
            asking.call(ECHO, call, b"");
            while asking.next_of_all().unwrap().kind == Kind::Ping {
                pings += 1;
            }
            if pings >= 3 {
                break;
            }
        }
        // Nobody wants any on this one.
        let quiet = server_session(&server, unasked.session);
        assert_eq!(quiet.stats().pings_sent, 0);
        // This crate's own client lives on what it gets.
        let client = client(within_limit(millis(500)))
            .connect(server.local_address())
            .unwrap();
        assert!(eventually(LIMIT, || client.stats().pings_received >= 9));
        client.call(ECHO, b"").unwrap();
    });
}

#[test]
fn the_own_interval_holds_where_the_peer_asks_for_less() {
    within(Duration::from_secs(30), || {
        let mut heartbeat = Heartbeat::default();
        heartbeat.interval = millis(300);
        let server = echo(heartbeat).bind("127.0.0.1:0").unwrap();
        let mut peer = RawPeer::dial_silent(tcp_address(&server), 60_000);
        for _ in 0..4 {
            assert_eq!(peer.next_of_all().unwrap().kind, Kind::Ping);
        }
        // One that asks for a flood gets one in 100 ms.
        let start = std::time::Instant::now();
        let mut peer = RawPeer::dial_silent(tcp_address(&server), 1);
        for _ in 0..5 {
            assert_eq!(peer.next_of_all().unwrap().kind, Kind::Ping);
        }
        assert!(start.elapsed() >= millis(450));
    });
}

#[test]
fn the_answers_confirm_what_has_come() {
    within(Duration::from_secs(30), || {
        let heartbeat = within_limit(millis(500));
        let server = echo(heartbeat.clone())
            .on_push(NOTE, |_, _| ())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = client(heartbeat).connect(server.local_address()).unwrap();
        for _ in 0..10 {
            client.push(NOTE, b"note").unwrap();
        }
        let session = server_session(&server, client.id());
        assert!(eventually(LIMIT, || session.stats().received_messages == 10));
        // The second may have been on its way already.
        let pongs = client.stats().pongs_received;
        assert!(eventually(LIMIT, || client.stats().pongs_received >= pongs + 2));
        client.abort();
        let report = client.session().wait_closed(LIMIT).unwrap();
        assert_eq!(report.confirmed.messages, 10, "{report}");
        assert_eq!(report.unconfirmed.messages, 0, "{report}");
    });
}

#[test]
fn a_protocol_without_pings_is_sent_none_and_its_peers_are_not_judged() {
    within(Duration::from_secs(30), || {
        for framing in [Framing::LengthPrefixed, Framing::Stream] {
            let mut heartbeat = within_limit(millis(300));
            heartbeat.interval = millis(300);
            let (sender, pushes) = std::sync::mpsc::channel();
            let server = Server::builder()
                .framing(framing)
                .heartbeat(heartbeat.clone())
                .on_push(0, move |_, body| sender.send(body.to_vec()).unwrap())
                .bind("127.0.0.1:0")
                .unwrap();
            let client = Client::builder()
                .framing(framing)
                .heartbeat(heartbeat)
                .connect(server.local_address())
                .unwrap();
            // Three limits.
            assert!(pushes.recv_timeout(millis(900)).is_err());
            client.push(0, b"late").unwrap();
            assert_eq!(pushes.recv_timeout(LIMIT).unwrap(), b"late");
            assert_eq!(client.stats().pings_sent, 0);
            assert_eq!(server.stats().pings_sent, 0);
        }
    });
}

#[test]
fn too_short_times_are_refused_with_their_names() {
    for (key, interval, limit) in [
        ("heartbeat.interval = 299ms", millis(299), millis(300)),
        ("heartbeat.limit = 299ms", millis(300), millis(299)),
    ] {
        let mut heartbeat = Heartbeat::default();
        heartbeat.interval = interval;
        heartbeat.limit = limit;
        let error = Server::builder()
            .heartbeat(heartbeat.clone())
            .bind("127.0.0.1:0")
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(key), "{error}");
        let error = client(heartbeat).connect("127.0.0.1:1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn heartbeats_of_idle_sessions_start_no_threads() {
    const TEST: &str = "heartbeats::heartbeats_of_idle_sessions_start_no_threads";
    alone(TEST, Duration::from_secs(30), || {
        let heartbeat = within_limit(millis(600));
        let server = echo(heartbeat.clone()).bind("127.0.0.1:0").unwrap();
        let connect = |_| {
            client(heartbeat.clone())
                .connect(server.local_address())
                .unwrap()
        };
        let clients: Vec<Client> = (0..20).map(connect).collect();
        let pinged = || clients.iter().all(|client| client.stats().pings_sent >= 5);
        assert!(eventually(LIMIT, pinged));
        assert!(eventually(LIMIT, || server.stats().pings_sent >= 100));
        let names = thread_names();
        let writers = names.iter().filter(|name| name.starts_with("tl-write"));
        assert_eq!(writers.count(), 0, "{names:?}");
    });
}
