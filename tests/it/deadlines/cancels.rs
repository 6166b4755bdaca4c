//! Callers that give up, and handlers that notice.

use super::*;
use crate::support::{frame, tcp_address};

const WATCH: u32 = 7;

/// A server whose handler of `WATCH` waits until it is cancelled, and tells whether it was. It
/// says first that it runs.
fn watching() -> (Server, mpsc::Receiver<Option<bool>>) {
    let (sender, seen) = mpsc::channel();
    let server = Server::builder()
        .on_call(WATCH, move |cx, _| {
            sender.send(None).unwrap();
            let cancelled = eventually(LIMIT, || cx.cancelled());
            sender.send(Some(cancelled)).unwrap();
        })
        .bind("127.0.0.1:0")
        .unwrap();
    (server, seen)
}

fn expect(seen: &mpsc::Receiver<Option<bool>>, what: Option<bool>) {
    assert_eq!(seen.recv_timeout(PROMPT).unwrap(), what);
}

#[test]
fn a_handler_sees_that_the_pending_call_was_dropped() {
    within(LIMIT, || {
        let (server, seen) = watching();
        let client = Client::connect(server.local_address()).unwrap();
        let pending = client.request(WATCH).start(()).unwrap();
        expect(&seen, None);
        drop(pending);
        expect(&seen, Some(true));
    });
}

#[test]
fn a_handler_sees_that_its_session_is_over() {
    within(LIMIT, || {
        let (server, seen) = watching();
        let mut peer = RawPeer::dial(tcp_address(&server));
        peer.call(WATCH, 1, b"");
        expect(&seen, None);
        peer.reset();
        expect(&seen, Some(true));
    });
}

/// Answers whether the call was cancelled, from a thread that waits for a word first.
fn answering_later() -> (Server, mpsc::Receiver<trunkline::Responder>) {
    let (sender, held) = mpsc::channel();
    let server = Server::builder()
        .on_call(WATCH, move |cx, _| {
            let (responder, deferred) = cx.defer();
            sender.send(responder).unwrap();
            deferred
        })
        .on_call(ON, |_, _| ())
        .bind("127.0.0.1:0")
        .unwrap();
    (server, held)
}

#[test]
fn a_responder_and_a_received_call_see_it_too() {
    within(LIMIT, || {
        let (server, held) = answering_later();
        let client = Client::connect(server.local_address()).unwrap();
        let pending = client.request(WATCH).start(()).unwrap();
        let responder = held.recv_timeout(LIMIT).unwrap();
        assert!(!responder.cancelled());
        assert!(responder.time_left().is_some());
        pending.cancel();
        assert!(eventually(PROMPT, || responder.cancelled()));

        let server = Server::builder().inbox(10).bind("127.0.0.1:0").unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let pending = client.request(WATCH).start(()).unwrap();
        let received = server.inbox().unwrap().recv().unwrap();
        assert!(!received.cancelled());
        pending.cancel();
        assert!(eventually(PROMPT, || received.cancelled()));
    });
}

#[test]
fn a_cancel_is_for_its_session_alone() {
    within(LIMIT, || {
        let (server, held) = answering_later();
        let mut peers = [(); 2].map(|()| RawPeer::dial(tcp_address(&server)));
        let responders = peers.each_mut().map(|peer| {
            peer.call(WATCH, 5, b"");
            held.recv_timeout(LIMIT).unwrap()
        });
        peers[0].send(&frame(Kind::Cancel, 0, 5, b""));
        assert!(eventually(LIMIT, || responders[0].cancelled()));
        assert!(!responders[1].cancelled());
    });
}

#[test]
fn a_stale_cancel_does_not_mark_the_next_call_of_the_number() {
    within(LIMIT, || {
        let (server, held) = answering_later();
        let mut peer = RawPeer::dial(tcp_address(&server));
        let mut call = |sequence| {
            peer.call(WATCH, sequence, b"");
            held.recv_timeout(LIMIT).unwrap()
        };
        // Another call stays open, so that the cancel is noted at all.
        let other = call(4);
        call(5).reply(());
        assert_eq!(peer.next().unwrap().sequence, 5);
        peer.send(&frame(Kind::Cancel, 0, 5, b""));
        peer.call(WATCH, 5, b"");
        let again = held.recv_timeout(LIMIT).unwrap();
        assert!(!again.cancelled() && !other.cancelled());
        // A cancel of the new one counts.
        peer.send(&frame(Kind::Cancel, 0, 5, b""));
        assert!(eventually(LIMIT, || again.cancelled()));
        again.reply(());
        other.reply(());
    });
}

#[test]
fn a_flood_of_cancels_for_calls_that_never_were_is_cut_off() {
    within(LIMIT, || {
        let (server, held) = answering_later();
        let mut peer = RawPeer::dial(tcp_address(&server));
        peer.call(WATCH, 1, b"");
        let _open = held.recv_timeout(LIMIT).unwrap();
        let flood: Vec<u8> = (2..20_000)
            .flat_map(|sequence| frame(Kind::Cancel, 0, sequence, b""))
            .collect();
        let _ = std::io::Write::write_all(&mut peer.stream, &flood);
        assert!(peer.is_closed_within(LIMIT));
    });
}

/// A server that hands `ON` over to the `WATCH` of another, and tells how that ended.
fn waiting_for(last: &Server) -> (Server, mpsc::Receiver<Error>) {
    let (sender, errors) = mpsc::channel();
    let onward = Client::connect(last.local_address()).unwrap();
    let server = Server::builder()
        .on_call(ON, move |_, _| -> Result<(), Status> {
            let error = onward.call(WATCH, ()).unwrap_err();
            sender.send(error.clone()).unwrap();
            Err(error.into())
        })
        .bind("127.0.0.1:0")
        .unwrap();
    (server, errors)
}

#[test]
fn a_cancel_goes_through_nested_calls() {
    within(LIMIT, || {
        let (last, seen) = watching();
        let (middle, errors) = waiting_for(&last);
        let client = Client::connect(middle.local_address()).unwrap();
        let pending = client.request(ON).start(()).unwrap();
        expect(&seen, None);
        pending.cancel();
        let error = errors.recv_timeout(PROMPT).unwrap();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(error.maybe_executed() && !error.is_retryable());
        assert_eq!(Status::from(error).code(), Status::CANCELLED);
        expect(&seen, Some(true));
        assert!(eventually(LIMIT, || client.stats().late_replies == 1));
        // All goes on as before.
        let pending = client.request(ON).start(()).unwrap();
        expect(&seen, None);
        drop(pending);
        expect(&seen, Some(true));
    });
}

#[test]
fn the_end_of_a_session_cancels_what_its_handlers_wait_for_elsewhere() {
    within(LIMIT, || {
        let (last, seen) = watching();
        let (middle, errors) = waiting_for(&last);
        let mut peer = RawPeer::dial(tcp_address(&middle));
        peer.call(ON, 1, b"");
        expect(&seen, None);
        peer.reset();
        let error = errors.recv_timeout(PROMPT).unwrap();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        expect(&seen, Some(true));
    });
}

#[test]
fn a_callback_call_for_a_deferred_answer_ends_with_it() {
    within(LIMIT, || {
        let (last, seen) = watching();
        let onward = Client::connect(last.local_address()).unwrap();
        let (sender, outcomes) = mpsc::channel();
        let middle = Server::builder()
            .on_call(ON, move |cx, _| {
                let (responder, deferred) = cx.defer();
                let sender = sender.clone();
                let call = onward.request(WATCH).call_then((), move |outcome| {
                    sender.send(outcome.map(drop).unwrap_err()).unwrap();
                    drop(responder);
                });
                call.unwrap();
                deferred
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(middle.local_address()).unwrap();
        let pending = client.request(ON).start(()).unwrap();
        expect(&seen, None);
        pending.cancel();
        let error = outcomes.recv_timeout(PROMPT).unwrap();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        expect(&seen, Some(true));
    });
}

/// Calls of push handlers, and after the answer, are made for nobody.
#[test]
fn what_is_called_for_nobody_ends_with_nobody() {
    within(LIMIT, || {
        let (last, held) = answering_later();
        let onward = Client::connect(last.local_address()).unwrap();
        let (sender, outcomes) = mpsc::channel();
        let (found, sessions) = mpsc::channel();
        let run = move |session: &Session| {
            found.send(session.clone()).unwrap();
            sender.send(onward.call(WATCH, ()).map(drop)).unwrap();
        };
        let (of_push, of_call) = (run.clone(), run);
        let middle = Server::builder()
            .on_push(ON, move |cx, _| of_push(cx.session()))
            .on_call(ON, move |cx, _| {
                let replied = cx.reply(());
                of_call(cx.session());
                replied
            })
            .bind("127.0.0.1:0")
            .unwrap();
        for kind in [Kind::Push, Kind::Call] {
            let mut peer = RawPeer::dial(tcp_address(&middle));
            peer.send(&frame(kind, ON, u32::from(kind == Kind::Call), b""));
            let responder = held.recv_timeout(LIMIT).unwrap();
            peer.reset();
            let session = sessions.recv_timeout(LIMIT).unwrap();
            assert!(eventually(LIMIT, || session.is_closed()));
            responder.reply(());
            outcomes.recv_timeout(LIMIT).unwrap().unwrap();
        }
    });
}
