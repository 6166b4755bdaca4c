//! What callers get when the connection ends under them.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use trunkline::protocol::native::handshake::PeerLimits;
use trunkline::{Client, ErrorKind, Limits, SocketOptions};

use super::ECHO;
use crate::support::{LIMIT, PROMPT, RawPeer, eventually, millis, within};

const PENDING: usize = 1_000;
const BLOCKED: usize = 100;

fn all_waiters_return(end: impl FnOnce(RawPeer) + Send + 'static) {
    within(Duration::from_secs(60), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, asked) = mpsc::channel();
        let peer = thread::spawn(move || {
            let mut peer = RawPeer::accept(&listener);
            for _ in 0..PENDING + BLOCKED {
                peer.next().unwrap();
            }
            tell.send(()).unwrap();
            peer
        });
        let client = Client::connect(address).unwrap();
        let mut pending = Vec::new();
        for _ in 0..PENDING - 100 {
            pending.push(client.request(ECHO).start(()).unwrap());
        }
        let (sender, called_back) = mpsc::channel();
        for _ in 0..100 {
            let sender = sender.clone();
            let call = client.request(ECHO).start(()).unwrap();
            call.on_reply(move |reply| sender.send(reply.unwrap_err()).unwrap());
        }
        let blocked: Vec<_> = (0..BLOCKED)
            .map(|_| {
                let client = client.clone();
                thread::spawn(move || {
                    let error = client.call(ECHO, ()).unwrap_err();
                    (error, Instant::now())
                })
            })
            .collect();
        asked.recv_timeout(LIMIT).unwrap();
        let peer = peer.join().unwrap();
        let died = Instant::now();
        end(peer);
        let mut errors: Vec<_> = pending
            .into_iter()
            .map(|call| (call.wait().unwrap_err(), Instant::now()))
            .collect();
        for _ in 0..100 {
            let error = called_back.recv_timeout(LIMIT).unwrap();
            errors.push((error, Instant::now()));
        }
        errors.extend(blocked.into_iter().map(|blocked| blocked.join().unwrap()));
        assert_eq!(errors.len(), PENDING + BLOCKED);
        for (error, returned) in errors {
            assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
            assert!(error.maybe_executed(), "{error:?}");
            let took = returned - died;
            assert!(took < PROMPT, "a caller returned after {took:?}");
        }
        let error = client.call(ECHO, ()).unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error:?}");
    });
}

#[test]
fn all_waiters_return_at_once_when_the_peer_resets() {
    all_waiters_return(RawPeer::reset);
}

#[test]
fn all_waiters_return_at_once_when_the_peer_closes() {
    all_waiters_return(drop);
}

#[test]
fn calls_that_were_never_written_were_certainly_not_executed() {
    const CALLS: usize = 400;
    const BODY: usize = 60_000;
    within(Duration::from_secs(60), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let announced = PeerLimits {
            call_bytes: 1 << 30,
            ..PeerLimits::announced(&Limits::default())
        };
        let peer = thread::spawn(move || RawPeer::accept_with(&listener, announced, &[]));
        let mut limits = Limits::default();
        limits.queued_bytes = 64 << 20;
        let mut options = SocketOptions::default();
        options.send_buffer = Some(64 << 10);
        let (sender, closed) = mpsc::channel();
        let client = Client::builder()
            .limits(limits)
            .socket_options(options)
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .connect(address)
            .unwrap();
        let peer = peer.join().unwrap();
        let calls: Vec<_> = (0..CALLS)
            .map(|_| client.request(ECHO).start(vec![1; BODY]).unwrap())
            .collect();
        // Written is what the kernel takes without anybody reading.
        let mut written = (u64::MAX, Instant::now());
        assert!(eventually(LIMIT, || {
            let now = client.stats().sent_bytes;
            if now != written.0 {
                written = (now, Instant::now());
            }
            written.1.elapsed() > millis(100)
        }));
        peer.reset();
        let executed: Vec<bool> = calls
            .into_iter()
            .map(|call| {
                let error = call.wait().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
                error.maybe_executed()
            })
            .collect();
        let perhaps = executed.iter().filter(|maybe| **maybe).count();
        assert!(perhaps > 0 && perhaps < CALLS, "{perhaps} of {CALLS}");
        // Those that went out went out in order.
        assert!(executed[..perhaps].iter().all(|maybe| *maybe));
        let report = closed.recv_timeout(LIMIT).unwrap();
        assert_eq!(report.unconfirmed.messages, perhaps as u64);
        assert_eq!(report.not_written.messages, (CALLS - perhaps) as u64);
    });
}
