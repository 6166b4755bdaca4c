//! Socket options, as the kernel has them.

mod addresses;

use std::sync::mpsc;
use std::time::Duration;

use socket2::SockRef;
use trunkline::{Client, ErrorKind, OpenSocket, Server, ServerBuilder, SocketOptions};

use crate::support::{LIMIT, server_session, within};

fn echo() -> ServerBuilder {
    Server::builder().on_call(1, |_, body| body.to_vec())
}

fn options(set: impl FnOnce(&mut SocketOptions)) -> SocketOptions {
    let mut options = SocketOptions::default();
    set(&mut options);
    options
}

/// The sockets of the server's and of the client's session.
fn both_ends(options: SocketOptions) -> [OpenSocket; 2] {
    let server = echo()
        .socket_options(options.clone())
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Client::builder()
        .socket_options(options)
        .connect(server.local_address())
        .unwrap();
    assert_eq!(client.call(1, b"here?").unwrap().body(), b"here?");
    let session = server_session(&server, client.id());
    [session.socket().unwrap(), client.socket().unwrap()]
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn the_kernel_has_the_options_of_both_ends() {
    within(LIMIT, || {
        let all = options(|options| {
            options.nodelay = false;
            options.keepalive = Some(10 * SECOND);
            options.keepalive_interval = Some(3 * SECOND);
            options.keepalive_probes = Some(4);
            options.user_timeout = Some(12 * SECOND);
            options.send_buffer = Some(50_000);
            options.receive_buffer = Some(70_000);
        });
        for socket in both_ends(all) {
            let kernel = SockRef::from(&socket);
            assert!(!kernel.tcp_nodelay().unwrap());
            assert!(kernel.keepalive().unwrap());
            assert_eq!(kernel.tcp_keepalive_time().unwrap(), 10 * SECOND);
            assert_eq!(kernel.tcp_keepalive_interval().unwrap(), 3 * SECOND);
            assert_eq!(kernel.tcp_keepalive_retries().unwrap(), 4);
            assert_eq!(kernel.tcp_user_timeout().unwrap(), Some(12 * SECOND));
            assert_eq!(kernel.send_buffer_size().unwrap(), 100_000);
            assert_eq!(kernel.recv_buffer_size().unwrap(), 140_000);
            assert_eq!(socket.send_buffer().unwrap(), 100_000);
            assert_eq!(socket.receive_buffer().unwrap(), 140_000);
        }
    });
}

#[test]
fn the_kernel_has_the_defaults_of_both_ends() {
    within(LIMIT, || {
        for socket in both_ends(SocketOptions::default()) {
            let kernel = SockRef::from(&socket);
            assert!(kernel.tcp_nodelay().unwrap());
            assert!(kernel.keepalive().unwrap());
            assert_eq!(kernel.tcp_keepalive_time().unwrap(), 60 * SECOND);
            assert_eq!(kernel.tcp_user_timeout().unwrap(), Some(30 * SECOND));
            assert!(!kernel.reuse_port().unwrap());
            assert_eq!(
                socket.send_buffer().unwrap(),
                kernel.send_buffer_size().unwrap()
            );
        }
        let off = options(|options| {
            options.keepalive = None;
            options.user_timeout = None;
        });
        for socket in both_ends(off) {
            let kernel = SockRef::from(&socket);
            assert!(!kernel.keepalive().unwrap());
            assert_eq!(kernel.tcp_user_timeout().unwrap(), None);
        }
    });
}

/// The window that a handshake offers is made of the buffer that the listener has by then.
#[test]
fn a_listener_has_the_buffers_before_anyone_connects() {
    within(LIMIT, || {
        let server = echo()
            .socket_options(options(|options| {
                options.send_buffer = Some(9_000);
                options.receive_buffer = Some(8_000);
            }))
            .also_on(format!("unix:@trunkline-{}-buffers", std::process::id()))
            .bind("127.0.0.1:0")
            .unwrap();
        for listener in server.listeners() {
            assert_eq!(listener.send_buffer().unwrap(), 18_000);
            assert_eq!(listener.receive_buffer().unwrap(), 16_000);
        }
    });
}

#[test]
fn options_of_one_listener_are_not_those_of_another() {
    within(LIMIT, || {
        let own = options(|options| {
            options.send_buffer = Some(30_000);
            options.nodelay = false;
            options.keepalive = None;
        });
        let server = echo()
            .socket_options(options(|options| options.send_buffer = Some(60_000)))
            .also_on_with("127.0.0.1:0", own)
            .also_on("127.0.0.1:0")
            .bind("127.0.0.1:0")
            .unwrap();
        let expected = [
            (120_000, true, true),
            (60_000, false, false),
            (120_000, true, true),
        ];
        let places = server.local_addresses().iter().zip(server.listeners());
        for ((address, listener), (bytes, nodelay, keepalive)) in places.zip(expected) {
            assert_eq!(listener.send_buffer().unwrap(), bytes, "{address}");
            let client = Client::connect(address).unwrap();
            let socket = server_session(&server, client.id()).socket().unwrap();
            let kernel = SockRef::from(&socket);
            assert_eq!(socket.send_buffer().unwrap(), bytes, "{address}");
            assert_eq!(kernel.tcp_nodelay().unwrap(), nodelay, "{address}");
            assert_eq!(kernel.keepalive().unwrap(), keepalive, "{address}");
        }
    });
}

#[test]
fn a_stream_that_is_brought_gets_the_options() {
    within(LIMIT, || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let dialled = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        for stream in [&accepted, &dialled] {
            SockRef::from(stream).set_keepalive(true).unwrap();
        }
        let wanted = options(|options| {
            options.keepalive = None;
            options.receive_buffer = Some(40_000);
        });
        let server = echo().socket_options(wanted.clone()).start().unwrap();
        server.serve(accepted).unwrap();
        let client = Client::builder()
            .socket_options(wanted)
            .from_stream(dialled)
            .unwrap();
        let session = server_session(&server, client.id());
        for socket in [session.socket().unwrap(), client.socket().unwrap()] {
            assert_eq!(socket.receive_buffer().unwrap(), 80_000);
            assert!(!SockRef::from(&socket).keepalive().unwrap());
            assert!(SockRef::from(&socket).tcp_nodelay().unwrap());
        }
    });
}

#[test]
fn large_messages_pass_through_the_smallest_read_buffer() {
    within(Duration::from_secs(20), || {
        let smallest = options(|options| {
            options.read_buffer_least = 64;
            options.read_buffer_most = 64;
        });
        let server = echo()
            .socket_options(smallest.clone())
            .bind("127.0.0.1:0")
            .unwrap();
        let (sender, pushes) = mpsc::channel();
        let client = Client::builder()
            .socket_options(smallest)
            .on_push(2, move |_, body| sender.send(body.to_vec()).unwrap())
            .connect(server.local_address())
            .unwrap();
        let large: Vec<u8> = (0..1u32 << 20).map(|number| number as u8).collect();
        for size in [0, 1, 47, 48, 49, 1000, large.len()] {
            assert_eq!(
                client.call(1, &large[..size]).unwrap().body(),
                &large[..size]
            );
        }
        let session = server_session(&server, client.id());
        for size in [large.len(), 3, 100] {
            session.push(2, &large[..size]).unwrap();
            assert_eq!(pushes.recv_timeout(LIMIT).unwrap(), &large[..size]);
        }
    });
}

/// Every option that can be wrong, with a value that no system takes.
fn wrong_options() -> Vec<(&'static str, SocketOptions)> {
    let mut wrong = Vec::new();
    let mut add = |name, set: fn(&mut SocketOptions)| wrong.push((name, options(set)));
    add("keepalive", |all| {
        all.keepalive = Some(Duration::ZERO);
    });
    add("keepalive", |all| all.keepalive = Some(Duration::MAX));
    add("keepalive_interval", |all| {
        all.keepalive_interval = Some(Duration::from_millis(999));
    });
    add("keepalive_interval", |all| {
        all.keepalive_interval = Some(Duration::MAX);
    });
    add("keepalive_probes", |all| all.keepalive_probes = Some(0));
    add("keepalive_probes", |all| all.keepalive_probes = Some(128));
    add("user_timeout", |all| {
        all.user_timeout = Some(Duration::ZERO);
    });
    add("user_timeout", |all| all.user_timeout = Some(Duration::MAX));
    add("send_buffer", |all| all.send_buffer = Some(0));
    add("send_buffer", |all| all.send_buffer = Some(usize::MAX));
    add("receive_buffer", |all| all.receive_buffer = Some(0));
    add("receive_buffer", |all| {
        all.receive_buffer = Some(usize::MAX);
    });
    add("read_buffer_least", |all| all.read_buffer_least = 63);
    add("read_buffer_least", |all| {
        all.read_buffer_least = all.read_buffer_most + 1;
    });
    add("read_buffer_most", |all| all.read_buffer_most = 10);
    add("read_buffer_most", |all| all.read_buffer_most = usize::MAX);
    add("backlog", |all| all.backlog = 0);
    add("backlog", |all| all.backlog = u32::MAX);
    add("unix_mode", |all| all.unix_mode = Some(0o1777));
    wrong
}

#[test]
fn options_that_no_system_takes_are_refused_by_name() {
    within(LIMIT, || {
        for (name, options) in wrong_options() {
            let with = |options: &SocketOptions| echo().socket_options(options.clone());
            let errors = [
                with(&options).bind("127.0.0.1:0").unwrap_err(),
                with(&options).start().unwrap_err(),
                echo()
                    .also_on_with("127.0.0.1:0", options.clone())
                    .start()
                    .unwrap_err(),
                Client::builder()
                    .socket_options(options)
                    .connect("127.0.0.1:1")
                    .unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
                let named = format!("socket.{name} =");
                assert!(error.to_string().contains(&named), "{error}");
            }
        }
    });
}
