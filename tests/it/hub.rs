//! The hub: sessions found, named, grouped, removed and looked at.

mod changes;
mod crowd;
mod data;
mod groups;
mod names;
mod removal;
mod snapshot;

use std::collections::HashSet;
use std::time::Duration;

use trunkline::{Client, ErrorKind, Server, Session, SessionId};

use crate::support::{LIMIT, eventually, server_session, within};

const NOTE: u32 = 1;

fn server() -> Server {
    Server::builder().bind("127.0.0.1:0").unwrap()
}

/// A client, and the server's session with it.
fn connected(server: &Server) -> (Client, Session) {
    let client = Client::connect(server.local_address()).unwrap();
    let session = server_session(server, client.id());
    (client, session)
}

#[test]
fn a_session_is_found_by_the_address_of_its_peer() {
    within(Duration::from_secs(30), || {
        let server = server();
        let (first, session) = connected(&server);
        let (_second, other) = connected(&server);
        let hub = server.hub();
        let address = &first.local_address();
        assert_eq!(hub.session_at(address).unwrap(), session);
        assert_eq!(hub.sessions_at(other.peer_address()), [other]);
        first.shutdown(LIMIT).unwrap();
        assert!(eventually(LIMIT, || hub.len() == 1));
        let error = hub.session_at(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        assert_eq!(hub.sessions_at(address), []);
    });
}

#[test]
#[cfg(target_os = "linux")]
fn sessions_that_share_an_address_are_found_together_and_never_guessed() {
    within(Duration::from_secs(30), || {
        let name = format!("unix:@trunkline-hub-{}", std::process::id());
        let server = Server::builder().bind(&name).unwrap();
        let clients = [(); 3].map(|()| Client::connect(&name).unwrap());
        let hub = server.hub();
        assert!(eventually(LIMIT, || hub.len() == 3));
        let session = hub.session(clients[0].id()).unwrap();
        let address = session.peer_address();
        assert_eq!(hub.sessions_at(address).len(), 3);
        let error = hub.session_at(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let [first, second, third] = clients;
        second.shutdown(LIMIT).unwrap();
        third.shutdown(LIMIT).unwrap();
        assert!(eventually(LIMIT, || hub.len() == 1));
        assert_eq!(hub.session_at(address).unwrap().id(), first.id());
    });
}

#[test]
fn a_random_session_may_be_any_of_them() {
    within(Duration::from_secs(30), || {
        let server = server();
        assert_eq!(server.hub().random(), None);
        let clients = [(); 4].map(|()| connected(&server));
        let expected: HashSet<SessionId> = clients.iter().map(|(client, _)| client.id()).collect();
        let mut drawn = HashSet::new();
        // Each is missed by as many draws once in 10^124 runs.
        for _ in 0..1_000 {
            drawn.insert(server.hub().random().unwrap().id());
        }
        assert_eq!(drawn, expected);
    });
}
