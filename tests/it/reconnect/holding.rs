//! Pushes that are made while there is no session: kept in order, within bounds, or reported.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, ClientBuilder, ClientState, ErrorKind, Hold, Limits, Server};

use super::{ANY, Changes, echo, slow};
use crate::support::{LIMIT, eventually, millis, server_session, tcp_address, within};

type Seen = Arc<Mutex<Vec<(u8, u32)>>>;

/// Notes who pushed what.
fn noting(seen: &Seen) -> Server {
    let seen = seen.clone();
    echo()
        .on_push(7, move |_, body| {
            let (author, number) = body.split_first().unwrap();
            let number = u32::from_le_bytes(number.try_into().unwrap());
            seen.lock().unwrap().push((*author, number));
        })
        .bind(ANY)
        .unwrap()
}

fn body(author: u8, number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_le_bytes();
    [author, a, b, c, d]
}

/// A client whose session was lost, and that waits until it is told.
fn lost(server: &Server, hold: Hold) -> (Client, Changes) {
    lost_of(Client::builder(), server, hold)
}

fn lost_of(builder: ClientBuilder, server: &Server, hold: Hold) -> (Client, Changes) {
    let (builder, changes) = Changes::of(builder.reconnect(slow()).hold(hold));
    let client = builder.connect(tcp_address(server)).unwrap();
    server_session(server, client.id()).abort();
    changes.until(ClientState::Waiting);
    (client, changes)
}

#[test]
fn what_is_held_goes_out_first_and_in_the_order_of_each_thread() {
    within(Duration::from_secs(60), || {
        let seen = Seen::default();
        let server = noting(&seen);
        let mut hold = Hold::default();
        hold.messages = u32::MAX;
        hold.bytes = u32::MAX;
        // The queue is short, so that it takes a while to send what is held.
        let mut limits = Limits::default();
        limits.queued_messages = 16;
        let (client, _changes) = lost_of(Client::builder().limits(limits), &server, hold);
        thread::scope(|scope| {
            for author in 0..4 {
                let client = &client;
                scope.spawn(move || {
                    for number in 0..5000 {
                        client.push(7, body(author, number)).unwrap();
                        if number == 2000 && author == 0 {
                            // From here on they push while what is held goes out.
                            client.reconnect_now().unwrap();
                        }
                    }
                });
            }
        });
        client.wait_connected(LIMIT).unwrap();
        client.shutdown(LIMIT).unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 20_000);
        for author in 0..4 {
            let numbers = seen.iter().filter(|(who, _)| *who == author);
            assert!(numbers.map(|(_, number)| *number).eq(0..5000), "{author}");
        }
    });
}

#[test]
fn the_bounds_of_what_is_held_are_kept_and_named() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let mut few = Hold::default();
        few.messages = 3;
        let (client, _changes) = lost(&server, few);
        for _ in 0..3 {
            client.push(2, "x").unwrap();
        }
        assert_eq!(client.held().messages, 3);
        let unsent = client.try_push(2, "more").unwrap_err();
        assert!(unsent.is_full());
        assert!(unsent.error().to_string().contains("hold.messages 3"));
        assert_eq!(unsent.into_body(), "more");

        let mut small = Hold::default();
        small.bytes = 1000;
        let (client, _changes) = lost(&server, small);
        client.push(2, [0; 900]).unwrap();
        assert!(client.held().bytes >= 900);
        let error = client.push(2, [0; 100]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QueueFull);
        assert!(error.to_string().contains("hold.bytes is 1000"));
        // What no session would take is refused at once.
        let error = client.push("", "").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        client.reconnect_now().unwrap();
        client.wait_connected(LIMIT).unwrap();
        assert_eq!(client.held().messages, 0);
        client.push(2, [0; 2000]).unwrap();
    });
}

#[test]
fn what_is_held_too_long_never_arrives_and_is_reported() {
    within(Duration::from_secs(30), || {
        let seen = Seen::default();
        let server = noting(&seen);
        let (sender, errors) = mpsc::channel();
        let builder = Client::builder().on_error(move |error| {
            let _ = sender.send(error.to_string());
        });
        let mut hold = Hold::default();
        hold.age = millis(50);
        let (client, changes) = lost_of(builder, &server, hold);
        client.push(7, body(0, 1)).unwrap();
        client.push(7, body(0, 2)).unwrap();
        let bytes = client.held().bytes;
        // The thread that waits an hour for its next attempt drops them all the same.
        assert!(eventually(LIMIT, || client.held().messages == 0));
        assert_eq!(client.totals().dropped.messages, 2);
        assert_eq!(client.totals().dropped.bytes, bytes);
        assert!(errors.iter().any(|error| error.starts_with("2 messages")));
        client.reconnect_now().unwrap();
        client.wait_connected(LIMIT).unwrap();
        client.push(7, body(0, 3)).unwrap();
        client.shutdown(LIMIT).unwrap();
        assert_eq!(*seen.lock().unwrap(), [(0, 3)]);
        let dropped: u64 = changes.0.iter().map(|change| change.dropped.messages).sum();
        assert_eq!(dropped, 2);
    });
}

#[test]
fn what_is_left_when_the_client_ends_is_dropped_and_reported() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let (client, changes) = lost(&server, Hold::default());
        client.push(2, "").unwrap();
        client.push(2, "").unwrap();
        client.close();
        let stopped = changes.next(ClientState::Stopped);
        assert_eq!(stopped.dropped.messages, 2);
        assert_eq!(client.totals().dropped.messages, 2);
        assert_eq!(client.held().messages, 0);
        assert_eq!(client.push(2, "").unwrap_err().kind(), ErrorKind::Closed);

        let (client, changes) = lost(&server, Hold::default());
        client.push(2, "").unwrap();
        drop(client);
        let stopped = changes.next(ClientState::Stopped);
        assert_eq!(stopped.dropped.messages, 1);
    });
}

#[test]
fn what_the_next_server_does_not_take_is_dropped_and_the_rest_goes_out() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let address = tcp_address(&server);
        let (client, changes) = lost(&server, Hold::default());
        server.shutdown(LIMIT).unwrap();
        client.push(2, [0; 10_000]).unwrap();
        let request = client.request(2).meta("key", &"v".repeat(5000));
        request.push("").unwrap();
        client.push(7, body(1, 1)).unwrap();
        let mut limits = Limits::default();
        limits.body_bytes = 1000;
        limits.metadata_bytes = 1000;
        let (sender, came) = mpsc::channel();
        let sender = Mutex::new(sender);
        let small = move || {
            let sender = sender.lock().unwrap().clone();
            echo()
                .limits(limits.clone())
                .on_push(7, move |_, body| sender.send(body.to_vec()).unwrap())
        };
        let _server = super::restart(small, address);
        client.reconnect_now().unwrap();
        assert_eq!(came.recv_timeout(LIMIT).unwrap(), body(1, 1));
        assert_eq!(changes.until(ClientState::Connected).dropped.messages, 2);
        assert_eq!(client.totals().sessions, 2);
    });
}

#[test]
fn calls_wait_for_the_session_within_their_time_limit() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(ANY).unwrap();
        let (client, _changes) = lost(&server, Hold::default());
        let start = Instant::now();
        let error = client
            .request(1)
            .timeout(millis(50))
            .call("late")
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(!error.maybe_executed());
        assert!(start.elapsed() >= millis(50));
        let caller = client.clone();
        let waits = thread::spawn(move || caller.call(1, "in time").map(|reply| reply.into_body()));
        client.push(2, "").unwrap();
        client.reconnect_now().unwrap();
        assert_eq!(waits.join().unwrap().unwrap(), b"in time");
        assert_eq!(client.held().messages, 0);
        // A close ends the wait.
        let (client, _changes) = lost(&server, Hold::default());
        let caller = client.clone();
        let waits = thread::spawn(move || caller.call(1, ""));
        client.close();
        assert!(waits.join().unwrap().unwrap_err().is_closed());
    });
}

#[test]
fn more_than_the_send_queue_holds_goes_out_before_the_client_is_connected() {
    within(Duration::from_secs(60), || {
        let seen = Seen::default();
        let server = noting(&seen);
        let mut limits = Limits::default();
        limits.queued_messages = 16;
        let (client, _changes) =
            lost_of(Client::builder().limits(limits), &server, Hold::default());
        for number in 0..4000 {
            client.push(7, body(0, number)).unwrap();
        }
        client.reconnect_now().unwrap();
        client.wait_connected(LIMIT).unwrap();
        client.shutdown(LIMIT).unwrap();
        assert!(
            seen.lock()
                .unwrap()
                .iter()
                .map(|(_, number)| *number)
                .eq(0..4000)
        );
    });
}
