//! Several addresses, and names that mean something else by the time.

use std::net::ToSocketAddrs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use trunkline::{Client, ClientState, ErrorKind, Server};

use super::{ANY, Changes, echo, nobody, quick};
use crate::addresses::in_a_network_of_its_own;
use crate::support::folder::{Folder, unix};
use crate::support::{LIMIT, child_role, eventually, server_session, tcp_address, within};

/// A server that says which one it is.
fn named(name: &'static str) -> trunkline::ServerBuilder {
    echo().on_call(8, move |_, _| name)
}

fn asked(client: &Client) -> String {
    client.wait_connected(LIMIT).unwrap();
    client.call_as(8, ()).unwrap()
}

#[test]
fn the_first_connect_takes_the_first_address_that_answers() {
    within(Duration::from_secs(30), || {
        let server = named("second").bind(ANY).unwrap();
        let (_kept, dead) = nobody();
        let client = Client::builder()
            .also_at(tcp_address(&server))
            .also_at(dead)
            .connect(dead)
            .unwrap();
        assert_eq!(asked(&client), "second");
        let error = Client::builder().also_at(dead).connect(dead);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::ConnectFailed);
    });
}

#[test]
fn a_lost_client_goes_to_the_next_address_and_in_the_next_round_to_the_first() {
    within(Duration::from_secs(30), || {
        let first = named("first").bind(ANY).unwrap();
        let second = named("second").bind(ANY).unwrap();
        let address = tcp_address(&first);
        let client = Client::builder()
            .reconnect(quick())
            .also_at(tcp_address(&second))
            .connect(address)
            .unwrap();
        assert_eq!(asked(&client), "first");
        let lost = client.session();
        drop(first);
        assert!(eventually(LIMIT, || client.session() != lost));
        assert_eq!(asked(&client), "second");
        let lost = client.session();
        let _first = super::restart(|| named("first again"), address);
        server_session(&second, lost.id()).abort();
        assert!(eventually(LIMIT, || client.session() != lost));
        assert_eq!(asked(&client), "first again");
    });
}

#[test]
fn one_address_that_is_refused_for_good_does_not_end_the_attempts_at_the_others() {
    within(Duration::from_secs(30), || {
        let (builder, changes) = Changes::of(Client::builder().reconnect(quick()));
        let (kept, address) = nobody();
        let client = builder
            .also_at(address)
            .connect_later("no address")
            .unwrap();
        let waiting = changes.until(ClientState::Waiting);
        assert_eq!(waiting.reason.unwrap().kind(), ErrorKind::ConnectFailed);
        drop(kept);
        let _server = super::restart(|| named("late"), address);
        assert_eq!(asked(&client), "late");
    });
}

#[test]
fn a_name_is_looked_up_anew_for_each_round() {
    within(Duration::from_secs(30), || {
        let folder = Folder::new();
        let (old, new, link) = (folder.file("old"), folder.file("new"), folder.file("link"));
        let server = named("old").bind(unix(&old)).unwrap();
        let _other = named("new").bind(unix(&new)).unwrap();
        symlink(&old, &link).unwrap();
        let client = Client::builder()
            .reconnect(quick())
            .connect(unix(&link))
            .unwrap();
        assert_eq!(asked(&client), "old");
        std::fs::remove_file(&link).unwrap();
        symlink(&new, &link).unwrap();
        let lost = client.session();
        server_session(&server, lost.id()).abort();
        assert!(eventually(LIMIT, || client.session() != lost));
        assert_eq!(asked(&client), "new");
    });
}

#[test]
fn a_server_that_moves_to_another_address_of_its_name_is_found() {
    within(Duration::from_secs(30), || {
        let found: Vec<_> = ("localhost", 0).to_socket_addrs().unwrap().collect();
        let has_both = found.iter().any(|at| at.is_ipv6()) && found.iter().any(|at| at.is_ipv4());
        let bind = |at: &str| -> Option<Server> { named("here").bind(at).ok() };
        let Some(server) = bind("[::1]:0").filter(|_| has_both) else {
            println!("localhost has one address alone");
            return;
        };
        let port = tcp_address(&server).port();
        let client = Client::builder()
            .reconnect(quick())
            .connect(format!("localhost:{port}"))
            .unwrap();
        assert_eq!(asked(&client), "here");
        server.shutdown(LIMIT).unwrap();
        let Some(_moved) = bind(&format!("127.0.0.1:{port}")) else {
            println!("the port is another's there");
            return;
        };
        assert_eq!(asked(&client), "here");
        assert!(client.peer_address().socket().unwrap().is_ipv4());
    });
}

#[test]
fn a_client_without_a_source_port_waits_between_its_attempts_until_there_is_one() {
    const TEST: &str = "reconnect::addresses::\
                        a_client_without_a_source_port_waits_between_its_attempts_until_there_is_one";
    if child_role().is_some() {
        let server = echo().bind("127.0.0.1:30000").unwrap();
        let address = tcp_address(&server);
        let mut clients: Vec<Client> = (0..20).map(|_| Client::connect(address).unwrap()).collect();
        let (builder, changes) = Changes::of(Client::builder().reconnect(quick()));
        let late = builder.connect_later(address).unwrap();
        for _ in 0..3 {
            let reason = changes.until(ClientState::Waiting).reason.unwrap();
            assert_eq!(reason.kind(), ErrorKind::ConnectFailed);
        }
        // A port is free again where this side did not close first.
        let session = server_session(&server, clients[0].id());
        session.shutdown(LIMIT).unwrap();
        clients.remove(0).shutdown(LIMIT).unwrap();
        late.wait_connected(LIMIT).unwrap();
        late.call(1, b"").unwrap();
        println!("told");
        return;
    }
    within(Duration::from_secs(20), || {
        const PREPARE: &str = "echo 40000 40019 > /proc/sys/net/ipv4/ip_local_port_range";
        if let Some(output) = in_a_network_of_its_own(TEST, PREPARE) {
            assert!(output.contains("told"), "{output}");
        }
    });
}
