//! Sides that are busy, and lines that are: no false death.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{CloseReport, Kind, Limits, SocketOptions};

use super::{ECHO, NOTE, client, echo, within_limit};
use crate::support::proxy::{Proxy, Rules, Way};
use crate::support::{
    LIMIT, RawPeer, counts_frame, eventually, frame, millis, server_session, tcp_address, within,
};

const SLEEP: u32 = 5;

type Ends = mpsc::Receiver<CloseReport>;

/// A hook for the end of sessions, and what it has seen.
fn watched() -> (
    impl Fn(&trunkline::Session, &CloseReport) + Clone + Send + Sync + 'static,
    Ends,
) {
    let (sender, ends) = mpsc::channel();
    (
        move |_: &trunkline::Session, report: &CloseReport| {
            let _ = sender.send(report.clone());
        },
        ends,
    )
}

#[track_caller]
fn assert_alive(ends: &Ends) {
    if let Ok(report) = ends.try_recv() {
        panic!("a session ended: {report}");
    }
}

#[test]
fn a_handler_may_be_busy_for_longer_than_the_limit_at_either_end() {
    within(Duration::from_secs(30), || {
        let limit = millis(600);
        let (hook, ends) = watched();
        let busy = move |_: &trunkline::Context<'_>, _: trunkline::Body<'_>| {
            thread::sleep(limit * 3);
        };
        let server = echo(within_limit(limit))
            .on_call(SLEEP, busy)
            .on_closed(hook.clone())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = client(within_limit(limit))
            .on_call(SLEEP, busy)
            .on_closed(hook)
            .connect(server.local_address())
            .unwrap();
        let session = server_session(&server, client.id());
        // One after the other, then both at once.
        client.call(SLEEP, b"").unwrap();
        session.call(SLEEP, b"").unwrap();
        let pending = session.request(SLEEP).start(b"").unwrap();
        client.call(SLEEP, b"").unwrap();
        pending.wait().unwrap();
        assert_alive(&ends);
    });
}

/// A heartbeat of one second, while a transfer through a slow line takes several.
fn transfer(up: bool, down: bool) {
    within(Duration::from_secs(60), move || {
        let limit = Duration::from_secs(1);
        let (hook, ends) = watched();
        let (sender, received) = mpsc::channel();
        let notes = move |_: &trunkline::Context<'_>, body: trunkline::Body<'_>| {
            let _ = sender.send(body.len());
        };
        let mut socket = SocketOptions::default();
        socket.send_buffer = Some(128 << 10);
        socket.receive_buffer = Some(128 << 10);
        let server = echo(within_limit(limit))
            .socket_options(socket.clone())
            .on_push(NOTE, notes.clone())
            .on_closed(hook.clone())
            .bind("127.0.0.1:0")
            .unwrap();
        let slow = Rules {
            rate: Some(4 << 20),
            ..Rules::default()
        };
        let proxy = Proxy::with(tcp_address(&server), slow.clone(), slow);
        let client = client(within_limit(limit))
            .socket_options(socket)
            .on_push(NOTE, notes)
            .on_closed(hook)
            .connect(proxy.address())
            .unwrap();
        let session = server_session(&server, client.id());
        // One frame that takes longer than the limit, and some that pings can pass between.
        let sizes = [8 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20];
        let mut expected = 0;
        let mut sending = Vec::new();
        for (from, to) in [
            (client.session(), session.clone()),
            (session, client.session()),
        ]
        .into_iter()
        .zip([up, down])
        .filter_map(|(ends, sends)| sends.then_some(ends))
        {
            expected += sizes.len();
            sending.push(thread::spawn(move || {
                let before = to.stats().pings_received;
                for size in sizes {
                    from.push(NOTE, vec![1; size]).unwrap();
                }
                (to, before)
            }));
        }
        let start = Instant::now();
        for _ in 0..expected {
            received.recv_timeout(LIMIT * 2).unwrap();
            assert_alive(&ends);
        }
        assert!(start.elapsed() > limit * 2, "the line was not slow");
        for sent in sending {
            let (to, before) = sent.join().unwrap();
            // Between the frames pings have passed.
            assert!(to.stats().pings_received > before);
        }
        client.call(ECHO, b"").unwrap();
        assert_alive(&ends);
        assert!(proxy.passed(Way::ToServer) > 0);
    });
}

#[test]
fn a_transfer_that_takes_many_limits_is_no_death() {
    transfer(true, false);
    transfer(false, true);
}

#[test]
fn transfers_in_both_directions_at_once_are_no_death() {
    transfer(true, true);
}

/// A ping waits for what the kernel has and for the frame that is being written, not for the queue.
#[test]
fn a_ping_overtakes_what_waits_in_the_queue() {
    const FRAMES: usize = 40;
    within(Duration::from_secs(30), || {
        let mut heartbeat = within_limit(LIMIT);
        heartbeat.interval = millis(300);
        let mut limits = Limits::default();
        limits.queued_bytes = 16 << 20;
        let mut socket = SocketOptions::default();
        socket.send_buffer = Some(64 << 10);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || RawPeer::accept(&listener));
        let blocked = client(heartbeat.clone())
            .limits(limits)
            .socket_options(socket)
            .connect(address)
            .unwrap();
        let mut peer = accepting.join().unwrap();
        for _ in 0..FRAMES {
            blocked.push(NOTE, vec![1; 256 << 10]).unwrap();
        }
        // One that began later has sent some: then the other's are due, too.
        let server = echo(within_limit(LIMIT)).bind("127.0.0.1:0").unwrap();
        let later = client(heartbeat).connect(server.local_address()).unwrap();
        assert!(eventually(LIMIT, || later.stats().pings_sent >= 3));
        let mut before = 0;
        while peer.next_of_all().unwrap().kind != Kind::Ping {
            before += 1;
        }
        assert!(before < FRAMES / 2, "{before} frames came before the ping");
    });
}

#[test]
fn a_full_inbox_that_stops_the_reading_is_no_death() {
    within(Duration::from_secs(30), || {
        let limit = millis(600);
        let (hook, ends) = watched();
        let mut limits = Limits::default();
        limits.backlog_messages = 10;
        let server = echo(within_limit(limit))
            .limits(limits)
            .inbox(10)
            .on_closed(hook.clone())
            .bind("127.0.0.1:0")
            .unwrap();
        let inbox = server.inbox().unwrap();
        let client = client(within_limit(limit))
            .on_closed(hook)
            .connect(server.local_address())
            .unwrap();
        for note in 0..100_u32 {
            client.push(NOTE, note.to_le_bytes()).unwrap();
        }
        assert!(eventually(LIMIT, || inbox.len() == 10));
        let session = server_session(&server, client.id());
        let before = session.stats().pings_sent;
        // Three limits long nothing is read there, and pings go out all the same.
        assert!(eventually(LIMIT, || session.stats().pings_sent >= before + 9));
        assert_alive(&ends);
        for note in 0..100_u32 {
            assert_eq!(inbox.recv().unwrap().body(), note.to_le_bytes());
        }
        client.call(ECHO, b"").unwrap();
        assert_alive(&ends);
    });
}

/// More of them at once than a second of the budget allows, but no more than an honest peer
/// sends in the time.
#[test]
fn pings_and_pongs_that_gathered_behind_a_busy_handler_are_no_flood() {
    within(Duration::from_secs(30), || {
        let (hook, ends) = watched();
        let mut limits = Limits::default();
        limits.control_frames_per_second = 16;
        let mut heartbeat = within_limit(LIMIT);
        heartbeat.interval = millis(300);
        let (busy, let_go) = mpsc::channel::<()>();
        let let_go = std::sync::Mutex::new(let_go);
        let server = echo(heartbeat)
            .limits(limits)
            .on_push(NOTE, move |_, _| let_go.lock().unwrap().recv().unwrap())
            .on_closed(hook)
            .bind("127.0.0.1:0")
            .unwrap();
        let mut peer = RawPeer::dial_silent(tcp_address(&server), 300);
        let session = server_session(&server, peer.session);
        let start = Instant::now();
        peer.push(NOTE, b"");
        let answers = 40;
        // As many pings as one in 100 ms, while the server waits in its handler for four seconds.
        assert!(eventually(LIMIT, || session.stats().pings_sent >= answers));
        let pings = start.elapsed().as_millis() / 100;
        assert!(pings >= 35, "{pings}");
        let ping = frame(Kind::Ping, 0, 0, b"");
        let pong = counts_frame(Kind::Pong, 0, 0);
        peer.send(&ping.repeat(pings as usize));
        peer.send(&pong.repeat(answers as usize));
        busy.send(()).unwrap();
        assert!(eventually(LIMIT, || {
            let stats = session.stats();
            stats.pings_received >= pings as u64 && stats.pongs_received >= answers
        }));
        peer.call(ECHO, 0x0001_0000, b"on");
        while peer.next().unwrap().kind != Kind::Reply {}
        assert_alive(&ends);
        // More is a flood.
        peer.send(&ping.repeat(200));
        let report = ends.recv_timeout(LIMIT).unwrap();
        let error = report.error.unwrap();
        assert_eq!(error.kind(), trunkline::ErrorKind::ProtocolAbuse);
    });
}
