//! Peers that lie, flood, trickle or speak something else, on real sockets: their connection
//! ends, and another session never notices.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use trunkline::protocol::native::handshake::{Welcome, preface};
use trunkline::{Client, Error, ErrorKind, Kind, Limits, Server, ServerBuilder, Status, Timeouts};

use crate::support::{
    LIMIT, PROMPT, RawPeer, STARTS_A_PROCESS, child, child_role, eventually, frame, is_end,
    left_out_under_emulation, millis, opening, resident_bytes, tcp_address, within,
};

const SECOND: Duration = Duration::from_secs(1);

fn echo_builder(timeouts: Timeouts) -> (ServerBuilder, Receiver<Error>) {
    let (sender, errors) = mpsc::channel();
    let builder = Server::builder()
        .on_call(1, |_, body| body.to_vec())
        .on_push(2, |_, _| ())
        .on_error(move |error| {
            let _ = sender.send(error.clone());
        })
        .timeouts(timeouts);
    (builder, errors)
}

fn echo_server(timeouts: Timeouts) -> (Server, Receiver<Error>) {
    let (builder, errors) = echo_builder(timeouts);
    (builder.bind("127.0.0.1:0").unwrap(), errors)
}

/// A well-behaved session that is served all the time.
struct Witness {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(u32, Duration)>,
}

impl Witness {
    fn start(server: &Server) -> Witness {
        let client = Client::connect(tcp_address(server)).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut calls = 0u32;
            let mut longest = Duration::ZERO;
            // One call at least: the machine may run this thread late.
            while calls == 0 || !stopped.load(Ordering::SeqCst) {
                let start = Instant::now();
                let body = calls.to_le_bytes();
                assert_eq!(client.call(1, body).unwrap().body(), body);
                longest = longest.max(start.elapsed());
                calls += 1;
                thread::sleep(millis(1));
            }
            (calls, longest)
        });
        Witness { stop, thread }
    }

    #[track_caller]
    fn was_served(self) {
        self.stop.store(true, Ordering::SeqCst);
        let (calls, longest) = self.thread.join().unwrap();
        assert!(calls > 0);
        assert!(
            longest < PROMPT,
            "a call of another session took {longest:?}"
        );
    }
}

/// The one error that the server reports.
#[track_caller]
fn reported(errors: &Receiver<Error>, kind: ErrorKind) -> String {
    let error = errors.recv_timeout(LIMIT).unwrap();
    assert_eq!(error.kind(), kind, "{error:?}");
    error.to_string()
}

#[test]
fn a_hostile_frame_length_ends_only_its_own_connection() {
    within(Duration::from_secs(20), || {
        let (server, errors) = echo_server(Timeouts::default());
        let witness = Witness::start(&server);
        for (length, kind) in [
            (0, ErrorKind::Malformed),
            (1, ErrorKind::Malformed),
            (11, ErrorKind::Malformed),
            (1 << 31, ErrorKind::FrameTooLarge),
            (u32::MAX - 3, ErrorKind::FrameTooLarge),
            (u32::MAX, ErrorKind::FrameTooLarge),
        ] {
            let mut peer = RawPeer::dial(tcp_address(&server));
            peer.call(1, 0x0001_0000, b"fine so far");
            assert_eq!(peer.next().unwrap().body, b"fine so far");
            peer.send(&length.to_le_bytes());
            assert!(peer.is_closed_within(LIMIT), "length {length}");
            let text = reported(&errors, kind);
            if kind == ErrorKind::FrameTooLarge {
                let size = (u64::from(length) + 4).to_string();
                assert!(text.contains(&size), "{text}");
                assert!(text.contains("limits.frame_bytes is 16777216"), "{text}");
            }
        }
        assert_eq!(server.hub().len(), 1);
        witness.was_served();
    });
}

#[test]
fn greetings_of_other_protocols_are_named_and_turned_away() {
    within(Duration::from_secs(20), || {
        let (server, errors) = echo_server(Timeouts::default());
        let witness = Witness::start(&server);
        let greetings: [(&[u8], &str); 6] = [
            (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP"),
            (b"POST /x HTTP/1.1\r\n\r\n", "HTTP"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
            (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
            (b"\x00\x01\x02\x03\x04\x05", "another protocol"),
        ];
        for (greeting, hint) in greetings {
            let mut stream = TcpStream::connect(tcp_address(&server)).unwrap();
            stream.set_read_timeout(Some(SECOND)).unwrap();
            stream.write_all(greeting).unwrap();
            match stream.read(&mut [0; 64]) {
                Ok(0) => {}
                Err(error) if is_end(&error) => {}
                other => panic!("the server does not close: {other:?}"),
            }
            let text = reported(&errors, ErrorKind::WrongProtocol);
            assert!(text.contains(hint), "{hint}: {text}");
        }
        witness.was_served();
    });
}

#[test]
fn a_client_that_dials_something_else_says_what_it_looks_like() {
    within(Duration::from_secs(20), || {
        let answers: [(&[u8], &str); 4] = [
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
            (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
            (b"\x15\x03\x01\x00\x02\x02\x46", "TLS"),
            (b"220 mail.example ESMTP\r\n", "another protocol"),
        ];
        for (answer, hint) in answers {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let fake = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut opening = vec![0; opening().len()];
                stream.read_exact(&mut opening).unwrap();
                stream.write_all(answer).unwrap();
            });
            let error = Client::connect(address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WrongProtocol, "{error:?}");
            assert!(error.to_string().contains(hint), "{error}");
            assert!(!error.is_retryable());
            fake.join().unwrap();
        }
    });
}

#[test]
fn random_bytes_end_nothing_but_their_own_connection() {
    const SEED: u64 = 0x5EED_4A4D;
    within(Duration::from_secs(60), || {
        println!("seed {SEED:#x}");
        let mut random = StdRng::seed_from_u64(SEED);
        let mut timeouts = Timeouts::default();
        timeouts.frame = millis(300);
        timeouts.lowest_rate = u32::MAX;
        timeouts.handshake = SECOND;
        let (server, _errors) = echo_server(timeouts);
        let witness = Witness::start(&server);
        let mut peers = Vec::new();
        for round in 0..200 {
            let mut bytes = vec![0; random.random_range(1..4096)];
            random.fill_bytes(&mut bytes);
            let mut stream = match round % 2 {
                0 => TcpStream::connect(tcp_address(&server)).unwrap(),
                _ => RawPeer::dial(tcp_address(&server)).stream,
            };
            if round % 4 == 1 {
                // A believable length and kind in front.
                let length = bytes.len().max(16) as u32 - 4;
                bytes.resize(length as usize + 4, 0);
                bytes[..4].copy_from_slice(&length.to_le_bytes());
                bytes[4] &= 0x0F;
            }
            // The server may close first.
            let _ = stream.write_all(&bytes);
            peers.push(stream);
        }
        let only_the_witness = || server.hub().len() == 1;
        // Whole frames of unknown kinds keep their connection; those leave by themselves.
        thread::sleep(millis(1200));
        drop(peers);
        assert!(
            eventually(LIMIT, only_the_witness),
            "{}",
            server.hub().len()
        );
        witness.was_served();
        assert_eq!(server.stats().panics, 0);
    });
}

#[test]
fn a_frame_that_drips_in_is_cut_off_at_its_deadline() {
    within(Duration::from_secs(20), || {
        let mut timeouts = Timeouts::default();
        timeouts.frame = SECOND;
        let (server, errors) = echo_server(timeouts);
        let witness = Witness::start(&server);
        let mut peer = RawPeer::dial(tcp_address(&server));
        let frame = frame(Kind::Push, 2, 0, &[0; 100]);
        let start = Instant::now();
        let mut writer = peer.stream.try_clone().unwrap();
        let dripping = thread::spawn(move || {
            for byte in frame {
                if writer.write_all(&[byte]).is_err() {
                    break;
                }
                thread::sleep(millis(100));
            }
        });
        assert!(peer.is_closed_within(LIMIT));
        let took = start.elapsed();
        assert!(took > millis(900) && took < SECOND + PROMPT, "{took:?}");
        let text = reported(&errors, ErrorKind::FrameTimeout);
        assert!(text.contains("timeouts.frame = 1s"), "{text}");
        witness.was_served();
        dripping.join().unwrap();
    });
}

#[test]
fn handshakes_that_never_end_are_cut_off_and_hold_up_nobody() {
    within(Duration::from_secs(20), || {
        let mut timeouts = Timeouts::default();
        timeouts.handshake = 3 * SECOND;
        let (server, errors) = echo_server(timeouts);
        let address = tcp_address(&server);
        let witness = Witness::start(&server);
        let start = Instant::now();
        let silent: Vec<TcpStream> = (0..100)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let trickling = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_nodelay(true).unwrap();
            let mut sent = 0;
            for byte in opening() {
                if stream.write_all(&[byte]).is_err() {
                    break;
                }
                sent += 1;
                thread::sleep(millis(100));
            }
            sent
        });
        let client = Client::connect(address).unwrap();
        client.call(1, b"").unwrap();
        for mut stream in &silent {
            stream.set_nonblocking(true).unwrap();
            let error = stream
                .read(&mut [0; 64])
                .expect_err("a good client had to wait");
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
            stream.set_nonblocking(false).unwrap();
        }
        for mut stream in silent {
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let ended = match stream.read(&mut [0; 64]) {
                Ok(0) => true,
                Err(error) => is_end(&error),
                Ok(_) => false,
            };
            assert!(ended, "a silent peer is there after {:?}", start.elapsed());
        }
        assert!(start.elapsed() > millis(2_900));
        assert!(trickling.join().unwrap() < opening().len());
        for _ in 0..101 {
            let text = reported(&errors, ErrorKind::Timeout);
            assert!(text.contains("timeouts.handshake = 3s"), "{text}");
        }
        witness.was_served();
    });
}

/// A preface of another version.
fn versions(lowest: u8, highest: u8) -> Vec<u8> {
    let mut preface = preface().to_vec();
    preface[4..6].copy_from_slice(&[lowest, highest]);
    preface
}

#[test]
fn a_server_of_another_version_is_named_with_both_ranges_and_dialled_once() {
    within(Duration::from_secs(20), || {
        let status = Status::new(Status::VERSION, "here 99 to 120, there 1 to 1");
        let own_words = Welcome::refusal(&Limits::default(), status).encode();
        for refusal in [Vec::new(), own_words] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let fake = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut opening = vec![0; opening().len()];
                stream.read_exact(&mut opening).unwrap();
                stream.write_all(&versions(99, 120)).unwrap();
                stream.write_all(&refusal).unwrap();
                drop(stream);
                listener
            });
            let error = Client::connect(address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Version, "{error:?}");
            let text = error.to_string();
            assert!(
                text.contains("99 to 120") && text.contains("1 to 1"),
                "{text}"
            );
            assert!(!error.is_retryable());
            let listener = fake.join().unwrap();
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err(), "it dialled again");
        }
    });
}

#[test]
fn a_client_of_another_version_is_told_both_ranges() {
    within(Duration::from_secs(20), || {
        let (server, errors) = echo_server(Timeouts::default());
        let witness = Witness::start(&server);
        let mut stream = TcpStream::connect(tcp_address(&server)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let hello = opening().split_off(8);
        stream.write_all(&versions(99, 120)).unwrap();
        stream.write_all(&hello).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer[..8], preface());
        let (welcome, size) = Welcome::decode(&answer[8..]).unwrap().unwrap();
        assert_eq!(size, answer.len() - 8);
        let status = welcome.refusal.unwrap();
        assert_eq!(status.code(), Status::VERSION);
        let text = reported(&errors, ErrorKind::Version);
        for text in [status.text(), &text] {
            assert!(
                text.contains("99 to 120") && text.contains("1 to 1"),
                "{text}"
            );
        }
        witness.was_served();
    });
}

#[test]
fn unknown_kinds_between_frames_are_skipped_counted_and_never_answered() {
    within(Duration::from_secs(20), || {
        let (server, _errors) = echo_server(Timeouts::default());
        let mut peer = RawPeer::dial(tcp_address(&server));
        let session = server.hub().session(peer.session).unwrap();
        let unknown = [0, 4, 5, 6, 7, 12, 13, 14, 15];
        for (index, kind) in unknown.into_iter().enumerate() {
            let mut stranger = frame(Kind::Push, 9, 9, b"from a later version");
            stranger[4] = kind;
            // What such a frame's flags, codec and extension mean is not known either.
            if index % 2 == 1 {
                stranger[4] |= 0xF0;
                stranger[5..8].copy_from_slice(&[200, 255, 255]);
            }
            let sequence = 0x0001_0000 + index as u32;
            let call = frame(Kind::Call, 1, sequence, &[kind]);
            peer.send(&[stranger, call].concat());
            let reply = peer.next().unwrap();
            assert_eq!((reply.kind, reply.sequence), (Kind::Reply, sequence));
            assert_eq!(reply.body, [kind]);
        }
        assert_eq!(session.stats().skipped_frames, unknown.len() as u64);
        assert!(!session.is_closed());
        peer.close(unknown.len() as u64, 0);
    });
}

/// A push whose extension block is this.
fn push_with_extension(block: &[u8]) -> Vec<u8> {
    let mut frame = frame(Kind::Push, 2, 0, b"");
    frame.extend_from_slice(block);
    let length = frame.len() as u32 - 4;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[6..8].copy_from_slice(&(block.len() as u16).to_le_bytes());
    frame
}

#[test]
fn a_flood_of_metadata_is_refused() {
    within(Duration::from_secs(20), || {
        let (server, errors) = echo_server(Timeouts::default());
        let witness = Witness::start(&server);
        // Type 2, then a length, a key's length, key and value.
        let empty_pairs = [2, 2, 0, 0, 0].repeat(13_107);
        let few_too_many = [2, 2, 0, 0, 0].repeat(65);
        let mut large_pair = vec![2, 0x00, 0x30, 0, 0];
        large_pair.resize(3 + 0x3000, b'v');
        for (block, limit) in [
            (empty_pairs, "limits.metadata_pairs"),
            (few_too_many, "limits.metadata_pairs"),
            (large_pair, "limits.metadata_bytes"),
        ] {
            let mut peer = RawPeer::dial(tcp_address(&server));
            let frame = push_with_extension(&block);
            for slice in frame.chunks(997) {
                // The server may close before it has read all.
                let _ = peer.stream.write_all(slice);
            }
            assert!(peer.is_closed_within(LIMIT));
            let text = reported(&errors, ErrorKind::Malformed);
            assert!(text.contains(limit), "{text}");
        }
        // As many as allowed are fine.
        let mut peer = RawPeer::dial(tcp_address(&server));
        peer.send(&push_with_extension(&[2, 2, 0, 0, 0].repeat(64)));
        peer.call(1, 0x0001_0000, b"alive");
        assert_eq!(peer.next().unwrap().body, b"alive");
        witness.was_served();
    });
}

/// Sends the same bytes again and again without reading, until the peer closes.
fn flood(address: SocketAddr, bytes: &[u8], times: usize) {
    let mut peer = RawPeer::dial(address);
    peer.stream.set_write_timeout(Some(LIMIT)).unwrap();
    for _ in 0..times {
        if peer.stream.write_all(bytes).is_err() {
            break;
        }
    }
    // Looks only whether it is closed, so what was sent to it stays unread until here.
    assert!(peer.is_closed_within(LIMIT), "the flood is let go on");
}

#[test]
fn a_flood_of_pings_is_cut_off() {
    within(Duration::from_secs(20), || {
        let (server, errors) = echo_server(Timeouts::default());
        let witness = Witness::start(&server);
        let pings = frame(Kind::Ping, 0, 0, b"").repeat(200);
        flood(tcp_address(&server), &pings, 1000);
        let text = reported(&errors, ErrorKind::ProtocolAbuse);
        assert!(
            text.contains("limits.control_frames_per_second = 1000"),
            "{text}"
        );
        witness.was_served();
    });
}

#[test]
fn floods_of_other_frames_that_cost_nothing_are_cut_off() {
    within(Duration::from_secs(20), || {
        let (server, errors) = echo_server(Timeouts::default());
        let witness = Witness::start(&server);
        let mut unknown = frame(Kind::Push, 0, 0, b"");
        unknown[4] = 15;
        for abuse in [
            frame(Kind::Reply, 0, 0x0001_0000, b""),
            frame(Kind::Cancel, 0, 0x0001_0000, b""),
            unknown,
        ] {
            flood(tcp_address(&server), &abuse.repeat(200), 1000);
            reported(&errors, ErrorKind::ProtocolAbuse);
        }
        witness.was_served();
    });
}

/// Measured in a child process, where no other test needs memory.
#[test]
fn memory_grows_with_what_comes_and_not_with_what_is_announced() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    const TEST: &str = "hostile_peers::memory_grows_with_what_comes_and_not_with_what_is_announced";
    if child_role().is_none() {
        within(Duration::from_secs(60), || {
            let output = child(TEST, "measure").output().unwrap();
            print!("{}", String::from_utf8_lossy(&output.stdout));
            assert!(output.status.success(), "{output:?}");
        });
        return;
    }
    let mut timeouts = Timeouts::default();
    timeouts.frame = millis(500);
    timeouts.lowest_rate = u32::MAX;
    timeouts.write = SECOND;
    let (server, errors) = echo_server(timeouts);
    let witness = Witness::start(&server);
    let address = tcp_address(&server);
    // Threads, buffers and the allocator's pools are there before anything is measured.
    let mut peer = RawPeer::dial(address);
    peer.call(1, 0x0001_0000, &[0; 1000]);
    peer.next().unwrap();
    peer.close(1, 1016);
    // And the code of such an end, whose pages count as well.
    let pings = frame(Kind::Ping, 0, 0, b"").repeat(200);
    flood(address, &pings, 10);
    reported(&errors, ErrorKind::ProtocolAbuse);
    let mut before = resident_bytes();
    let mut grown = |what: &str, most: usize| {
        let now = resident_bytes();
        let grown = now.saturating_sub(before);
        println!("{what}: {grown} bytes more");
        assert!(grown < most, "{what}: {grown} bytes more");
        before = now;
    };

    let mut peer = RawPeer::dial(address);
    let mut announced = frame(Kind::Push, 2, 0, b"");
    announced[..4].copy_from_slice(&((16 << 20) - 4u32).to_le_bytes());
    let start = Instant::now();
    peer.send(&announced);
    thread::sleep(millis(300));
    grown("a frame of 16 MiB that is announced", 1 << 20);
    assert!(peer.is_closed_within(LIMIT));
    let took = start.elapsed();
    assert!(took > millis(450) && took < PROMPT, "{took:?}");
    reported(&errors, ErrorKind::FrameTimeout);

    flood(address, &pings, 1000);
    reported(&errors, ErrorKind::ProtocolAbuse);
    // Less than the pings themselves have; pages of the program that run first are in it.
    grown("200,000 pings", 2 << 20);

    // Calls whose replies are not read: bounded by the queue and its reserve, then the peer
    // is cut off by its write limit or for the abuse.
    let calls = frame(Kind::Call, 1, 0x0001_0000, &[0; 100]).repeat(200);
    flood(address, &calls, 5000);
    let error = errors.recv_timeout(LIMIT).unwrap();
    assert!(
        matches!(error.kind(), ErrorKind::Timeout | ErrorKind::ProtocolAbuse),
        "{error:?}"
    );
    grown("a million calls whose replies are not read", 32 << 20);
    witness.was_served();
}
