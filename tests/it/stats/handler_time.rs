//! How long handlers take, from the samples of live sessions.

use std::thread;
use std::time::Instant;

use trunkline::{Client, Kind, Server};

use crate::support::{LIMIT, RawPeer, eventually, frame, millis, server_session, within};

const FAST: u32 = 1;
const SLOW: u32 = 2;
const NOBODYS: u32 = 3;

fn server() -> Server {
    Server::builder()
        .on_push(FAST, |_, _| ())
        .on_call(FAST, |_, _| ())
        .on_call(SLOW, |_, _| thread::sleep(millis(100)))
        .bind("127.0.0.1:0")
        .unwrap()
}

#[test]
fn a_slow_handler_shows_and_a_fast_one_does_not() {
    within(LIMIT, || {
        let server = server();
        let client = Client::connect(server.local_address()).unwrap();
        let session = server_session(&server, client.id());
        assert_eq!(session.stats().handler_time(), None);
        let begun = Instant::now();
        for _ in 0..20 {
            client.call(FAST, b"").unwrap();
        }
        let elapsed = begun.elapsed();
        let fast = session.stats().handler_time().unwrap();
        assert_eq!(fast.samples, 20, "each of them came alone");
        assert!(fast.total <= elapsed && fast.maximum <= fast.total);
        assert!(fast.p99 <= fast.maximum && fast.mean <= fast.maximum);
        client.call(SLOW, b"").unwrap();
        let slow = session.stats().handler_time().unwrap();
        assert_eq!(slow.samples, 21);
        assert!(slow.maximum >= millis(100) && slow.p99 >= millis(93));
        assert!(slow.total >= fast.total + millis(100));
        assert!(slow.mean >= millis(4) && slow.mean < slow.maximum);
        assert!(session.stats().to_string().contains("of 21 samples"));
        assert_eq!(client.stats().handler_time(), None, "it handled nothing");
    });
}

#[test]
fn what_nothing_handles_is_not_timed() {
    within(LIMIT, || {
        let server = server();
        let client = Client::connect(server.local_address()).unwrap();
        client.push(NOBODYS, b"").unwrap();
        client.call(NOBODYS, b"").unwrap_err();
        assert_eq!(server.stats().handler_time(), None);
    });
}

#[test]
fn of_messages_that_come_in_a_run_few_handlers_are_timed() {
    within(LIMIT, || {
        const MESSAGES: u64 = 6_400;
        let server = server();
        let mut peer = RawPeer::dial(server.local_address());
        let run = frame(Kind::Push, FAST, 0, b"").repeat(MESSAGES as usize);
        peer.send(&run);
        let all_came = || server.stats().received_messages == MESSAGES;
        assert!(eventually(LIMIT, all_came));
        let stats = server_session(&server, peer.session).stats();
        let samples = stats.handler_time().unwrap().samples;
        assert!(samples <= stats.reads + MESSAGES / 64, "{stats}");
        assert!(samples >= MESSAGES / 64 / 2, "{stats}");
    });
}
