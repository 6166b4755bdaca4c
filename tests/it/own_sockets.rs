//! Sockets that the application brings: streams, pairs, listeners, inherited descriptors.

mod inherited;
mod listeners;
mod refused;

use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use trunkline::address::UnixName;
use trunkline::{Address, Client, CloseReason, ErrorKind, Framing, Server, ServerBuilder};

use crate::support::{LIMIT, PROMPT, millis, within};

fn echo() -> ServerBuilder {
    Server::builder().on_call(1, |_, body| body.to_vec())
}

#[track_caller]
fn answers(client: &Client) {
    assert_eq!(client.call(1, b"here?").unwrap().body(), b"here?");
}

fn tcp_pair() -> [TcpStream; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dialled = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    [listener.accept().unwrap().0, dialled]
}

#[test]
fn both_ends_of_a_pair_are_set_up_by_one_thread() {
    within(LIMIT, || {
        let server = echo().start().unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        server.serve(here).unwrap();
        let (heard, news) = mpsc::channel();
        let client = Client::builder()
            .on_call(2, |_, _| "the client")
            .on_push(3, move |_, body| heard.send(body.to_vec()).unwrap())
            .from_stream(there)
            .unwrap();
        answers(&client);
        let session = server.hub().session(client.id()).unwrap();
        let name: String = session.call_as(2, b"").unwrap();
        assert_eq!(name, "the client");
        session.push(3, b"news").unwrap();
        assert_eq!(news.recv_timeout(LIMIT).unwrap(), b"news");
        for address in [session.peer_address(), client.session().peer_address()] {
            let Address::Unix(address) = address else {
                panic!("{address}");
            };
            assert_eq!(address.name, UnixName::Unnamed);
            assert_eq!(address.process.unwrap().pid as u32, std::process::id());
        }
        let report = client.shutdown(LIMIT).unwrap();
        assert_eq!(report.reason, CloseReason::Clean, "{report}");
        server.shutdown(LIMIT).unwrap();
    });
}

#[test]
fn a_tcp_stream_that_was_opened_elsewhere_is_served() {
    within(LIMIT, || {
        let server = echo().start().unwrap();
        let [accepted, dialled] = tcp_pair();
        let peer = accepted.peer_addr().unwrap();
        server.serve(accepted).unwrap();
        let client = Client::from_stream(dialled).unwrap();
        answers(&client);
        let session = server.hub().session(client.id()).unwrap();
        assert_eq!(*session.peer_address(), Address::Tcp(peer));
        assert_eq!(client.local_address(), Address::Tcp(peer));
        assert_eq!(client.session().peer_address(), session.local_address());
    });
}

#[test]
fn a_server_without_listeners_serves_and_stops() {
    within(LIMIT, || {
        let server = echo().start().unwrap();
        assert!(server.local_addresses().is_empty());
        assert!(server.listeners().is_empty());
        assert_eq!(server.local_address().to_string(), "unix:");
        let (here, there) = UnixStream::pair().unwrap();
        server.serve(here).unwrap();
        let client = Client::from_stream(there).unwrap();
        answers(&client);
        let start = Instant::now();
        let report = server.shutdown(LIMIT).unwrap();
        assert_eq!((report.sessions, report.clean), (1, 1), "{report}");
        assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
        server.wait();
    });
}

#[test]
fn streams_that_do_not_wait_are_made_to_wait() {
    within(LIMIT, || {
        let server = echo().start().unwrap();
        let [tcp, unix] = [
            tcp_pair().map(OwnedFd::from),
            <[_; 2]>::from(UnixStream::pair().unwrap()).map(OwnedFd::from),
        ]
        .map(|pair| pair.map(socket2::Socket::from));
        for pair in [tcp, unix] {
            for socket in &pair {
                socket.set_nonblocking(true).unwrap();
                socket.set_read_timeout(Some(millis(1))).unwrap();
                socket.set_write_timeout(Some(millis(1))).unwrap();
            }
            let [here, there] = pair;
            server.serve(here).unwrap();
            let client = Client::from_stream(there).unwrap();
            // More than the sockets hold, and a pause that is longer than their time limits.
            let large = vec![7; 4 << 20];
            assert_eq!(client.call(1, &large).unwrap().body(), large);
            thread::sleep(millis(20));
            answers(&client);
        }
    });
}

/// Without a handshake, that would set time limits of its own.
#[test]
fn length_prefixed_messages_go_over_a_pair() {
    within(LIMIT, || {
        let server = Server::builder()
            .framing(Framing::LengthPrefixed)
            .on_push(0, |cx, body| cx.session().push(0, body).unwrap())
            .start()
            .unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        for stream in [&here, &there] {
            stream.set_read_timeout(Some(millis(1))).unwrap();
            stream.set_write_timeout(Some(millis(1))).unwrap();
        }
        server.serve(here).unwrap();
        let (heard, back) = mpsc::channel();
        let client = Client::builder()
            .framing(Framing::LengthPrefixed)
            .on_push(0, move |_, body| heard.send(body.to_vec()).unwrap())
            .from_stream(there)
            .unwrap();
        for body in [&b"one"[..], b"", b"three"] {
            thread::sleep(millis(20));
            client.push(0, body).unwrap();
            assert_eq!(back.recv_timeout(LIMIT).unwrap(), body);
        }
        let report = client.shutdown(LIMIT).unwrap();
        assert_eq!(report.reason, CloseReason::Clean, "{report}");
    });
}

#[test]
fn a_client_over_a_stream_whose_server_is_gone_fails_at_once() {
    within(LIMIT, || {
        let (here, there) = UnixStream::pair().unwrap();
        let [accepted, dialled] = tcp_pair();
        drop((here, accepted));
        let start = Instant::now();
        for stream in [OwnedFd::from(there), OwnedFd::from(dialled)] {
            let error = Client::from_stream(stream).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:#}");
        }
        assert!(start.elapsed() < PROMPT);
    });
}

#[test]
fn a_stream_that_is_shut_down_from_outside_ends_its_session_alone() {
    within(LIMIT, || {
        let (sender, ends) = mpsc::channel();
        let server = echo()
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .start()
            .unwrap();
        let [broken, sound] = [(); 2].map(|()| {
            let (here, there) = UnixStream::pair().unwrap();
            let copy = here.try_clone().unwrap();
            server.serve(here).unwrap();
            (Client::from_stream(there).unwrap(), copy)
        });
        broken.1.shutdown(Shutdown::Both).unwrap();
        let report = ends.recv_timeout(LIMIT).unwrap();
        assert_ne!(report.reason, CloseReason::Clean, "{report}");
        broken.0.wait_closed(LIMIT).unwrap();
        let error = broken.0.call(1, b"").unwrap_err();
        assert!(error.is_closed(), "{error}");
        answers(&sound.0);
    });
}
