//! Threads, descriptors and memory: what a connection takes, it gives back.

mod locals;

use std::io::Read;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, CloseReason, Server, Session, Status};

use crate::support::{
    LIMIT, NO_STACK, PROMPT, RawPeer, STARTS_A_PROCESS, child, child_role, descriptor_count,
    eventually, left_out_under_emulation, millis, resident_bytes, thread_count, within,
};

/// Runs a test in a child process, where other tests start no threads.
#[track_caller]
pub(crate) fn alone(test: &'static str, limit: Duration, body: fn()) {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    if child_role().is_some() {
        return body();
    }
    within(limit, move || {
        let output = child(test, "alone").output().unwrap();
        print!("{}", String::from_utf8_lossy(&output.stdout));
        assert!(
            output.status.success(),
            "{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    });
}

/// Names of this process's threads.
pub(crate) fn thread_names() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect()
}

fn echo_server() -> Server {
    Server::builder()
        .on_call(1, |_, body| body.to_vec())
        .on_call(3, |cx, body| {
            // Waits in a handler, so that a substitute reads.
            cx.session().call(1, body.as_bytes()).unwrap().into_body()
        })
        .on_push(2, |_, _| ())
        .bind("127.0.0.1:0")
        .unwrap()
}

fn round(server: &Server, round: usize) {
    let client = Client::builder()
        .on_call(1, |_, body| body.to_vec())
        .connect(server.local_address())
        .unwrap();
    assert_eq!(client.call(3, b"both ways").unwrap().body(), b"both ways");
    for _ in 0..100 {
        client.push(2, [0; 1000]).unwrap();
    }
    match round % 3 {
        0 => drop(client.shutdown(LIMIT).unwrap()),
        1 => drop(client),
        _ => client.abort(),
    }
}

#[test]
fn connections_that_come_and_go_leave_no_thread_and_no_descriptor() {
    const TEST: &str = "threads::connections_that_come_and_go_leave_no_thread_and_no_descriptor";
    alone(TEST, Duration::from_secs(60), || {
        let at_first = (thread_count(), descriptor_count());
        let server = echo_server();
        for number in 0..6 {
            round(&server, number);
        }
        assert!(eventually(LIMIT, || server.hub().is_empty()));
        thread::sleep(millis(100));
        let before = (thread_count(), descriptor_count(), resident_bytes());
        for number in 0..200 {
            round(&server, number);
        }
        let as_before = || (thread_count(), descriptor_count()) == (before.0, before.1);
        assert!(
            eventually(LIMIT, as_before),
            "{} threads, {} descriptors; before {before:?}; {:?}",
            thread_count(),
            descriptor_count(),
            thread_names()
        );
        let grown = resident_bytes().saturating_sub(before.2);
        assert!(
            grown < 4 << 20,
            "{grown} bytes more than after the first rounds"
        );
        server.shutdown(LIMIT).unwrap();
        drop(server);
        let as_at_first = || (thread_count(), descriptor_count()) == at_first;
        assert!(
            eventually(LIMIT, as_at_first),
            "{} threads, {} descriptors; at first {at_first:?}; {:?}",
            thread_count(),
            descriptor_count(),
            thread_names()
        );
    });
}

#[test]
fn refused_and_broken_connections_leave_nothing_either() {
    const TEST: &str = "threads::refused_and_broken_connections_leave_nothing_either";
    alone(TEST, Duration::from_secs(60), || {
        let at_first = (thread_count(), descriptor_count());
        let mut limits = trunkline::Limits::server();
        limits.sessions = 1;
        let refusing = Server::builder()
            .limits(limits)
            .bind("127.0.0.1:0")
            .unwrap();
        let no_threads = Server::builder()
            .stack_bytes(NO_STACK)
            .bind("127.0.0.1:0")
            .unwrap();
        let server = echo_server();
        let only = Client::connect(refusing.local_address()).unwrap();
        for _ in 0..100 {
            Client::connect(refusing.local_address()).unwrap_err();
            Client::connect(no_threads.local_address()).unwrap_err();
            Client::builder()
                .stack_bytes(NO_STACK)
                .connect(server.local_address())
                .unwrap_err();
            drop(TcpStream::connect(server.local_address()).unwrap());
            RawPeer::dial(server.local_address()).reset();
        }
        drop(only);
        for server in [refusing, no_threads, server] {
            server.shutdown(LIMIT).unwrap();
        }
        let as_at_first = || (thread_count(), descriptor_count()) == at_first;
        assert!(
            eventually(LIMIT, as_at_first),
            "{} threads, {} descriptors; at first {at_first:?}; {:?}",
            thread_count(),
            descriptor_count(),
            thread_names()
        );
    });
}

#[test]
fn nothing_runs_before_the_first_connection_and_threads_are_named() {
    const TEST: &str = "threads::nothing_runs_before_the_first_connection_and_threads_are_named";
    alone(TEST, Duration::from_secs(20), || {
        let at_first = thread_count();
        let builders = (Server::builder(), Client::builder());
        assert_eq!(thread_count(), at_first);
        drop(builders);
        let server = echo_server();
        assert_eq!(thread_count(), at_first + 1, "{:?}", thread_names());
        let client = Client::connect(server.local_address()).unwrap();
        client.call(1, b"").unwrap();
        // A reader on each side and the timer; a writer only once it is needed.
        let own: Vec<String> = thread_names()
            .into_iter()
            .filter(|name| name.starts_with("tl-") || name.starts_with("trunkline"))
            .collect();
        assert_eq!(
            thread_count(),
            at_first + own.len(),
            "a thread without a name"
        );
        assert!((4..=6).contains(&own.len()), "{own:?}");
    });
}

#[test]
fn idle_connections_take_little_memory_and_bursts_give_it_back() {
    const TEST: &str = "threads::idle_connections_take_little_memory_and_bursts_give_it_back";
    alone(TEST, Duration::from_secs(60), || {
        const CONNECTIONS: usize = 200;
        let server = echo_server();
        let connect = |_| {
            let client = Client::connect(server.local_address()).unwrap();
            client.call(1, b"").unwrap();
            client
        };
        let first: Vec<Client> = (0..10).map(connect).collect();
        let before = resident_bytes();
        let clients: Vec<Client> = (0..CONNECTIONS).map(connect).collect();
        let each = resident_bytes().saturating_sub(before) / (2 * CONNECTIONS);
        println!("{each} bytes for each end of an idle connection");
        assert!(each < 64 << 10, "{each} bytes for each end");
        for client in &clients {
            client.call(1, vec![1; 1 << 20]).unwrap();
        }
        let peak = resident_bytes().saturating_sub(before);
        assert!(peak < 200 << 20, "{peak} bytes after a burst");
        drop(clients);
        assert!(eventually(LIMIT, || server.hub().len() == first.len()));
        let mut left = 0;
        let is_given_back = eventually(LIMIT, || {
            left = resident_bytes().saturating_sub(before);
            left < 64 << 20
        });
        println!("{peak} bytes after a burst, {left} after the close");
        assert!(
            is_given_back,
            "{peak} bytes after a burst, {left} at the end"
        );
    });
}

/// Fires when it is dropped.
struct Guard(mpsc::Sender<Instant>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(Instant::now());
    }
}

#[test]
fn a_handler_that_holds_its_own_session_is_dropped_after_the_close() {
    within(Duration::from_secs(30), || {
        for round in 0..20 {
            let server = echo_server();
            let (sender, fired) = mpsc::channel();
            let guard = Guard(sender);
            let own: Arc<Mutex<Option<Session>>> = Arc::default();
            let held = own.clone();
            let client = Client::builder()
                .on_push(1, move |_, _| {
                    let _ = (&guard, &held);
                })
                .connect(server.local_address())
                .unwrap();
            *own.lock().unwrap() = Some(client.session());
            drop(own);
            client.call(1, b"").unwrap();
            assert!(fired.try_recv().is_err());
            let closed = Instant::now();
            // Other handles may live on.
            let kept = client.session();
            match round % 3 {
                0 => drop(client.shutdown(LIMIT).unwrap()),
                1 => drop(client),
                _ => server.shutdown(LIMIT).map(drop).unwrap(),
            }
            let fired = fired.recv_timeout(LIMIT).unwrap();
            let took = fired.saturating_duration_since(closed);
            assert!(took < PROMPT, "{took:?}");
            assert!(kept.is_closed());
        }
    });
}

#[test]
fn the_handlers_of_a_server_are_dropped_with_it() {
    within(Duration::from_secs(20), || {
        let (sender, fired) = mpsc::channel();
        let guard = Guard(sender);
        let server = Server::builder()
            .on_call(1, move |_, _| {
                let _ = &guard;
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        client.call(1, b"").unwrap();
        let hub = server.hub().clone();
        server.shutdown(LIMIT).unwrap();
        let closed = Instant::now();
        drop(server);
        let fired = fired.recv_timeout(LIMIT).unwrap();
        assert!(fired.saturating_duration_since(closed) < PROMPT);
        assert!(hub.is_empty());
    });
}

#[test]
fn child_processes_inherit_no_socket() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    within(Duration::from_secs(20), || {
        let (sender, sessions) = mpsc::channel();
        let server = Server::builder()
            .on_connected(move |session| sender.send(session.clone()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let address = server.local_address().clone();
        // The server's side of one connection, the client's side of another.
        let mut peer = RawPeer::dial(&address);
        let accepted = sessions.recv_timeout(LIMIT).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listening = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || RawPeer::accept(&listener));
        let client = Client::connect(listening).unwrap();
        let mut other = accepting.join().unwrap();
        let mut sleeping = Command::new("sleep")
            .arg("30")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        accepted.abort();
        client.abort();
        assert!(
            peer.is_closed_within(PROMPT),
            "a child holds the accepted socket"
        );
        assert!(
            other.is_closed_within(PROMPT),
            "a child holds the dialled socket"
        );
        server.shutdown(LIMIT).unwrap();
        drop(server);
        let again = Server::builder().bind(&address).unwrap();
        assert_eq!(again.local_address(), &address);
        assert!(
            sleeping.try_wait().unwrap().is_none(),
            "the child is gone too early"
        );
        sleeping.kill().unwrap();
        sleeping.wait().unwrap();
    });
}

/// A forked process that keeps a copy of a socket would hide the end; a half-close shows it.
#[test]
fn a_clean_close_ends_the_stream_for_the_peer() {
    within(Duration::from_secs(20), || {
        let server = echo_server();
        let mut peer = RawPeer::dial(server.local_address());
        let session = server.hub().session(peer.session).unwrap();
        let closing = thread::spawn(move || session.shutdown(LIMIT).unwrap());
        assert_eq!(peer.next().unwrap().kind, trunkline::Kind::Goodbye);
        peer.send(&crate::support::counts_frame(
            trunkline::Kind::Goodbye,
            0,
            0,
        ));
        assert_eq!(peer.next().unwrap().kind, trunkline::Kind::Pong);
        // The stream ends here although this side has not closed yet.
        assert_eq!(peer.stream.read(&mut [0; 16]).unwrap(), 0);
        assert!(!closing.is_finished());
        peer.close(0, 0);
        assert_eq!(closing.join().unwrap().reason, CloseReason::Clean);
    });
}

#[test]
fn refused_connections_are_let_go_of_though_no_session_ever_began() {
    const TEST: &str = "threads::refused_connections_are_let_go_of_though_no_session_ever_began";
    alone(TEST, Duration::from_secs(20), || {
        let server = Server::builder()
            .on_accept(|_| Err(Status::new(Status::FORBIDDEN, "nobody")))
            .bind("127.0.0.1:0")
            .unwrap();
        let at_first = (thread_count(), descriptor_count());
        for _ in 0..100 {
            let error = Client::connect(server.local_address()).unwrap_err();
            assert_eq!(error.kind(), trunkline::ErrorKind::Refused, "{error:?}");
        }
        let as_at_first = || (thread_count(), descriptor_count()) == at_first;
        assert!(eventually(LIMIT, as_at_first), "{}", descriptor_count());
    });
}
