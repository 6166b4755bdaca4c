//! Limits and time limits on live connections: what is refused, with which words, and that all
//! else goes on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use socket2::{Domain, SockAddr, Socket, Type};
use trunkline::protocol::native::handshake::Welcome;
use trunkline::protocol::{Decoded, Native, Protocol};
use trunkline::{
    Client, CloseReason, Error, ErrorKind, Kind, Limits, Server, ServerBuilder, Status, Timeouts,
};

use crate::support::{
    LIMIT, NO_STACK, PROMPT, RawPeer, STARTS_A_PROCESS, child, child_role, eventually, frame,
    left_out_under_emulation, millis, opening, processor_time, tcp_address, within,
};

const SECOND: Duration = Duration::from_secs(1);

fn echo() -> ServerBuilder {
    Server::builder()
        .on_call(1, |_, body| body.to_vec())
        .on_push(2, |_, _| ())
}

/// Dials from a local address of its own choice and reads the welcome or refusal.
pub(crate) fn welcome_at(from: &str, address: SocketAddr) -> (TcpStream, Welcome) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from: SocketAddr = format!("{from}:0").parse().unwrap();
    socket.bind(&SockAddr::from(from)).unwrap();
    socket.connect(&SockAddr::from(address)).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(&opening()).unwrap();
    let mut answer = vec![0; 8];
    stream.read_exact(&mut answer).unwrap();
    answer.clear();
    loop {
        if let Some((welcome, _)) = Welcome::decode(&answer).unwrap() {
            return (stream, welcome);
        }
        let mut chunk = [0; 1024];
        let count = stream.read(&mut chunk).unwrap();
        assert!(count > 0, "the answer is cut");
        answer.extend_from_slice(&chunk[..count]);
    }
}

#[track_caller]
fn assert_overloaded(error: &Error, says: &str) {
    assert_eq!(error.kind(), ErrorKind::Overloaded, "{error:?}");
    let status = error.status().expect("a status");
    assert_eq!(status.code(), Status::OVERLOADED);
    assert!(status.text().contains(says), "{status}");
    assert!(error.is_retryable());
}

#[test]
fn sessions_beyond_the_cap_are_told_so_and_a_free_place_is_given_again() {
    within(Duration::from_secs(20), || {
        let mut limits = Limits::server();
        limits.sessions = 10;
        let (sender, errors) = mpsc::channel();
        let server = echo()
            .limits(limits)
            .on_error(move |error| {
                let _ = sender.send(error.kind());
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let mut live = Vec::new();
        for dial in 0..30 {
            match Client::connect(tcp_address(&server)) {
                Ok(client) => live.push(client),
                Err(error) => {
                    assert!(dial >= 10);
                    assert_overloaded(&error, "limits.sessions = 10");
                }
            }
        }
        assert_eq!(live.len(), 10);
        assert_eq!(server.hub().len(), 10);
        for _ in 0..20 {
            assert_eq!(errors.recv_timeout(LIMIT).unwrap(), ErrorKind::Overloaded);
        }
        assert!(errors.try_recv().is_err());
        for client in &live {
            client.call(1, b"").unwrap();
        }
        live.pop().unwrap().shutdown(LIMIT).unwrap();
        let mut next = None;
        assert!(eventually(LIMIT, || {
            next = Client::connect(tcp_address(&server)).ok();
            next.is_some()
        }));
        let next = next.unwrap();
        next.call(1, b"").unwrap();
        assert_eq!(server.hub().len(), 10);
    });
}

#[test]
fn sessions_of_one_address_have_their_own_cap() {
    within(Duration::from_secs(20), || {
        let mut limits = Limits::server();
        limits.sessions_per_address = 2;
        let server = echo().limits(limits).bind("127.0.0.1:0").unwrap();
        let address = tcp_address(&server);
        let clients = [0; 2].map(|_| Client::connect(address).unwrap());
        let error = Client::connect(address).unwrap_err();
        assert_overloaded(
            &error,
            "limits.sessions_per_address = 2 are open from 127.0.0.1",
        );
        let (_stream, welcome) = welcome_at("127.0.0.2", address);
        assert_eq!(welcome.refusal, None);
        for client in clients {
            client.call(1, b"").unwrap();
        }
    });
}

#[test]
fn the_accept_hook_refuses_by_address_with_its_own_status() {
    within(Duration::from_secs(20), || {
        let server = echo()
            .on_accept(|peer| match peer.ip().unwrap().to_string().as_str() {
                "127.0.0.2" => Err(Status::new(1234, "not from there")),
                "127.0.0.3" => panic!("as the test asks"),
                _ => Ok(()),
            })
            .bind("0.0.0.0:0")
            .unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], tcp_address(&server).port()));
        let refused = |from| welcome_at(from, address).1.refusal.unwrap();
        for _ in 0..20 {
            let status = refused("127.0.0.2");
            assert_eq!((status.code(), status.text()), (1234, "not from there"));
        }
        assert_eq!(refused("127.0.0.3").code(), Status::FORBIDDEN);
        let client = Client::connect(address).unwrap();
        client.call(1, b"").unwrap();
        assert_eq!(server.hub().len(), 1);
    });
}

#[test]
fn a_refused_peer_reads_why_and_then_a_tidy_end() {
    within(Duration::from_secs(20), || {
        let server = echo()
            .on_accept(|_| Err(Status::new(1234, "no")))
            .bind("127.0.0.1:0")
            .unwrap();
        for _ in 0..50 {
            let (mut stream, welcome) = welcome_at("127.0.0.1", tcp_address(&server));
            assert_eq!(welcome.refusal.unwrap().code(), 1234);
            assert_eq!(stream.read(&mut [0; 16]).unwrap(), 0);
            // What is still sent raises no reset, which could overtake the refusal elsewhere.
            for _ in 0..2 {
                stream.write_all(b"more").unwrap();
                thread::sleep(millis(2));
            }
        }
    });
}

#[test]
fn a_refused_client_gets_the_status_of_the_hook() {
    within(Duration::from_secs(20), || {
        // An IPv4 peer of an IPv6 listener is shown under its IPv4 address.
        let server = echo()
            .on_accept(|peer| Err(Status::new(1234, peer.ip().unwrap().to_string())))
            .bind("[::]:0")
            .unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], tcp_address(&server).port()));
        for _ in 0..50 {
            let error = Client::connect(address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
            let status = error.status().unwrap();
            assert_eq!((status.code(), status.text()), (1234, "127.0.0.1"));
            assert!(!error.is_retryable());
        }
    });
}

/// A child process that serves, and takes orders by its standard input.
struct Served {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
    address: SocketAddr,
}

impl Served {
    fn start(test: &str) -> Served {
        let mut process = child(test, "serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut served = Served {
            process,
            output,
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
        };
        served.address = served.line("serving ").parse().unwrap();
        served
    }

    /// The rest of the next line that begins so.
    fn line(&mut self, begins: &str) -> String {
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).unwrap();
            assert!(count > 0, "the child ended before it said {begins:?}");
            // The test harness has begun the line on which the child's first one is.
            if let Some((_, rest)) = line.split_once(begins) {
                return rest.trim().to_owned();
            }
        }
    }

    fn ask(&mut self, order: &str, begins: &str) -> String {
        writeln!(self.process.stdin.as_mut().unwrap(), "{order}").unwrap();
        self.line(begins)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn out_of_descriptors_it_backs_off_says_so_once_and_recovers() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    const TEST: &str = "limits_live::out_of_descriptors_it_backs_off_says_so_once_and_recovers";
    if child_role().is_some() {
        setrlimit(Resource::RLIMIT_NOFILE, 64, 64).unwrap();
        let (sender, errors) = mpsc::channel();
        let server = echo()
            .on_error(move |error| {
                if error.kind() == ErrorKind::Io {
                    sender.send(error.to_string()).unwrap();
                }
            })
            .bind("127.0.0.1:0")
            .unwrap();
        println!("serving {}", tcp_address(&server));
        for line in std::io::stdin().lines() {
            assert_eq!(line.unwrap(), "measure");
            let before = processor_time();
            thread::sleep(SECOND);
            let used = (processor_time() - before).as_millis();
            let told: Vec<String> = errors.try_iter().collect();
            let sessions = server.hub().len();
            println!("measured {used} {sessions} {}", told.join("; "));
        }
        return;
    }
    within(Duration::from_secs(60), || {
        let mut served = Served::start(TEST);
        let client = Client::connect(served.address).unwrap();
        // More than there is room for; the system holds the rest for the server.
        let mut dials: Vec<TcpStream> = (0..80)
            .map(|_| {
                let mut stream = TcpStream::connect(served.address).unwrap();
                stream.write_all(&opening()).unwrap();
                stream
            })
            .collect();
        let first = served.ask("measure", "measured ");
        let second = served.ask("measure", "measured ");
        let fields: Vec<&str> = first.splitn(3, ' ').collect();
        let sessions: usize = fields[1].parse().unwrap();
        assert!((30..64).contains(&sessions), "{first}");
        assert_eq!(fields[2], "connections cannot be accepted for now");
        let fields: Vec<&str> = second.splitn(3, ' ').collect();
        let used: u64 = fields[0].parse().unwrap();
        assert!(used < 300, "{used} ms of processor time in a second");
        assert_eq!(fields.get(2).copied().unwrap_or_default(), "", "told again");
        client.call(1, b"still served").unwrap();
        // The oldest leave, the waiting ones get in, and one more.
        dials.drain(..50);
        let start = Instant::now();
        let late = Client::connect(served.address).unwrap();
        late.call(1, b"").unwrap();
        let took = start.elapsed();
        assert!(took < PROMPT, "{took:?}");
        client.call(1, b"").unwrap();
    });
}

#[test]
fn beyond_the_thread_budget_connections_are_refused() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    const TEST: &str = "limits_live::beyond_the_thread_budget_connections_are_refused";
    if child_role().is_some() {
        // The budget is three quarters of it.
        setrlimit(Resource::RLIMIT_NPROC, 40, 40).unwrap();
        let server = echo().bind("127.0.0.1:0").unwrap();
        println!("serving {}", tcp_address(&server));
        let _ = std::io::stdin().lines().next();
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: the system itself would refuse threads to this user");
        return;
    }
    within(Duration::from_secs(20), || {
        let served = Served::start(TEST);
        let mut live = Vec::new();
        for _ in 0..40 {
            match Client::connect(served.address) {
                Ok(client) => live.push(client),
                Err(error) => assert_overloaded(&error, "thread budget"),
            }
        }
        // One thread accepts, each session has two places.
        assert_eq!(live.len(), (30 - 1) / 2);
        for client in &live {
            client.call(1, b"").unwrap();
        }
        live.pop().unwrap().shutdown(LIMIT).unwrap();
        assert!(eventually(LIMIT, || Client::connect(served.address).is_ok()));
    });
}

#[test]
fn threads_that_cannot_start_refuse_the_connection_and_nothing_else() {
    within(Duration::from_secs(20), || {
        let (sender, errors) = mpsc::channel();
        let server = echo()
            .stack_bytes(NO_STACK)
            .on_error(move |error| sender.send(error.kind()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        for _ in 0..30 {
            let error = Client::connect(tcp_address(&server)).unwrap_err();
            assert_overloaded(&error, "a thread cannot start");
        }
        assert!(server.hub().is_empty());
        let start = Instant::now();
        server.shutdown(LIMIT).unwrap();
        assert!(start.elapsed() < PROMPT);
        assert!(errors.try_iter().all(|kind| kind == ErrorKind::Overloaded));

        let server = echo().bind("127.0.0.1:0").unwrap();
        let error = Client::builder()
            .stack_bytes(NO_STACK)
            .connect(tcp_address(&server))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overloaded, "{error:?}");
        let client = Client::connect(tcp_address(&server)).unwrap();
        client.call(1, b"").unwrap();
        assert!(eventually(LIMIT, || server.hub().len() == 1));
    });
}

#[test]
fn what_passes_a_limit_of_the_peer_is_refused_before_it_is_sent() {
    within(Duration::from_secs(20), || {
        let mut limits = Limits::server();
        limits.frame_bytes = 10_000;
        limits.body_bytes = 9_000;
        limits.metadata_bytes = 2_000;
        let (sender, received) = mpsc::channel();
        let server = echo()
            .on_push(3, move |_, body| sender.send(body.len()).unwrap())
            .limits(limits)
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(tcp_address(&server)).unwrap();
        let too_large = |error: Error, says: &str| {
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{error:?}");
            assert!(error.to_string().contains(says), "{error}");
        };
        client.push(3, [0; 9_000]).unwrap();
        let error = client.push(3, [0; 9_001]).unwrap_err();
        too_large(error, "9001 bytes of a body pass limits.body_bytes = 9000");
        let error = client.call(1, [0; 9_001]).unwrap_err();
        too_large(error, "limits.body_bytes = 9000");
        // With metadata the frame is larger than the body by more than its header.
        let meta = "m".repeat(1_000);
        let error = client
            .request(3)
            .meta("k", &meta)
            .push([0; 9_000])
            .unwrap_err();
        too_large(error, "limits.frame_bytes = 10000");
        let error = client
            .request(1)
            .meta("k", &meta.repeat(2))
            .call(b"")
            .unwrap_err();
        too_large(error, "limits.metadata_bytes = 2000");
        // Nothing of it was sent, and the connection is as good as before.
        client.push(3, b"after").unwrap();
        assert_eq!(client.call(1, b"after").unwrap().body(), b"after");
        assert_eq!(received.try_iter().collect::<Vec<_>>(), [9_000, 5]);
        let report = client.shutdown(LIMIT).unwrap();
        assert_eq!(
            (report.reason, report.confirmed.messages),
            (CloseReason::Clean, 3)
        );
    });
}

#[test]
fn an_answer_that_passes_a_limit_of_the_caller_becomes_a_status() {
    within(Duration::from_secs(20), || {
        let server = Server::builder()
            .on_call(1, |_, body| vec![0; usize::from(body[0]) * 100])
            .bind("127.0.0.1:0")
            .unwrap();
        let mut limits = Limits::server();
        limits.body_bytes = 5_000;
        let client = Client::builder()
            .limits(limits)
            .connect(tcp_address(&server))
            .unwrap();
        assert_eq!(client.call(1, [50]).unwrap().body().len(), 5_000);
        let error = client.call(1, [51]).unwrap_err();
        assert_eq!(
            error.status().map(Status::code),
            Some(Status::TOO_LARGE),
            "{error:?}"
        );
        assert!(
            error.to_string().contains("limits.body_bytes = 5000"),
            "{error}"
        );
        assert_eq!(client.call(1, [1]).unwrap().body().len(), 100);
    });
}

#[test]
fn a_peer_that_ignores_the_limits_is_cut_off_with_sizes_and_names() {
    within(Duration::from_secs(20), || {
        let mut limits = Limits::server();
        limits.frame_bytes = 10_000;
        limits.body_bytes = 9_000;
        let (sender, errors) = mpsc::channel();
        let server = echo()
            .limits(limits)
            .on_error(move |error| sender.send(error.clone()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let mut good = RawPeer::dial(tcp_address(&server));
        for (size, says) in [
            (9_001, ["9001", "limits.body_bytes is 9000"]),
            (9_985, ["10001", "limits.frame_bytes is 10000"]),
        ] {
            let mut peer = RawPeer::dial(tcp_address(&server));
            peer.call(1, 0x0001_0000, &[1; 9_000]);
            assert_eq!(peer.next().unwrap().body.len(), 9_000);
            // The header alone is enough: the body is not waited for.
            let large = frame(Kind::Push, 2, 0, &vec![0; size]);
            peer.send(&large[..16]);
            assert!(peer.is_closed_within(LIMIT));
            let error = errors.recv_timeout(LIMIT).unwrap();
            assert_eq!(error.kind(), ErrorKind::FrameTooLarge, "{error:?}");
            for part in says {
                assert!(error.to_string().contains(part), "{part}: {error}");
            }
        }
        good.call(1, 0x0001_0000, b"good");
        assert_eq!(good.next().unwrap().body, b"good");
    });
}

#[test]
fn any_frame_is_life_and_silence_ends_the_session_at_the_idle_limit() {
    within(Duration::from_secs(20), || {
        let (sender, ends) = mpsc::channel();
        let mut timeouts = Timeouts::default();
        timeouts.idle = SECOND;
        let server = echo()
            .timeouts(timeouts)
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let mut peer = RawPeer::dial(tcp_address(&server));
        let mut heard = Instant::now();
        for _ in 0..12 {
            thread::sleep(millis(150));
            assert!(ends.try_recv().is_err());
            heard = Instant::now();
            peer.send(&frame(Kind::Ping, 0, 0, b""));
            assert_eq!(peer.next().unwrap().kind, Kind::Pong);
        }
        let report = ends.recv_timeout(LIMIT).unwrap();
        let took = heard.elapsed();
        assert!(took >= SECOND && took < SECOND + PROMPT, "{took:?}");
        assert_eq!(report.reason, CloseReason::Cut, "{report}");
        let error = report.error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.to_string().contains("timeouts.idle = 1s"), "{error}");
    });
}

#[test]
fn a_peer_that_stops_reading_is_cut_off_and_gets_no_mixed_frame() {
    within(Duration::from_secs(20), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || RawPeer::accept(&listener));
        let (sender, ends) = mpsc::channel();
        let mut timeouts = Timeouts::default();
        timeouts.write = millis(300);
        let client = Client::builder()
            .timeouts(timeouts)
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .connect(address)
            .unwrap();
        let mut peer = accepting.join().unwrap();
        let start = Instant::now();
        client.push(1, vec![0xAB; (16 << 20) - 16]).unwrap();
        // Behind it there is no room; this one waits, and learns of the end.
        let error = client.push(2, b"behind").unwrap_err();
        let took = start.elapsed();
        assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
        assert!(took >= millis(300) && took < PROMPT, "{took:?}");
        let report = ends.recv_timeout(LIMIT).unwrap();
        assert_eq!(report.reason, CloseReason::Cut, "{report}");
        let error = report.error.as_ref().unwrap();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(
            error.to_string().contains("timeouts.write = 300ms"),
            "{error}"
        );
        assert_eq!(report.not_written.messages, 1, "{report}");
        // The peer finds a part of the frame and nothing of another.
        while matches!(peer.read_more(), Ok(count) if count > 0) {}
        let limits = Limits::default();
        let decoded = Native.decode(&peer.received, &limits).unwrap();
        assert!(
            matches!(decoded, Decoded::Incomplete { needed } if needed == Some(16 << 20)),
            "{decoded:?}"
        );
        assert!(peer.received[16..].iter().all(|byte| *byte == 0xAB));
    });
}

#[test]
fn the_connect_limit_covers_dialling_and_looking_names_up() {
    within(Duration::from_secs(20), || {
        // A listener whose queue is full answers nothing any more.
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket
            .bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, 1], 0))))
            .unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let mut waiting = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, millis(200)) {
            waiting.push(stream);
        }
        let connect = |name: &str, limit: Duration| {
            let mut timeouts = Timeouts::default();
            timeouts.connect = limit;
            let start = Instant::now();
            let error = Client::builder()
                .timeouts(timeouts)
                .connect(name)
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
            assert!(error.to_string().contains("timeouts.connect"), "{error}");
            start.elapsed()
        };
        let took = connect(&address.to_string(), millis(300));
        // The system counts in whole milliseconds.
        assert!(took >= millis(298) && took < PROMPT, "{took:?}");
        let took = connect(&format!("localhost:{}", address.port()), millis(300));
        assert!(took < PROMPT, "{took:?}");
        for name in [address.to_string(), format!("localhost:{}", address.port())] {
            let took = connect(&name, Duration::ZERO);
            assert!(took < PROMPT, "{took:?}");
        }
    });
}

#[test]
fn a_server_that_says_nothing_fails_the_connect_at_the_handshake_limit() {
    within(Duration::from_secs(20), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut timeouts = Timeouts::default();
        timeouts.handshake = millis(300);
        let start = Instant::now();
        let error = Client::builder()
            .timeouts(timeouts)
            .connect(listener.local_addr().unwrap())
            .unwrap_err();
        let took = start.elapsed();
        assert!(took >= millis(300) && took < PROMPT, "{took:?}");
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
        assert!(
            error.to_string().contains("timeouts.handshake = 300ms"),
            "{error}"
        );
    });
}

#[test]
fn what_the_peer_would_not_admit_is_refused_here_and_the_session_lives() {
    within(Duration::from_secs(20), || {
        let server = echo().bind("127.0.0.1:0").unwrap();
        let client = Client::connect(tcp_address(&server)).unwrap();
        let mut many = client.request(1);
        for _ in 0..65 {
            many = many.meta("k", "v");
        }
        let error = many.call(b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error:?}");
        assert!(error.to_string().contains("limits.metadata_pairs = 64"));
        let name = "n".repeat(257);
        let error = client.push(name.as_str(), b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error:?}");
        assert!(error.to_string().contains("limits.route_name_bytes = 256"));
        client.call(1, b"").unwrap();

        let mut small = Limits::server();
        small.body_bytes = 100;
        let modest = Client::builder()
            .limits(small)
            .connect(tcp_address(&server))
            .unwrap();
        let sent = server.hub().broadcast(9, [0; 101]).unwrap();
        assert_eq!((sent.queued, sent.full, sent.closed), (1, 1, 0));
        modest.call(1, b"still there").unwrap();
    });
}

#[test]
fn limits_that_can_never_work_are_refused_by_name() {
    let mut settings: Vec<(&str, Limits)> = Vec::new();
    let mut limit = |name, set: fn(&mut Limits)| {
        let mut limits = Limits::server();
        set(&mut limits);
        settings.push((name, limits));
    };
    limit("limits.frame_bytes", |limits| limits.frame_bytes = 63);
    #[cfg(target_pointer_width = "32")]
    limit("limits.frame_bytes", |limits| limits.frame_bytes = 1 << 31);
    limit("limits.body_bytes", |limits| limits.body_bytes = 15);
    limit("limits.pending_calls", |limits| limits.pending_calls = 0);
    limit("limits.incoming_calls", |limits| limits.incoming_calls = 0);
    limit("limits.queued_messages", |limits| {
        limits.queued_messages = 0;
    });
    for (name, limits) in settings {
        let error = Server::builder()
            .limits(limits.clone())
            .bind("127.0.0.1:0")
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(name), "{error}");
        let error = Client::builder()
            .limits(limits)
            .connect("127.0.0.1:1")
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
