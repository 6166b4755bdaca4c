//! Listeners that a process gets from the one that started it.

use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use listenfd::ListenFd;
use socket2::Socket;
use trunkline::Client;

use super::echo;
use crate::support::{
    LIMIT, STARTS_A_PROCESS, child, child_role, eventually, left_out_under_emulation,
    server_session, within,
};

const TEST: &str = "own_sockets::inherited::a_listener_is_handed_to_one_child_after_the_other";

/// What the children do.
fn serve_until_told(listener: impl Into<OwnedFd>) {
    let (sender, stop) = mpsc::channel();
    let server = echo()
        .on_call("/pid", |_, _| std::process::id().to_string())
        .on_push("/stop", move |_, _| sender.send(()).unwrap())
        .from_listener(listener)
        .unwrap();
    stop.recv_timeout(2 * LIMIT).unwrap();
    server.shutdown(LIMIT).unwrap();
}

fn as_standard_input(listener: &TcpListener) -> Child {
    let listener = OwnedFd::from(listener.try_clone().unwrap());
    child(TEST, "stdin").stdin(listener).spawn().unwrap()
}

/// As systemd does it: descriptor 3, and two variables that say so.
fn as_descriptor_three(listener: &TcpListener) -> Child {
    let listener = OwnedFd::from(listener.try_clone().unwrap());
    let command = child(TEST, "systemd");
    let script = r#"export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@" 3<&0 0</dev/null"#;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .arg(command.get_program())
        .args(command.get_args())
        .envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .stdin(Stdio::from(listener));
    shell.spawn().unwrap()
}

#[test]
fn a_listener_is_handed_to_one_child_after_the_other() {
    match child_role().as_deref() {
        Some("stdin") => {
            let listener = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
            return serve_until_told(listener);
        }
        Some(_) => {
            let mut inherited = ListenFd::from_env();
            let listener = inherited.take_tcp_listener(0).unwrap().unwrap();
            return serve_until_told(listener);
        }
        None => {}
    }
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    within(Duration::from_secs(60), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        for round in 0..2 {
            for start in [as_standard_input, as_descriptor_three] {
                let mut server = start(&listener);
                // The listener has outlived the child before this one.
                let client = Client::connect(address).unwrap();
                let pid: String = client.call_as("/pid", b"").unwrap();
                assert_eq!(pid, server.id().to_string(), "round {round}");
                client.push("/stop", b"").unwrap();
                assert!(server.wait().unwrap().success());
            }
        }
    });
}

#[test]
fn what_was_brought_is_not_inherited() {
    within(LIMIT, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        let inheritable =
            [listener.into(), here.into(), there.into()].map(|descriptor: OwnedFd| {
                let socket = Socket::from(descriptor);
                socket.set_cloexec(false).unwrap();
                socket
            });
        let [listener, here, there] = inheritable;
        let server = echo().from_listener(listener).unwrap();
        server.serve(here).unwrap();
        let client = Client::from_stream(there).unwrap();
        for open in [
            server.listeners()[0].clone(),
            client.socket().unwrap(),
            server_session(&server, client.id()).socket().unwrap(),
        ] {
            let flags = rustix::io::fcntl_getfd(&open).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC), "{open:?}");
        }
        drop((server, client));
        assert!(eventually(LIMIT, || TcpListener::bind(address).is_ok()));
    });
}
