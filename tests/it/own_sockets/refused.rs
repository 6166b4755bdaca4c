//! Descriptors that are no use, and streams that are not let in.

use std::fs::File;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

use socket2::{Domain, Socket, Type};
use trunkline::{Client, Error, ErrorKind, Limits, Server, Status};

use super::{answers, echo, tcp_pair};
use crate::support::folder::Folder;
use crate::support::{LIMIT, eventually, within};

/// What is neither a connected stream nor a listener.
fn useless(folder: &Folder) -> Vec<(&'static str, OwnedFd)> {
    let connected = UdpSocket::bind("127.0.0.1:0").unwrap();
    connected.connect(connected.local_addr().unwrap()).unwrap();
    let [tcp, unix] =
        [Domain::IPV4, Domain::UNIX].map(|domain| Socket::new(domain, Type::STREAM, None).unwrap());
    let (packets, _) = Socket::pair(Domain::UNIX, Type::SEQPACKET, None).unwrap();
    vec![
        ("UDP", connected.into()),
        ("datagrams", UnixDatagram::pair().unwrap().0.into()),
        ("packets", packets.into()),
        ("unconnected TCP", tcp.into()),
        ("unconnected Unix", unix.into()),
        ("a file", File::create(folder.file("file")).unwrap().into()),
        ("a folder", File::open(folder.path()).unwrap().into()),
    ]
}

#[track_caller]
fn is_invalid(what: &str, result: Result<(), Error>) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{what}: {error:#}");
    assert!(
        error.to_string().contains("the descriptor is not a"),
        "{error}"
    );
}

#[test]
fn what_is_no_stream_or_listener_is_invalid_input() {
    within(LIMIT, || {
        let folder = Folder::new();
        let server = echo().start().unwrap();
        let mut no_streams = useless(&folder);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        no_streams.push(("a TCP listener", listener.into()));
        let listener = UnixListener::bind(folder.file("app")).unwrap();
        no_streams.push(("a Unix listener", listener.into()));
        for (what, descriptor) in no_streams {
            is_invalid(what, server.serve(descriptor.try_clone().unwrap()));
            is_invalid(what, Client::from_stream(descriptor).map(drop));
        }
        let mut no_listeners = useless(&folder);
        let (here, _there) = UnixStream::pair().unwrap();
        no_listeners.push(("a Unix stream", here.into()));
        let [accepted, _dialled] = tcp_pair();
        no_listeners.push(("a TCP stream", accepted.into()));
        for (what, descriptor) in no_listeners {
            let copy = descriptor.try_clone().unwrap();
            is_invalid(what, Server::from_listener(copy).map(drop));
            is_invalid(what, echo().also_from(descriptor).start().map(drop));
        }
    });
}

/// What both ends are told when a stream is not let in.
fn refused(server: &Server) -> [Error; 2] {
    let (here, there) = UnixStream::pair().unwrap();
    [
        server.serve(here).unwrap_err(),
        Client::from_stream(there).unwrap_err(),
    ]
}

#[test]
fn limits_count_for_streams_that_are_handed_in() {
    within(LIMIT, || {
        let mut limits = Limits::server();
        limits.sessions = 1;
        let server = echo().limits(limits).start().unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        server.serve(here).unwrap();
        let client = Client::from_stream(there).unwrap();
        answers(&client);
        for error in refused(&server) {
            assert_eq!(error.kind(), ErrorKind::Overloaded, "{error}");
            assert!(error.to_string().contains("limits.sessions = 1"), "{error}");
        }
        client.shutdown(LIMIT).unwrap();
        assert!(eventually(LIMIT, || {
            let (here, there) = UnixStream::pair().unwrap();
            server.serve(here).is_ok() && Client::from_stream(there).is_ok()
        }));
    });
}

#[test]
fn the_hook_is_asked_about_streams_that_are_handed_in() {
    within(LIMIT, || {
        let server = echo()
            .on_accept(|peer| match peer.process() {
                Some(_) => Err(Status::new(Status::FORBIDDEN, "no Unix sockets")),
                None => Ok(()),
            })
            .start()
            .unwrap();
        for error in refused(&server) {
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(error.to_string().contains("no Unix sockets"), "{error}");
        }
        let [accepted, dialled] = tcp_pair();
        server.serve(accepted).unwrap();
        answers(&Client::from_stream(dialled).unwrap());
    });
}

#[test]
fn nothing_is_served_after_the_end() {
    within(LIMIT, || {
        let server = echo().start().unwrap();
        server.shutdown(LIMIT).unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        let error = server.serve(here).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        Client::from_stream(there).unwrap_err();
    });
}
