//! The proxy of the other tests does what it is told.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::proxy::{Cut, End, Flow, Proxy, Rules, Way};
use crate::support::{LIMIT, eventually, is_end, millis, within};

fn flowing(flow: Flow) -> Rules {
    Rules {
        flow,
        ..Rules::default()
    }
}

/// The client's stream and the server's, with a proxy between them.
struct Line {
    proxy: Proxy,
    listener: TcpListener,
    client: TcpStream,
    server: TcpStream,
}

impl Line {
    fn new(to_server: Rules) -> Line {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::start(listener.local_addr().unwrap());
        proxy.set(Way::ToServer, to_server);
        let (client, server) = pair(&proxy, &listener);
        Line {
            proxy,
            listener,
            client,
            server,
        }
    }
}

fn pair(proxy: &Proxy, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(proxy.address()).unwrap();
    let (server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
    }
    (client, server)
}

/// Everything until the end, and whether that was a reset.
fn rest(stream: &mut TcpStream) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => (bytes, false),
        Err(error) if is_end(&error) => (bytes, true),
        Err(error) => panic!("{error}"),
    }
}

/// Whether nothing comes for a moment.
fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(millis(50))).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[test]
fn a_cut_is_exact_and_ends_both_streams() {
    within(LIMIT, || {
        for after in [1, 5, 1000, 100_000] {
            let wait = Duration::ZERO;
            let end = End::Fin;
            let mut line = Line::new(Rules {
                cut: Some(Cut { after, wait, end }),
                record: true,
                ..Rules::default()
            });
            let bytes: Vec<u8> = (0..200_000_u32).map(|index| index as u8).collect();
            let mut writer = line.client.try_clone().unwrap();
            let written = bytes.clone();
            let writing = thread::spawn(move || writer.write_all(&written));
            assert_eq!(
                rest(&mut line.server),
                (bytes[..after as usize].to_vec(), false)
            );
            assert_eq!(rest(&mut line.client), (Vec::new(), false));
            writing.join().unwrap().unwrap();
            drop((line.client, line.server));
            assert!(line.proxy.wait_cut(LIMIT).is_some());
            assert!(line.proxy.wait_end(LIMIT));
            assert_eq!(line.proxy.passed(Way::ToServer), after);
            let recorded = line.proxy.recorded(Way::ToServer);
            assert_eq!(recorded, bytes[..after as usize]);
        }
    });
}

#[test]
fn a_reset_reaches_both_ends_and_the_next_connection_is_whole() {
    within(LIMIT, || {
        let mut line = Line::new(Rules::default());
        line.client.write_all(b"abc").unwrap();
        line.server.read_exact(&mut [0; 3]).unwrap();
        line.proxy.cut(End::Reset);
        for stream in [&mut line.client, &mut line.server] {
            assert_eq!(rest(stream), (Vec::new(), true));
        }
        assert!(line.proxy.wait_end(LIMIT));
        let (mut client, mut server) = pair(&line.proxy, &line.listener);
        server.write_all(b"def").unwrap();
        drop(server);
        assert_eq!(rest(&mut client), (b"def".to_vec(), false));
        assert_eq!(line.proxy.connections(), 2);
    });
}

#[test]
fn what_stalls_comes_later_and_what_is_swallowed_never() {
    within(LIMIT, || {
        let mut line = Line::new(Rules::default());
        line.proxy.set(Way::ToServer, flowing(Flow::Stall));
        line.client.write_all(b"one").unwrap();
        assert!(is_silent(&mut line.server));
        // The other direction goes on.
        line.server.write_all(b"two").unwrap();
        line.client.read_exact(&mut [0; 3]).unwrap();
        line.proxy.set(Way::ToServer, Rules::default());
        let mut word = [0; 3];
        line.server.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"one");

        line.proxy.set_both(&flowing(Flow::Swallow));
        line.client.write_all(b"gone").unwrap();
        assert!(is_silent(&mut line.server));
        // Not even the end passes.
        drop(line.client);
        assert!(is_silent(&mut line.server));
        assert_eq!(line.proxy.open(), 1);
        line.proxy.set_both(&Rules::default());
        assert_eq!(rest(&mut line.server), (Vec::new(), false));
    });
}

#[test]
fn a_stall_fills_the_buffers_of_the_sender() {
    within(LIMIT, || {
        let mut line = Line::new(flowing(Flow::Stall));
        line.client.set_write_timeout(Some(millis(100))).unwrap();
        let chunk = [0; 64 << 10];
        let full = (0..1000).find_map(|_| line.client.write(&chunk).err());
        assert!(full.is_some());
        // The end of the proxy is prompt all the same, and reaches both.
        let start = Instant::now();
        drop(line.proxy);
        assert!(start.elapsed() < LIMIT / 2);
        assert!(rest(&mut line.client).1);
        assert!(rest(&mut line.server).1);
    });
}

#[test]
fn refused_connections_are_refused_until_they_are_accepted_elsewhere() {
    within(LIMIT, || {
        let mut line = Line::new(Rules::default());
        line.proxy.refuse();
        for _ in 0..3 {
            let error = TcpStream::connect(line.proxy.address()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        }
        // The connection that exists is left alone.
        line.client.write_all(b"abc").unwrap();
        line.server.read_exact(&mut [0; 3]).unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        line.proxy.retarget(other.local_addr().unwrap());
        line.proxy.accept();
        let (mut client, mut server) = pair(&line.proxy, &other);
        client.write_all(b"def").unwrap();
        server.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(line.proxy.connections(), 2);
        assert!(eventually(LIMIT, || line.proxy.open() == 2));
    });
}

#[test]
fn pieces_are_sliced_merged_delayed_and_slowed() {
    within(LIMIT, || {
        let arrives = |rules: Rules, size: usize| {
            let mut line = Line::new(rules);
            let start = Instant::now();
            line.client.write_all(&vec![7; size]).unwrap();
            drop(line.client);
            assert_eq!(rest(&mut line.server), (vec![7; size], false));
            start.elapsed()
        };
        let (slice, delay, rate) = (Some(3), Some(millis(50)), Some(1 << 20));
        arrives(
            Rules {
                slice,
                ..Rules::default()
            },
            100,
        );
        let merge = Some((1000, millis(5)));
        arrives(
            Rules {
                merge,
                ..Rules::default()
            },
            2500,
        );
        assert!(
            arrives(
                Rules {
                    delay,
                    ..Rules::default()
                },
                10
            ) >= millis(50)
        );
        assert!(
            arrives(
                Rules {
                    rate,
                    ..Rules::default()
                },
                200 << 10
            ) >= millis(150)
        );
    });
}
