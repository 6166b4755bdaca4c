//! Listeners that the application has opened, and may go on using.

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use trunkline::{Address, Client, ErrorKind, Server};

use super::{answers, echo};
use crate::support::folder::{Folder, unix};
use crate::support::{LIMIT, PROMPT, eventually, within};

#[test]
fn listeners_that_were_opened_elsewhere_are_served() {
    within(LIMIT, || {
        let folder = Folder::new();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = UnixListener::bind(folder.file("app")).unwrap();
        let addresses = [
            tcp.local_addr().unwrap().to_string(),
            unix(&folder.file("app")),
        ];
        // Whether they wait or not.
        tcp.set_nonblocking(true).unwrap();
        let server = echo().also_from(local).from_listener(tcp).unwrap();
        assert_eq!(
            [0, 1].map(|place: usize| server.local_addresses()[place].to_string()),
            addresses
        );
        for _ in 0..20 {
            for address in &addresses {
                answers(&Client::connect(address).unwrap());
            }
        }
        server.shutdown(LIMIT).unwrap();
        for address in &addresses {
            let error = Client::connect(address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectFailed, "{error}");
        }
        assert!(folder.file("app").exists(), "the file is not the server's");
    });
}

/// As systemd does, and the next server on the same listener.
#[test]
fn another_holder_of_the_listener_goes_on_listening() {
    within(Duration::from_secs(20), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        for round in 0..20 {
            let server = echo().from_listener(listener.try_clone().unwrap()).unwrap();
            let client = Client::connect(address).unwrap();
            answers(&client);
            let start = Instant::now();
            if round % 2 == 0 {
                server.shutdown(LIMIT).unwrap();
                assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
            } else {
                drop(server);
            }
            assert!(client.wait_closed(LIMIT).is_some());
        }
        listener.set_nonblocking(false).unwrap();
        let _dialled = TcpStream::connect(address).unwrap();
        listener.accept().unwrap();
    });
}

/// The system accepts it all the same, and no longer tells the peer's address afterwards.
#[test]
fn a_connection_that_was_reset_in_the_backlog_is_asked_about_by_its_address() {
    within(LIMIT, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialled = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let peer = dialled.local_addr().unwrap();
        let dialled = socket2::Socket::from(dialled);
        dialled.set_linger(Some(Duration::ZERO)).unwrap();
        drop(dialled);
        let (sender, asked) = mpsc::channel();
        let _server = echo()
            .on_accept(move |peer| {
                sender.send(peer.clone()).unwrap();
                Ok(())
            })
            .from_listener(listener)
            .unwrap();
        assert_eq!(asked.recv_timeout(LIMIT).unwrap(), Address::Tcp(peer));
    });
}

#[test]
fn two_servers_share_a_listener_and_each_stops_alone() {
    within(Duration::from_secs(20), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let copy = listener.try_clone().unwrap();
        let servers = [listener, copy].map(|listener| echo().from_listener(listener).unwrap());
        let mut clients = Vec::new();
        let both_have_some = eventually(LIMIT, || {
            clients.push(Client::connect(address).unwrap());
            servers.iter().all(|server| !server.hub().is_empty())
        });
        assert!(both_have_some);
        let [first, second] = servers;
        let start = Instant::now();
        first.shutdown(LIMIT).unwrap();
        assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
        for _ in 0..20 {
            answers(&Client::connect(address).unwrap());
        }
        second.shutdown(LIMIT).unwrap();
        Client::connect(address).unwrap_err();
    });
}

#[test]
fn a_server_without_handlers_takes_a_listener_too() {
    within(LIMIT, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::from_listener(listener).unwrap();
        let client = Client::builder()
            .on_call(2, |_, _| "the client")
            .connect(server.local_address())
            .unwrap();
        let session = server.hub().session(client.id()).unwrap();
        let name: String = session.call_as(2, b"").unwrap();
        assert_eq!(name, "the client");
    });
}
