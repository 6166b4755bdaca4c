//! How connections and sessions begin and end, in the figures of a server.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use trunkline::{Address, Client, Kind, Server, Status};

use crate::support::{LIMIT, RawPeer, eventually, frame, server_session, within};

const ECHO: u32 = 1;

fn server() -> Server {
    Server::builder()
        .on_call(ECHO, |_, body| body.to_vec())
        .bind("127.0.0.1:0")
        .unwrap()
}

#[test]
fn the_figures_of_sessions_that_are_over_stay_in_those_of_the_server() {
    within(LIMIT, || {
        let server = server();
        let connect = |_| Client::connect(server.local_address()).unwrap();
        let clients: Vec<Client> = (0..3).map(connect).collect();
        for (client, calls) in clients.iter().zip(1..) {
            for _ in 0..calls {
                client.call(ECHO, b"abc").unwrap();
            }
        }
        let before = server.stats();
        assert_eq!((before.calls_received, before.sessions), (6, 3));
        assert_eq!(before.handler_time().unwrap().samples, 6);
        for client in clients {
            client.shutdown(LIMIT).unwrap();
        }
        assert!(eventually(LIMIT, || server.hub().is_empty()));
        let after = server.stats();
        assert_eq!((after.sessions, after.queued_bytes), (0, 0));
        assert_eq!((after.calls_received, after.calls_answered), (6, 6));
        assert_eq!(after.received_bytes, before.received_bytes);
        assert_eq!(after.queued_bytes_peak, before.queued_bytes_peak);
        assert_eq!(after.handler_time(), before.handler_time());
        assert_eq!((before.closed_clean, after.closed_clean), (0, 3));
    });
}

#[test]
fn sessions_are_counted_by_the_reason_of_their_end() {
    within(LIMIT, || {
        let server = server();
        let address = server.local_address();
        let count = |what: fn(&trunkline::Stats) -> u64| {
            assert!(eventually(LIMIT, || what(&server.stats()) == 1));
        };
        Client::connect(address).unwrap().shutdown(LIMIT).unwrap();
        count(|stats| stats.closed_clean);

        drop(RawPeer::dial(address));
        count(|stats| stats.closed_ended);

        let mut peer = RawPeer::dial(address);
        let half = frame(Kind::Call, ECHO, 1, b"half of it");
        peer.send(&half[..half.len() / 2]);
        drop(peer);
        count(|stats| stats.closed_truncated);

        let peer = RawPeer::dial(address);
        server_session(&server, peer.session);
        peer.reset();
        count(|stats| stats.closed_reset);

        let peer = RawPeer::dial(address);
        server_session(&server, peer.session).abort();
        count(|stats| stats.closed_cut);

        let stats = server.stats();
        let ended = stats.closed_clean + stats.closed_ended + stats.closed_truncated;
        assert_eq!(ended + stats.closed_reset + stats.closed_cut, 5);
        assert_eq!(stats.connections_accepted, 5);
    });
}

#[test]
fn a_client_counts_its_own_end() {
    within(LIMIT, || {
        let server = server();
        let (sender, ended) = mpsc::channel();
        let client = Client::builder()
            .on_closed(move |session, _| sender.send(session.stats()).unwrap())
            .connect(server.local_address())
            .unwrap();
        client.shutdown(LIMIT).unwrap();
        assert_eq!(ended.recv_timeout(LIMIT).unwrap().closed_clean, 1);
    });
}

#[test]
fn connections_that_become_no_session_are_counted() {
    within(LIMIT, || {
        let refuses = Arc::new(AtomicBool::new(false));
        let asked = refuses.clone();
        let server = Server::builder()
            .on_accept(move |_: &Address| match asked.load(Ordering::SeqCst) {
                true => Err(Status::new(Status::FORBIDDEN, "not now")),
                false => Ok(()),
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let address = server.local_address();
        let client = Client::connect(address).unwrap();
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(eventually(LIMIT, || server.stats().handshakes_failed == 1));
        refuses.store(true, Ordering::SeqCst);
        for _ in 0..2 {
            Client::connect(address).unwrap_err();
        }
        let stats = server.stats();
        assert_eq!(stats.connections_accepted, 4);
        assert_eq!(stats.connections_refused, 2);
        assert_eq!((stats.handshakes_failed, stats.sessions), (1, 1));
        assert_eq!(stats.accept_failures, 0);
        assert_eq!(client.stats().connections_accepted, 0);
    });
}
