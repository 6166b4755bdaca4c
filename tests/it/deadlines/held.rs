//! Calls that wait for their handler longer than their caller waits for them.

use super::*;

/// A server whose first handler waits for `ASK` of its peer, and whose other counts.
fn counting() -> (Server, mpsc::Receiver<()>) {
    let (sender, ran) = mpsc::channel();
    let server = Server::builder()
        .on_call(ON, |cx, _| -> Result<(), Status> {
            Ok(cx.session().call(LEFT, ()).map(drop)?)
        })
        .on_call(9, move |_, _| sender.send(()).unwrap())
        .bind("127.0.0.1:0")
        .unwrap();
    (server, ran)
}

/// A client whose handler of `LEFT` gives its responder away.
fn deferring(server: &Server) -> (Client, mpsc::Receiver<trunkline::Responder>) {
    let (sender, held) = mpsc::channel();
    let client = Client::builder()
        .on_call(LEFT, move |cx, _| {
            let (responder, deferred) = cx.defer();
            sender.send(responder).unwrap();
            deferred
        })
        .connect(server.local_address())
        .unwrap();
    (client, held)
}

#[test]
fn calls_whose_time_passes_in_the_backlog_never_run() {
    within(Duration::from_secs(30), || {
        let (server, ran) = counting();
        let (client, held) = deferring(&server);
        let waiting = client.request(ON).start(()).unwrap();
        let responder = held.recv_timeout(LIMIT).unwrap();
        let mut calls: Vec<_> = (0..20)
            .map(|_| client.request(9).timeout(millis(50)).start(()).unwrap())
            .collect();
        for call in &mut calls {
            let outcome = call.wait_timeout(LIMIT).unwrap();
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Timeout);
        }
        responder.reply(());
        waiting.wait().unwrap();
        client.call(9, ()).unwrap();
        assert_eq!(ran.try_iter().count(), 1);
        assert_eq!(server.stats().calls_expired, 20);
        assert!(eventually(LIMIT, || client.stats().late_replies == 20));
    });
}

#[test]
fn a_call_with_time_that_waits_in_the_backlog_runs() {
    within(Duration::from_secs(30), || {
        let (server, ran) = counting();
        let (client, held) = deferring(&server);
        let waiting = client.request(ON).start(()).unwrap();
        let responder = held.recv_timeout(LIMIT).unwrap();
        let call = client.request(9).start(()).unwrap();
        assert!(eventually(LIMIT, || server.stats().calls_received == 2));
        responder.reply(());
        call.wait().unwrap();
        waiting.wait().unwrap();
        assert_eq!(ran.try_iter().count(), 1);
        assert_eq!(server.stats().calls_expired, 0);
    });
}

/// Plays a caller that only tells its limit: the status that comes for its held calls.
#[test]
fn a_held_call_is_answered_with_what_became_of_it() {
    within(Duration::from_secs(30), || {
        let (server, ran) = counting();
        let mut peer = RawPeer::dial(crate::support::tcp_address(&server));
        peer.call(ON, 1, b"");
        let asked = peer.next().unwrap();
        assert_eq!(asked.kind, Kind::Call);
        // 2 is given up, 3 has no time at all, 4 has.
        peer.call(9, 2, b"");
        let mut late = MessageRef::new(Kind::Call, Route::Number(9), 3, CodecId::BYTES, b"");
        late.time_left = Some(Duration::ZERO);
        let mut bytes = Vec::new();
        Native.encode(&late, &mut bytes).unwrap();
        peer.send(&bytes);
        peer.call(9, 4, b"");
        peer.send(&crate::support::frame(Kind::Cancel, 0, 2, b""));
        peer.send(&crate::support::frame(Kind::Reply, 0, asked.sequence, b""));
        let mut codes: Vec<_> = (0..4)
            .map(|_| {
                let reply = peer.next().unwrap();
                assert_eq!(reply.route, OwnedRoute::Number(0));
                (
                    reply.sequence,
                    reply.status.map_or(0, |status| status.code()),
                )
            })
            .collect();
        codes.sort_unstable();
        let expected = [
            (1, Status::OK),
            (2, Status::CANCELLED),
            (3, Status::DEADLINE_EXCEEDED),
            (4, Status::OK),
        ];
        assert_eq!(codes, expected);
        assert_eq!(ran.try_iter().count(), 1);
        assert_eq!(server.stats().calls_expired, 2);
    });
}

#[test]
fn the_inbox_hands_out_no_call_whose_caller_has_left() {
    within(Duration::from_secs(30), || {
        let server = Server::builder().inbox(10).bind("127.0.0.1:0").unwrap();
        let inbox = server.inbox().unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let expired = client.request(1).timeout(millis(20)).call(()).unwrap_err();
        assert_eq!(expired.kind(), ErrorKind::Timeout);
        client.request(2).start(()).unwrap().cancel();
        assert!(eventually(LIMIT, || server.stats().cancels_received == 2));
        assert_eq!(inbox.len(), 2);
        assert!(inbox.try_recv().unwrap().is_none());
        assert_eq!(server.stats().calls_expired, 2);
        let waits = inbox.clone();
        let worker = thread::spawn(move || waits.recv().unwrap().reply("done").unwrap());
        assert_eq!(client.call(3, ()).unwrap().body(), b"done");
        worker.join().unwrap();
        assert!(eventually(LIMIT, || client.stats().late_replies == 2));
    });
}
