//! Who is at the other end of a Unix socket, and what may be made of that.

use std::os::unix::fs::MetadataExt;
use std::sync::mpsc;
use std::time::Duration;

use trunkline::{Address, Client, ErrorKind, Limits, Server, SocketOptions, Status};

use super::{abstract_name, echo, is_served};
use crate::support::folder::{Folder, unix};
use crate::support::{
    LIMIT, STARTS_A_PROCESS, child, child_role, eventually, left_out_under_emulation, within,
};

fn own_user() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

#[test]
fn the_user_and_process_of_a_peer_are_known_to_hook_and_handler() {
    if let Some(address) = child_role() {
        let client = Client::connect(address).unwrap();
        client.call("/who", b"").unwrap();
        return;
    }
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    within(Duration::from_secs(20), || {
        let folder = Folder::new();
        let (sender, seen) = mpsc::channel::<(&str, Address)>();
        let by_handler = sender.clone();
        let server = Server::builder()
            .on_accept(move |peer| {
                sender.send(("hook", peer.clone())).unwrap();
                Ok(())
            })
            .on_call("/who", move |cx, _| {
                let peer = cx.peer_address().clone();
                by_handler.send(("handler", peer)).unwrap();
            })
            .bind(unix(&folder.file("app")))
            .unwrap();
        let test = "unix::peers::the_user_and_process_of_a_peer_are_known_to_hook_and_handler";
        let mut peer = child(test, &server.local_address().to_string())
            .spawn()
            .unwrap();
        let pid = peer.id() as i32;
        for place in ["hook", "handler"] {
            let (shown, address) = seen.recv_timeout(LIMIT).unwrap();
            let process = address.process().unwrap();
            assert_eq!(shown, place);
            assert_eq!((process.pid, process.uid), (pid, own_user()));
            let printed = format!("unix: (uid {}, pid {pid})", own_user());
            assert_eq!(address.to_string(), printed);
        }
        assert!(peer.wait().unwrap().success());
        // The client knows its server in the same way.
        let client = Client::connect(server.local_address()).unwrap();
        let process = client.peer_address().process().unwrap();
        assert_eq!(process.pid as u32, std::process::id());
        assert_eq!(
            client.peer_address().path(),
            Some(folder.file("app").as_path())
        );
    });
}

#[test]
fn a_hook_may_refuse_a_user() {
    within(LIMIT, || {
        let unwelcome = own_user();
        let server = echo()
            .on_accept(move |peer| match peer.process() {
                Some(process) if process.uid == unwelcome => Err(Status::new(
                    Status::FORBIDDEN,
                    format!("user {unwelcome} is not welcome"),
                )),
                _ => Ok(()),
            })
            .also_on("127.0.0.1:0")
            .bind(abstract_name("refusing"))
            .unwrap();
        let [by_name, by_ip] = server.local_addresses() else {
            panic!("{server:?}");
        };
        let error = Client::connect(by_name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let status = error.status().unwrap();
        assert_eq!(status.code(), Status::FORBIDDEN);
        assert_eq!(status.text(), format!("user {unwelcome} is not welcome"));
        is_served(by_ip);
    });
}

#[test]
fn sessions_of_one_user_have_their_own_cap() {
    within(LIMIT, || {
        let mut limits = Limits::server();
        limits.sessions_per_address = 2;
        let server = echo()
            .limits(limits)
            .also_on("127.0.0.1:0")
            .bind(abstract_name("cap"))
            .unwrap();
        let [by_name, by_ip] = server.local_addresses() else {
            panic!("{server:?}");
        };
        let first = is_served(by_name);
        let _second = is_served(by_name);
        let error = Client::connect(by_name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overloaded, "{error}");
        let limit = format!(
            "limits.sessions_per_address = 2 are open from user {}",
            own_user()
        );
        assert!(error.to_string().contains(&limit), "{error}");
        // Who comes over TCP is counted apart.
        let _other = is_served(by_ip);
        first.shutdown(LIMIT).unwrap();
        assert!(eventually(LIMIT, || Client::connect(by_name).is_ok()));
    });
}

#[test]
fn one_server_serves_tcp_and_unix_sockets_at_once() {
    within(LIMIT, || {
        let folder = Folder::new();
        let mut options = SocketOptions::default();
        options.unix_mode = Some(0o600);
        let server = echo()
            .also_on("[::1]:0")
            .also_on_with(unix(&folder.file("app")), options)
            .also_on(abstract_name("at-once"))
            .bind("127.0.0.1:0")
            .unwrap();
        assert_eq!(server.local_addresses().len(), 4);
        assert_eq!(server.listeners().len(), 4);
        let mode = std::fs::metadata(folder.file("app")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let clients: Vec<_> = server.local_addresses().iter().map(is_served).collect();
        assert_eq!(server.hub().len(), 4);
        for (client, listener) in clients.iter().zip(server.listeners()) {
            let session = server.hub().session(client.id()).unwrap();
            assert_eq!(*session.local_address(), listener.local_address());
        }
        server.shutdown(LIMIT).unwrap();
        assert!(server.listeners().is_empty());
    });
}
