//! Where to listen and whom to dial: addresses of all kinds, and clear errors for those that
//! cannot be.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigHandler, Signal, signal};
use trunkline::{Client, ErrorKind, Server, ServerBuilder, Session};

use crate::support::{
    LIMIT, PROMPT, RawPeer, STARTS_A_PROCESS, child, child_role, eventually,
    left_out_under_emulation, millis, server_session, tcp_address, within,
};

fn echo() -> ServerBuilder {
    Server::builder()
        .on_call(1, |_, body| body.to_vec())
        .on_push(2, |_, _| ())
}

#[track_caller]
fn is_served(address: impl ToString) -> Client {
    let client = Client::connect(address).unwrap();
    assert_eq!(client.call(1, b"here?").unwrap().body(), b"here?");
    client
}

#[test]
fn ipv4_and_ipv6_and_all_interfaces_are_served() {
    within(Duration::from_secs(20), || {
        for (listen, dial) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::1]:0", "[::1]"),
            ("0.0.0.0:0", "127.0.0.1"),
            ("[::]:0", "[::1]"),
            // On Linux a listener for all IPv6 addresses takes IPv4, unless told otherwise.
            ("[::]:0", "127.0.0.1"),
        ] {
            let server = echo().bind(listen).unwrap();
            let port = tcp_address(&server).port();
            assert_ne!(port, 0);
            let client = is_served(format!("{dial}:{port}"));
            let session = server.hub().session(client.id()).unwrap();
            let peer = client.local_address();
            // IPv4 stays IPv4 in what is shown and compared.
            assert_eq!(session.peer_address(), &peer, "{listen} {dial}");
            assert_eq!(client.peer_address().port(), Some(port));
        }
    });
}

#[test]
fn host_names_are_looked_up() {
    within(Duration::from_secs(20), || {
        let server = echo().bind("localhost:0").unwrap();
        for address in server.local_addresses() {
            assert!(address.ip().unwrap().is_loopback());
            is_served(address);
        }
        // Dialling tries all addresses of the name: only one of them has a server.
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let server = echo().bind(listen).unwrap();
            let port = tcp_address(&server).port();
            let name = format!("localhost:{port}");
            match Client::connect(&name) {
                Ok(client) => assert_eq!(client.call(1, b"").unwrap().body(), b""),
                // Some systems know localhost by one address only.
                Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectFailed),
            }
        }
    });
}

#[test]
fn one_server_listens_on_several_addresses() {
    within(Duration::from_secs(20), || {
        let server = echo()
            .also_on("[::1]:0")
            .also_on("127.0.0.2:0")
            .bind("127.0.0.1:0")
            .unwrap();
        let addresses = server.local_addresses().to_vec();
        assert_eq!(addresses.len(), 3);
        assert_eq!(server.local_address(), &addresses[0]);
        let clients: Vec<Client> = addresses.iter().map(is_served).collect();
        assert_eq!(server.hub().len(), 3);
        let report = server.shutdown(LIMIT).unwrap();
        assert_eq!((report.sessions, report.clean), (3, 3));
        for (client, address) in clients.iter().zip(&addresses) {
            assert!(client.is_closed());
            let error = Client::connect(address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectFailed);
        }
    });
}

#[test]
fn a_server_that_cannot_listen_on_one_of_its_addresses_listens_on_none() {
    within(Duration::from_secs(20), || {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let first = free.local_addr().unwrap();
        drop(free);
        let error = echo()
            .also_on(taken.local_addr().unwrap())
            .bind(first)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddressInUse, "{error:?}");
        let error = Client::connect(first).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectFailed);
    });
}

#[test]
fn nobody_listening_is_a_failed_connect_that_names_the_address() {
    within(Duration::from_secs(20), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let start = Instant::now();
        let error = Client::connect(address).unwrap_err();
        assert!(start.elapsed() < PROMPT);
        assert_eq!(error.kind(), ErrorKind::ConnectFailed, "{error:?}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        assert!(error.is_retryable());
    });
}

#[test]
fn text_that_is_no_address_is_invalid_input() {
    within(Duration::from_secs(20), || {
        for text in [
            "",
            "nonsense",
            "127.0.0.1",
            "127.0.0.1:",
            "::1:port",
            "host:99999",
            "tcp://127.0.0.1:2500",
            "ipc:///run/app.sock",
            "/run/app.sock",
        ] {
            let error = Client::connect(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:?}: {error:?}");
            assert!(error.to_string().contains(text), "{error}");
            let error = echo().bind(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:?}: {error:?}");
        }
    });
}

#[test]
fn a_name_that_does_not_exist_is_a_failed_connect() {
    within(Duration::from_secs(30), || {
        let error = Client::connect("no-such-host.invalid:1").unwrap_err();
        // A resolver that nobody answers runs into the limit.
        assert!(
            matches!(error.kind(), ErrorKind::ConnectFailed | ErrorKind::Timeout),
            "{error:?}"
        );
        assert!(
            error.to_string().contains("no-such-host.invalid:1"),
            "{error}"
        );
    });
}

#[test]
fn an_address_of_another_machine_cannot_be_listened_on() {
    within(Duration::from_secs(10), || {
        // A documentation address, which no interface has.
        let error = echo().bind("192.0.2.1:0").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error:?}");
        assert!(error.to_string().contains("192.0.2.1:0"), "{error}");
    });
}

/// Runs a child of the test in a network of its own, as root there; what it printed, unless
/// there can be no such network here.
pub(crate) fn in_a_network_of_its_own(test: &str, prepare: &str) -> Option<String> {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return None;
    }
    let unshare = |command: &mut Command| {
        let prepare = format!("ip link set lo up && {prepare} && exec \"$@\"");
        let mut unshare = Command::new("unshare");
        unshare.args(["-rnm", "sh", "-c", &prepare, "sh"]);
        unshare.arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            unshare.env(key, value.unwrap());
        }
        unshare.output()
    };
    let possible = unshare(&mut Command::new("true")).is_ok_and(|output| output.status.success());
    if !possible {
        println!("skipped: no network of its own can be had here");
        return None;
    }
    let output = unshare(&mut child(test, "alone")).unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The system has one port to give: dialling it meets itself.
#[test]
fn a_socket_that_meets_itself_counts_as_refused() {
    const TEST: &str = "addresses::a_socket_that_meets_itself_counts_as_refused";
    if child_role().is_some() {
        for port in 40_000..40_020 {
            let range = format!("{port} {port}");
            std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", range).unwrap();
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let error = Client::connect(address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectFailed, "{error:?}");
            assert!(format!("{error:?}").contains("met itself"), "{error:?}");
            // The port is free for its server.
            echo().bind(address).unwrap();
        }
        println!("met itself");
        return;
    }
    within(Duration::from_secs(20), || {
        const PREPARE: &str = "echo 40000 40000 > /proc/sys/net/ipv4/ip_local_port_range";
        if let Some(output) = in_a_network_of_its_own(TEST, PREPARE) {
            assert!(output.contains("met itself"), "{output}");
        }
    });
}

#[test]
fn running_out_of_source_ports_is_told_from_a_server_that_is_not_there() {
    const TEST: &str =
        "addresses::running_out_of_source_ports_is_told_from_a_server_that_is_not_there";
    if child_role().is_some() {
        let server = echo().bind("127.0.0.1:30000").unwrap();
        let address = tcp_address(&server);
        let mut clients: Vec<Client> = (0..20).map(|_| is_served(address)).collect();
        for _ in 0..20 {
            let error = Client::connect(address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectFailed, "{error:?}");
            assert!(error.is_retryable());
            let source = std::error::Error::source(&error).unwrap();
            let source = source.downcast_ref::<std::io::Error>().unwrap();
            assert_eq!(source.kind(), std::io::ErrorKind::AddrNotAvailable);
        }
        for client in &clients {
            client.call(1, b"").unwrap();
        }
        // A port is free again where this side did not close first.
        let session = server_session(&server, clients[0].id());
        session.shutdown(LIMIT).unwrap();
        clients.remove(0).shutdown(LIMIT).unwrap();
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

/// The resolver asks a name server that never answers.
#[test]
fn the_connect_limit_covers_a_lookup_that_takes_long() {
    const TEST: &str = "addresses::the_connect_limit_covers_a_lookup_that_takes_long";
    if child_role().is_some() {
        let silent = std::net::UdpSocket::bind("127.0.0.1:53").unwrap();
        silent.set_read_timeout(Some(LIMIT)).unwrap();
        let mut timeouts = trunkline::Timeouts::default();
        timeouts.connect = millis(300);
        let start = Instant::now();
        let error = Client::builder()
            .timeouts(timeouts)
            .connect("slow.example:1")
            .unwrap_err();
        let took = start.elapsed();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
        assert!(error.to_string().contains("timeouts.connect"), "{error}");
        assert!(took >= millis(300) && took < PROMPT, "{took:?}");
        // It was asked.
        silent.recv(&mut [0; 512]).unwrap();
        println!("in time");
        return;
    }
    within(Duration::from_secs(20), || {
        let conf = std::env::temp_dir().join(format!("resolv-{}.conf", std::process::id()));
        std::fs::write(&conf, "nameserver 127.0.0.1\n").unwrap();
        let prepare = format!("mount --bind '{}' /etc/resolv.conf", conf.display());
        let output = in_a_network_of_its_own(TEST, &prepare);
        std::fs::remove_file(&conf).unwrap();
        if let Some(output) = output {
            assert!(output.contains("in time"), "{output}");
        }
    });
}

/// The standard library ignores SIGPIPE; a host program in another language does not.
#[test]
fn writing_to_a_peer_that_is_gone_raises_no_signal() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    const TEST: &str = "addresses::writing_to_a_peer_that_is_gone_raises_no_signal";
    if child_role().is_some() {
        #[allow(unsafe_code)]
        // SAFETY: the default action runs no code of this process.
        unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) }.unwrap();
        for round in 0..20 {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let accepting = thread::spawn(move || RawPeer::accept(&listener));
            let client = Client::connect(address).unwrap();
            let peer = accepting.join().unwrap();
            match round % 2 {
                0 => drop(peer),
                _ => peer.reset(),
            }
            for size in 0..100 {
                let _ = client.push(2, vec![0; size * 100]);
            }
            assert!(eventually(LIMIT, || client.is_closed()));
        }
        println!("no signal");
        return;
    }
    within(Duration::from_secs(20), || {
        let output = child(TEST, "write").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("no signal"));
    });
}

/// Header and body leave in one write, and so does a lone push or call.
#[test]
fn a_lone_message_is_one_write() {
    within(Duration::from_secs(20), || {
        let server = echo().bind("127.0.0.1:0").unwrap();
        let client = Client::connect(tcp_address(&server)).unwrap();
        let session = server_session(&server, client.id());
        client.call(1, b"first").unwrap();
        let (writes, answers) = (client.stats().writes, session.stats().writes);
        for size in [0, 1, 100, 1000, 10_000] {
            client.call(1, vec![1; size]).unwrap();
        }
        assert_eq!(client.stats().writes - writes, 5);
        assert_eq!(session.stats().writes - answers, 5);
        for number in 0..5 {
            let before = session.stats().received_messages;
            client.push(2, vec![2; 1000]).unwrap();
            assert!(eventually(LIMIT, || session.stats().received_messages > before));
            assert_eq!(client.stats().writes - writes, 5 + number + 1);
        }
    });
}

/// With Nagle's algorithm on, a second small message would wait until the first one is
/// acknowledged, which this peer delays by about 40 ms.
#[test]
fn small_messages_do_not_wait_for_acknowledgements() {
    within(Duration::from_secs(60), || {
        let server = echo().bind("127.0.0.1:0").unwrap();
        let mut peer = RawPeer::dial(tcp_address(&server));
        let session = server.hub().session(peer.session).unwrap();
        assert_two_at_once(&session, &mut peer, "accepted");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || RawPeer::accept(&listener));
        let client = Client::connect(address).unwrap();
        let mut peer = accepting.join().unwrap();
        assert_two_at_once(&client.session(), &mut peer, "dialled");
    });
}

#[track_caller]
fn assert_two_at_once(session: &Session, peer: &mut RawPeer, what: &str) {
    let mut fast = 0;
    for _ in 0..50 {
        rustix::net::sockopt::set_tcp_quickack(&peer.stream, false).unwrap();
        session.push(2, b"first").unwrap();
        peer.next().unwrap();
        let start = Instant::now();
        session.push(2, b"second").unwrap();
        peer.next().unwrap();
        fast += u32::from(start.elapsed() < millis(20));
    }
    assert!(fast > 25, "{what}: {fast} of 50 were fast");
}

/// What is alone is not kept back for company.
#[test]
fn a_lone_push_leaves_at_once() {
    within(Duration::from_secs(30), || {
        let server = echo().bind("127.0.0.1:0").unwrap();
        let mut peer = RawPeer::dial(tcp_address(&server));
        let session = server_session(&server, peer.session);
        let mut times: Vec<Duration> = (0..40)
            .map(|_| {
                thread::sleep(millis(20));
                let start = Instant::now();
                session.push(2, b"alone").unwrap();
                peer.next().unwrap();
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        // What is kept back always is; what the machine holds up is so now and then.
        assert!(times[10] < millis(2), "{times:?}");
    });
}
