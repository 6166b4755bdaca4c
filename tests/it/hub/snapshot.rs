//! How the sessions are at one moment.

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, Duplicate, Limits, Responder, Server, SessionSnapshot, SocketOptions};

use super::{NOTE, connected, server};
use crate::support::{LIMIT, RawPeer, eventually, millis, server_session, within};

#[test]
fn a_snapshot_tells_names_groups_and_calls_in_flight_in_both_directions() {
    within(Duration::from_secs(30), || {
        let (sender, held) = mpsc::channel::<Responder>();
        let sender = Mutex::new(sender);
        let server = Server::builder()
            .on_call(1, move |cx, _| {
                let (responder, deferred) = cx.defer();
                sender.lock().unwrap().send(responder).unwrap();
                deferred
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let (asks, asked) = mpsc::channel::<Responder>();
        let asks = Mutex::new(asks);
        let client = Client::builder()
            .on_call(1, move |cx, _| {
                let (responder, deferred) = cx.defer();
                asks.lock().unwrap().send(responder).unwrap();
                deferred
            })
            .connect(server.local_address())
            .unwrap();
        let hub = server.hub();
        let session = server_session(&server, client.id());
        let (_other, other) = connected(&server);
        hub.set_name(&session, "two\nlines", Duplicate::Refuse)
            .unwrap();
        hub.join(&session, "red").unwrap();
        let calls = [(); 3].map(|()| client.request(1).start(()).unwrap());
        let own = [(); 2].map(|()| session.request(1).start(()).unwrap());
        let responders = [&held, &held, &held, &asked, &asked]
            .map(|channel| channel.recv_timeout(LIMIT).unwrap());

        let snapshot = hub.snapshot();
        let [first, second] = &snapshot[..] else {
            panic!("{snapshot:?}");
        };
        assert_eq!((first.id, second.id), (session.id(), other.id()));
        assert_eq!(
            (first.name.as_deref(), &second.name),
            (Some("two\nlines"), &None)
        );
        assert_eq!(&first.peer, client.session().local_address());
        assert_eq!(
            (first.groups.clone(), second.groups.len()),
            (session.groups(), 0)
        );
        assert_eq!((first.pending_calls, first.incoming_calls), (2, 3));
        assert_eq!((second.pending_calls, second.incoming_calls), (0, 0));
        let at_client = client.session().snapshot();
        assert_eq!((at_client.pending_calls, at_client.incoming_calls), (3, 2));

        // A line for each, whatever a name holds.
        let text = first.to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        for part in [
            "session 1 ",
            r"two\nlines",
            "calls 2 out 3 in",
            r#"["red"]"#,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        for responder in responders {
            responder.reply(());
        }
        for pending in calls.into_iter().chain(own) {
            pending.wait().unwrap();
        }
        let is_done = |now: SessionSnapshot| (now.pending_calls, now.incoming_calls) == (0, 0);
        assert!(eventually(LIMIT, || is_done(session.snapshot())));
    });
}

#[test]
fn the_fill_of_a_queue_goes_with_its_bytes_and_its_messages() {
    within(Duration::from_secs(30), || {
        for (queued_bytes, queued_messages, size) in
            [(100_000, 1_000_000, 1_000), (1 << 30, 50, 20_000)]
        {
            let mut limits = Limits::default();
            limits.queued_bytes = queued_bytes;
            limits.queued_messages = queued_messages;
            let mut options = SocketOptions::default();
            options.send_buffer = Some(16 << 10);
            let server = Server::builder()
                .limits(limits)
                .socket_options(options)
                .bind("127.0.0.1:0")
                .unwrap();
            let mut deaf = RawPeer::dial(server.local_address());
            let session = server_session(&server, deaf.session);
            let is_empty = || {
                let now = session.snapshot();
                (now.queued_bytes, now.queue_fill) == (0, 0.0)
            };
            assert!(eventually(LIMIT, is_empty));
            let mut queued = 0;
            // Some may be written at first; once the system takes no more, they stay.
            let is_filled = || {
                while session.try_push(NOTE, vec![1; size]).is_ok() {
                    queued += 1;
                }
                let full = session.snapshot();
                assert!(full.queue_fill <= 1.0, "{full:?}");
                full.queue_fill > 0.5 && full.queued_bytes > 20_000
            };
            assert!(eventually(LIMIT, is_filled));
            for _ in 0..queued {
                deaf.next().unwrap();
            }
            assert!(eventually(LIMIT, is_empty));
        }
    });
}

#[test]
fn silence_grows_while_nothing_comes_and_a_busy_reader_hears_its_peer() {
    within(Duration::from_secs(30), || {
        let (begin, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let ended = Mutex::new(ended);
        let server = Server::builder()
            .on_push(NOTE, move |_, _| {
                begin.send(()).unwrap();
                ended.lock().unwrap().recv().unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let opened = Instant::now();
        let (client, session) = connected(&server);
        assert!(eventually(LIMIT, || session.snapshot().last_heard > millis(30)));
        let quiet = session.snapshot();
        assert!(
            quiet.age >= quiet.last_heard && quiet.age <= opened.elapsed(),
            "{quiet:?}"
        );
        client.push(NOTE, b"work").unwrap();
        begun.recv_timeout(LIMIT).unwrap();
        thread::sleep(millis(30));
        assert_eq!(session.snapshot().last_heard, Duration::ZERO);
        end.send(()).unwrap();
        // What it waits for now has not come since the handler is done.
        assert!(eventually(LIMIT, || session.snapshot().last_heard > Duration::ZERO));
        let now = session.snapshot();
        assert!(now.last_heard + millis(30) < now.age, "{now:?}");
    });
}

#[test]
fn a_hub_without_sessions_has_an_empty_snapshot() {
    within(Duration::from_secs(30), || {
        let server = server();
        assert_eq!(server.hub().snapshot(), []);
        let (client, session) = connected(&server);
        assert_eq!(server.hub().snapshot().len(), 1);
        client.shutdown(LIMIT).unwrap();
        assert!(eventually(LIMIT, || server.hub().snapshot().is_empty()));
        // A handle may be asked all the same.
        assert_eq!(session.snapshot().id, client.id());
    });
}
