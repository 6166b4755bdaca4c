//! Clients that reconnect: from the loss of a session to the next.

mod addresses;
mod crowd;
mod cuts;
mod ends;
mod figures;
mod holding;
mod login;
mod silence;
mod stops;

use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use trunkline::{
    Backoff, Client, ClientBuilder, ClientState, ErrorKind, Server, ServerBuilder, StateChange,
    Status,
};

use crate::support::{LIMIT, eventually, millis, server_session, tcp_address, within};

const ANY: &str = "127.0.0.1:0";

/// Short waits.
fn quick() -> Backoff {
    let mut backoff = Backoff::default();
    backoff.first = millis(1);
    backoff.most = millis(50);
    backoff
}

/// A wait that no test lasts.
fn slow() -> Backoff {
    let mut backoff = Backoff::default();
    backoff.first = Duration::from_secs(3600);
    backoff.most = Duration::from_secs(3600);
    backoff
}

/// What a client tells of its states.
struct Changes(Receiver<StateChange>);

impl Changes {
    fn of(builder: ClientBuilder) -> (ClientBuilder, Changes) {
        let (sender, receiver) = mpsc::channel();
        let builder = builder.on_state(move |change| {
            let _ = sender.send(change.clone());
        });
        (builder, Changes(receiver))
    }

    /// The next change, which is to this state.
    #[track_caller]
    fn next(&self, state: ClientState) -> StateChange {
        let change = self.0.recv_timeout(LIMIT).unwrap();
        assert_eq!(change.state, state, "{change}");
        change
    }

    /// The next change to this state, whatever comes before.
    #[track_caller]
    fn until(&self, state: ClientState) -> StateChange {
        loop {
            let change = self.0.recv_timeout(LIMIT).unwrap();
            if change.state == state {
                return change;
            }
        }
    }
}

fn echo() -> ServerBuilder {
    Server::builder()
        .on_call(1, |_, body| body.to_vec())
        .on_push(2, |_, _| ())
}

/// An address at which nobody listens, and nobody else can while the socket is kept.
fn nobody() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = ANY.parse().unwrap();
    socket.bind(&any.into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, address)
}

/// Listens where another server did a moment ago.
fn restart(builder: impl Fn() -> ServerBuilder, address: SocketAddr) -> Server {
    let mut server = None;
    assert!(eventually(LIMIT, || {
        server = builder().bind(address).ok();
        server.is_some()
    }));
    server.unwrap()
}

#[test]
fn a_client_comes_back_to_a_server_that_was_restarted_and_tells_each_state() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let address = tcp_address(&server);
        let (builder, changes) = Changes::of(Client::builder().reconnect(quick()));
        let client = builder.connect(address).unwrap();
        let first = client.session();
        let connected = changes.next(ClientState::Connected);
        assert_eq!(connected.session, Some(first.clone()));
        assert_eq!((connected.attempt, connected.reason.is_none()), (0, true));
        assert_eq!(client.state(), ClientState::Connected);

        server.shutdown(LIMIT).unwrap();
        let waiting = changes.next(ClientState::Waiting);
        assert!(waiting.delay.unwrap() <= millis(1));
        assert_eq!(waiting.reason.unwrap().kind(), ErrorKind::Disconnected);
        let connecting = changes.next(ClientState::Connecting);
        assert_eq!(connecting.address.as_deref(), Some(&*address.to_string()));
        assert_eq!(connecting.attempt, 1);
        let waiting = changes.next(ClientState::Waiting);
        assert_eq!(waiting.attempt, 2);
        assert_eq!(waiting.reason.unwrap().kind(), ErrorKind::ConnectFailed);
        assert_eq!(client.session(), first);
        assert!(!client.is_closed());

        let server = restart(echo, address);
        let connected = changes.until(ClientState::Connected);
        let second = client.wait_connected(LIMIT).unwrap();
        assert_eq!(connected.session, Some(second.clone()));
        assert!(connected.attempt >= 2);
        assert_ne!(first, second);
        assert!(first.is_closed());
        assert_eq!(client.call(1, "again").unwrap().body(), b"again");
        assert_eq!(client.stats().calls_sent, 1);
        let report = client.shutdown(LIMIT).unwrap();
        assert_eq!(report.session, second.id());
        let stopped = changes.until(ClientState::Stopped);
        assert!(stopped.reason.is_none());
        assert!(client.is_closed());
        let totals = client.totals();
        assert_eq!(totals.sessions, 2);
        assert_eq!(totals.confirmed.messages, 1);
        assert_eq!(client.push(2, "").unwrap_err().kind(), ErrorKind::Closed);
        drop(server);
    });
}

#[test]
fn while_it_is_down_what_is_sent_fails_at_once_and_tells_why() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let (builder, changes) = Changes::of(Client::builder().reconnect(slow()));
        let client = builder.connect(tcp_address(&server)).unwrap();
        server_session(&server, client.id()).abort();
        changes.until(ClientState::Waiting);
        let outcomes = [
            client.push(2, "").unwrap_err(),
            client.try_push(2, "").unwrap_err().into(),
            client.call(1, "").unwrap_err(),
            client.request(2).meta("a", "b").push("").unwrap_err(),
            client.request(1).start("").unwrap_err(),
            client.request(1).call_then("", |_| ()).unwrap_err(),
            client.flush(LIMIT).unwrap_err(),
        ];
        for error in outcomes {
            assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
            assert!(error.is_retryable() && !error.maybe_executed());
            assert!(format!("{error:#}").contains("lost"), "{error:#}");
        }
        let error = client.wait_connected(millis(10)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(client.wait_closed(millis(10)).map(drop), None);
        client.reconnect_now().unwrap();
        client.wait_connected(LIMIT).unwrap();
        client.call(1, "").unwrap();
    });
}

#[test]
fn a_session_that_this_side_closes_by_itself_is_followed_by_another() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let client = Client::builder()
            .reconnect(quick())
            .connect(tcp_address(&server))
            .unwrap();
        let first = client.session();
        first.close_with(Status::new(1000, "enough"));
        assert!(eventually(LIMIT, || client.session() != first));
        client.wait_connected(LIMIT).unwrap();
        client.call(1, "").unwrap();
        let second = client.session();
        second.abort();
        assert!(eventually(LIMIT, || client.session() != second));
    });
}

#[test]
fn one_inbox_serves_all_sessions_until_the_client_stops() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let client = Client::builder()
            .reconnect(quick())
            .inbox(10)
            .connect(tcp_address(&server))
            .unwrap();
        let inbox = client.inbox().unwrap();
        for round in 0..3_u8 {
            let session = client.wait_connected(LIMIT).unwrap();
            let at_server = server_session(&server, session.id());
            at_server.push(9, [round]).unwrap();
            assert_eq!(inbox.recv().unwrap().body(), [round]);
            at_server.abort();
            assert!(eventually(LIMIT, || client.session() != session));
        }
        client.close();
        assert_eq!(inbox.recv().unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn what_reconnecting_needs_is_said_by_the_builder() {
    within(Duration::from_secs(30), || {
        let invalid = |builder: ClientBuilder| {
            let error = builder.connect_later("127.0.0.1:1").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            error.to_string()
        };
        assert!(invalid(Client::builder()).contains("reconnect"));
        assert!(invalid(Client::builder().hold(trunkline::Hold::default())).contains("reconnect"));
        for (key, set) in [
            (
                "backoff.first",
                (|b| b.first = Duration::ZERO) as fn(&mut Backoff),
            ),
            ("backoff.factor", |b| b.factor = 0),
            ("backoff.most", |b| b.most = Duration::ZERO),
            ("backoff.attempts", |b| b.attempts = 0),
        ] {
            let mut backoff = Backoff::default();
            set(&mut backoff);
            assert!(invalid(Client::builder().reconnect(backoff)).contains(key));
        }
        let server = echo().bind(ANY).unwrap();
        let plain = Client::connect(tcp_address(&server)).unwrap();
        let error = plain.reconnect_now().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(plain.state(), ClientState::Connected);
        plain.shutdown(LIMIT).unwrap();
        assert_eq!(plain.state(), ClientState::Stopped);
    });
}
