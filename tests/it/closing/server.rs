//! Stopping a server: quickly, in order, and so that the next one can start.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, CloseReason, ErrorKind, Server, Status};

use super::{SECOND, deferring_server};
use crate::support::{LIMIT, PROMPT, eventually, is_end, millis, tcp_address, within};

fn echo_server(address: impl ToString) -> Server {
    Server::builder()
        .on_call(1, |_, body| body.to_vec())
        .bind(address)
        .unwrap()
}

#[test]
fn a_server_restarts_on_its_port_at_once() {
    within(Duration::from_secs(30), || {
        let mut server = echo_server("127.0.0.1:0");
        let address = tcp_address(&server);
        for round in 0..50 {
            let client = Client::connect(address).unwrap();
            assert_eq!(client.call(1, b"served").unwrap().body(), b"served");
            // The server closes first, so its side of the connection lingers in TIME_WAIT.
            let report = server.shutdown(2 * SECOND).unwrap();
            assert_eq!((report.sessions, report.clean), (1, 1), "{report}");
            if round % 2 == 0 {
                drop(server);
            }
            server = echo_server(address);
            assert_eq!(tcp_address(&server), address);
        }
    });
}

#[test]
fn a_server_without_clients_stops_at_once() {
    within(Duration::from_secs(60), || {
        for round in 0..200 {
            let address = ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"][round % 4];
            let server = echo_server(address);
            let start = Instant::now();
            let report = server.shutdown(5 * SECOND).unwrap();
            let took = start.elapsed();
            assert!(took < PROMPT, "round {round} on {address}: {took:?}");
            assert_eq!(report.sessions, 0);
            let error = Client::connect(at_loopback(tcp_address(&server))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectFailed, "{error}");
        }
    });
}

fn at_loopback(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    address
}

#[test]
fn dropping_a_server_stops_it_too() {
    within(Duration::from_secs(30), || {
        let server = echo_server("127.0.0.1:0");
        let address = tcp_address(&server);
        let (sender, ends) = mpsc::channel();
        let client = Client::builder()
            .on_closed(move |_, report| sender.send(report.reason).unwrap())
            .connect(address)
            .unwrap();
        drop(server);
        assert_eq!(ends.recv_timeout(LIMIT).unwrap(), CloseReason::Clean);
        assert!(client.is_closed());
        let server = echo_server(address);
        let client = Client::connect(address).unwrap();
        client.call(1, b"").unwrap();
        server.shutdown(LIMIT).unwrap();
    });
}

#[test]
fn a_second_server_on_a_port_is_refused() {
    within(Duration::from_secs(10), || {
        let first = echo_server("127.0.0.1:0");
        let address = first.local_address();
        let error = Server::builder().bind(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddressInUse);
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        let client = Client::connect(address).unwrap();
        client.call(1, b"").unwrap();
    });
}

#[test]
fn a_stop_lets_running_calls_finish_and_refuses_new_ones() {
    within(Duration::from_secs(20), || {
        let (entered, handling) = mpsc::channel();
        let server = Server::builder()
            .on_call(1, move |_, _| {
                entered.send(()).unwrap();
                thread::sleep(millis(300));
                b"done"
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let address = tcp_address(&server);
        let idle = [0; 2].map(|_| Client::connect(address).unwrap());
        let busy = [0; 3].map(|_| Client::connect(address).unwrap());
        let calls: Vec<_> = busy
            .iter()
            .map(|client| {
                let first = client.request(1).start(b"").unwrap();
                handling.recv_timeout(LIMIT).unwrap();
                (first, client.request(1).start(b"").unwrap())
            })
            .collect();
        assert!(eventually(LIMIT, || server.hub().len() == 5));
        // The second calls are on their way: they find the server stopping.
        for client in &busy {
            client.flush(LIMIT).unwrap();
        }
        let start = Instant::now();
        let report = server.shutdown(LIMIT).unwrap();
        let took = start.elapsed();
        assert!(took < PROMPT, "{took:?}");
        assert_eq!((report.sessions, report.clean), (5, 5), "{report}");
        for (running, refused) in calls {
            assert_eq!(running.wait().unwrap().body(), b"done");
            let error = refused.wait().unwrap_err();
            assert_eq!(
                error.status().map(Status::code),
                Some(Status::GOING_AWAY),
                "{error:?}"
            );
            assert!(error.is_retryable());
        }
        for client in idle.iter().chain(&busy) {
            assert_eq!(client.shutdown(LIMIT).unwrap().reason, CloseReason::Clean);
        }
    });
}

#[test]
fn a_stop_does_not_wait_longer_than_its_limit() {
    within(Duration::from_secs(20), || {
        let (server, responders) = deferring_server();
        let client = Client::connect(tcp_address(&server)).unwrap();
        let call = client.request(1).timeout(10 * SECOND).start(b"").unwrap();
        let responder = responders.recv_timeout(LIMIT).unwrap();
        let start = Instant::now();
        let report = server.shutdown(SECOND).unwrap();
        let took = start.elapsed();
        assert!(took >= SECOND && took < SECOND + PROMPT, "{took:?}");
        assert_eq!((report.sessions, report.clean), (1, 0), "{report}");
        let error = call.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
        // An answer to a session that has ended goes nowhere.
        responder.reply(b"too late");
    });
}

#[test]
fn waiting_for_a_server_ends_with_its_shutdown() {
    within(Duration::from_secs(10), || {
        let server = echo_server("127.0.0.1:0");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| server.wait());
            server.shutdown(LIMIT).unwrap();
            waiting.join().unwrap();
        });
    });
}

#[test]
fn a_stop_ends_handshakes_at_once_and_tells_those_who_are_about_to_connect() {
    within(Duration::from_secs(60), || {
        for _ in 0..20 {
            let server = echo_server("127.0.0.1:0");
            let address = tcp_address(&server);
            let silent: Vec<TcpStream> = (0..10)
                .map(|_| TcpStream::connect(address).unwrap())
                .collect();
            let dialling: Vec<_> = (0..4)
                .map(|_| {
                    thread::spawn(move || {
                        loop {
                            match Client::connect(address) {
                                // The stop may come in between.
                                Ok(client) => drop(client.call(1, b"")),
                                Err(error) => return error,
                            }
                        }
                    })
                })
                .collect();
            thread::sleep(millis(5));
            let start = Instant::now();
            server.shutdown(5 * SECOND).unwrap();
            let took = start.elapsed();
            assert!(took < PROMPT, "{took:?}");
            for dialling in dialling {
                let error = dialling.join().unwrap();
                let status = error.status().map(Status::code);
                assert!(error.is_retryable(), "{status:?} {error:?}");
            }
            for mut stream in silent {
                stream.set_read_timeout(Some(SECOND)).unwrap();
                let end = stream.read(&mut [0; 512]);
                assert!(
                    end.as_ref().is_ok_and(|count| *count == 0) || end.as_ref().is_err_and(is_end),
                    "{end:?}"
                );
            }
        }
    });
}

#[test]
fn a_shutdown_waits_for_a_closed_event_that_has_begun_and_its_panic_is_counted() {
    within(LIMIT, || {
        let (sender, begun) = mpsc::channel();
        let (done, is_done) = mpsc::channel();
        let server = Server::builder()
            .on_closed(move |_, _| {
                sender.send(()).unwrap();
                thread::sleep(millis(200));
                done.send(()).unwrap();
                panic!("as asked");
            })
            .bind("127.0.0.1:0")
            .unwrap();
        Client::connect(server.local_address()).unwrap().close();
        begun.recv().unwrap();
        assert!(server.hub().is_empty());
        let report = server.shutdown(LIMIT).unwrap();
        assert_eq!(is_done.try_recv(), Ok(()));
        assert_eq!((report.sessions, server.stats().panics), (0, 1));
    });
}
