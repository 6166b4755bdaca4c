//! Options of addresses: sharing them, taking them over, dialling from them, waiting at them.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use trunkline::{Client, ErrorKind, Server};

use super::{echo, options};
use crate::support::{LIMIT, eventually, millis, server_session, tcp_address, within};

fn dialling_from(local: SocketAddr) -> trunkline::ClientBuilder {
    Client::builder().socket_options(options(|options| options.local_address = Some(local)))
}

/// A port that nobody had a moment ago.
fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    listener.local_addr().unwrap()
}

#[test]
fn a_client_dials_from_its_local_address() {
    within(LIMIT, || {
        let server = echo().bind("127.0.0.1:0").unwrap();
        for local in ["127.0.0.2:0".parse().unwrap(), free_port()] {
            let client = dialling_from(local)
                .connect(server.local_address())
                .unwrap();
            let session = server_session(&server, client.id());
            let seen = session.peer_address().socket().unwrap();
            assert_eq!(seen.ip(), local.ip());
            assert!(local.port() == 0 || seen == local, "{seen}");
            assert_eq!(client.session().local_address(), session.peer_address());
        }
    });
}

#[test]
fn a_local_address_that_is_taken_or_cannot_be_is_named() {
    within(LIMIT, || {
        let server = echo().bind("127.0.0.1:0").unwrap();
        let local = free_port();
        let connect = |local| dialling_from(local).connect(server.local_address());
        let _client = connect(local).unwrap();
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        for wrong in [
            // Connected to the same server; listening; another machine's; another family's.
            local,
            listener.local_addr().unwrap(),
            "192.0.2.1:0".parse().unwrap(),
            "[::1]:0".parse().unwrap(),
        ] {
            let error = connect(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectFailed, "{error:#}");
            let named = format!("from {wrong} (socket option local_address)");
            assert!(error.to_string().contains(&named), "{error}");
        }
    });
}

#[test]
fn servers_share_a_port_if_both_ask_for_it() {
    within(Duration::from_secs(20), || {
        let sharing = options(|options| options.reuse_port = true);
        let shared = || echo().socket_options(sharing.clone());
        let first = shared().bind("127.0.0.1:0").unwrap();
        let error = echo().bind(first.local_address()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddressInUse, "{error}");
        let second = shared().bind(first.local_address()).unwrap();
        for server in [&first, &second] {
            let listener = &server.listeners()[0];
            assert!(SockRef::from(listener).reuse_port().unwrap());
        }
        let mut clients = Vec::new();
        assert!(eventually(LIMIT, || {
            clients.push(Client::connect(first.local_address()).unwrap());
            !first.hub().is_empty() && !second.hub().is_empty()
        }));
    });
}

#[test]
fn an_address_of_dead_connections_is_taken_over_unless_told_otherwise() {
    within(LIMIT, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut dialled = TcpStream::connect(address).unwrap();
        // The server's side closes first: it lingers in TIME_WAIT.
        drop(listener.accept().unwrap());
        assert_eq!(dialled.read(&mut [0]).unwrap(), 0);
        drop((dialled, listener));
        let error = echo()
            .socket_options(options(|options| options.reuse_address = false))
            .bind(address)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddressInUse, "{error}");
        let server = echo().bind(address).unwrap();
        let listener = &server.listeners()[0];
        assert!(SockRef::from(listener).reuse_address().unwrap());
    });
}

#[test]
fn ipv4_peers_of_an_ipv6_listener_are_let_in_or_kept_out() {
    within(LIMIT, || {
        let listening = |v6_only| {
            let server = echo()
                .socket_options(options(|options| options.v6_only = Some(v6_only)))
                .bind("[::]:0")
                .unwrap();
            let kernel = server.listeners()[0].clone();
            assert_eq!(SockRef::from(&kernel).only_v6().unwrap(), v6_only);
            let port = tcp_address(&server).port();
            (server, port)
        };
        let (alone, port) = listening(true);
        Client::connect(format!("[::1]:{port}")).unwrap();
        let error = Client::connect(format!("127.0.0.1:{port}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectFailed, "{error}");
        drop(alone);
        let (both, port) = listening(false);
        Client::connect(format!("[::1]:{port}")).unwrap();
        let client = Client::connect(format!("127.0.0.1:{port}")).unwrap();
        let session = server_session(&both, client.id());
        assert_eq!(session.peer_address(), client.session().local_address());
        assert!(session.peer_address().to_string().starts_with("127.0.0.1:"));
    });
}

#[test]
fn as_many_connections_wait_as_the_backlog_says() {
    within(Duration::from_secs(20), || {
        let (entered, hook) = mpsc::channel();
        let (release, wait) = mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        let server = Server::builder()
            .socket_options(options(|options| options.backlog = 3))
            .on_accept(move |_| {
                let _ = entered.send(());
                // Until the test is over.
                let _ = wait.lock().unwrap().recv();
                Ok(())
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let address = tcp_address(&server);
        let _accepted = TcpStream::connect(address).unwrap();
        hook.recv_timeout(LIMIT).unwrap();
        // Linux lets one more wait than it is told.
        let waiting: Vec<TcpStream> = (0..4)
            .map(|_| TcpStream::connect_timeout(&address, LIMIT).unwrap())
            .collect();
        let one_more = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let error = one_more
            .connect_timeout(&address.into(), millis(300))
            .unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        drop((release, waiting));
    });
}
