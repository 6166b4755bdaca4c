//! Calls that wait for a worker longer than their callers wait for them, and those that a worker
//! handles when their callers give up.

use trunkline::message::MessageRef;
use trunkline::protocol::{Native, Protocol};

use super::*;
use crate::support::{RawPeer, millis, tcp_address};

/// A server with one worker, which a push keeps until the gate is opened; its calls are counted.
fn kept(gate: &Gate) -> (Server, mpsc::Receiver<()>) {
    let (sender, ran) = mpsc::channel();
    let gate = gate.clone();
    let server = Server::builder()
        .dispatch(pool(1, 100, true))
        .on_push(WAIT, move |_, _| gate.pass())
        .on_call(ASK, move |_, _| sender.send(()).unwrap())
        .bind("127.0.0.1:0")
        .unwrap();
    (server, ran)
}

#[test]
fn calls_whose_time_passes_in_the_queue_of_a_pool_never_run() {
    within(Duration::from_secs(30), || {
        let gate = Gate::default();
        let (server, ran) = kept(&gate);
        let client = Client::connect(server.local_address()).unwrap();
        client.push(WAIT, ()).unwrap();
        gate.wait_for(1);
        let mut calls: Vec<_> = (0..50)
            .map(|_| client.request(ASK).timeout(millis(100)).start(()).unwrap())
            .collect();
        for call in &mut calls {
            let outcome = call.wait_timeout(LIMIT).unwrap();
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Timeout);
        }
        gate.open();
        client.call(ASK, ()).unwrap();
        assert_eq!(ran.try_iter().count(), 1);
        assert_eq!(server.stats().calls_expired, 50);
    });
}

/// A caller that tells its limit and never gives up: the status that it gets.
#[test]
fn a_call_without_time_is_answered_that_its_deadline_has_passed() {
    within(Duration::from_secs(30), || {
        let gate = Gate::default();
        let (server, ran) = kept(&gate);
        let mut peer = RawPeer::dial(tcp_address(&server));
        peer.send(&crate::support::frame(trunkline::Kind::Push, WAIT, 0, b""));
        gate.wait_for(1);
        let route = trunkline::Route::Number(ASK);
        let bytes = trunkline::CodecId::BYTES;
        let mut call = MessageRef::new(trunkline::Kind::Call, route, 9, bytes, b"");
        call.time_left = Some(Duration::ZERO);
        let mut frame = Vec::new();
        Native.encode(&call, &mut frame).unwrap();
        peer.send(&frame);
        assert!(eventually(LIMIT, || server.stats().calls_received == 1));
        gate.open();
        let reply = peer.next().unwrap();
        let status = reply.status.unwrap();
        assert_eq!(
            (reply.sequence, status.code()),
            (9, trunkline::Status::DEADLINE_EXCEEDED)
        );
        assert_eq!(ran.try_iter().count(), 0);
    });
}

#[test]
fn a_worker_sees_that_its_caller_has_given_up_and_how_long_it_waits() {
    within(Duration::from_secs(30), || {
        let (sender, seen) = mpsc::channel();
        let (entering, entered) = mpsc::channel();
        let server = Server::builder()
            .dispatch(pool(1, 100, true))
            .on_call(ASK, move |cx, _| {
                let left = cx.time_left().unwrap();
                entering.send(left).unwrap();
                let gone = eventually(LIMIT, || cx.cancelled());
                // What would be called for the sake of that caller is not called any more.
                let nested = cx.session().call(NOTE, ()).unwrap_err().kind();
                sender.send((gone, nested)).unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let limit = Duration::from_secs(20);
        let pending = client.request(ASK).timeout(limit).start(()).unwrap();
        assert!(entered.recv_timeout(LIMIT).unwrap() <= limit);
        drop(pending);
        let (gone, nested) = seen.recv_timeout(LIMIT).unwrap();
        assert!(gone);
        assert_eq!(nested, ErrorKind::Cancelled);
    });
}
