//! Dropping the last handle of a client: what the system takes is delivered, and nobody waits.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, CloseReason, Server};

use crate::support::{
    LIMIT, PROMPT, RawPeer, STARTS_A_PROCESS, child, child_role, left_out_under_emulation, millis,
    within,
};

const TEST: &str = "closing::leaving::what_was_pushed_before_the_end_of_main_is_delivered";

#[test]
fn what_was_pushed_before_the_end_of_main_is_delivered() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    if let Some(role) = child_role() {
        let (how, address) = role.split_once(' ').unwrap();
        let client = Client::connect(address).unwrap();
        for number in 0..100u32 {
            let mut body = vec![0; 1000];
            body[..4].copy_from_slice(&number.to_le_bytes());
            client.push(1, body).unwrap();
        }
        if how == "close" {
            client.close();
        }
        // The end of main: the test binary has nothing else to do.
        return;
    }
    within(Duration::from_secs(60), || {
        let (sender, ends) = mpsc::channel();
        let (numbers, received) = mpsc::channel();
        let server = Server::builder()
            .on_push(1, move |_, body| {
                let number = u32::from_le_bytes(body[..4].try_into().unwrap());
                numbers.send(number).unwrap();
            })
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        for round in 0..50 {
            let how = if round % 2 == 0 { "drop" } else { "close" };
            let role = format!("{how} {}", server.local_address());
            let output = child(TEST, &role).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let report = ends.recv_timeout(LIMIT).unwrap();
            let seen: Vec<u32> = received.try_iter().collect();
            assert!(
                seen.iter().copied().eq(0..100),
                "round {round} ({how}): {} came; {report}",
                seen.len()
            );
        }
    });
}

#[test]
fn dropping_the_last_handle_says_goodbye() {
    within(Duration::from_secs(20), || {
        let (sender, ends) = mpsc::channel();
        let server = Server::builder()
            .on_push(1, |_, _| ())
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        for _ in 0..50 {
            let client = Client::connect(server.local_address()).unwrap();
            let other = client.clone();
            client.push(1, b"one").unwrap();
            drop(client);
            other.push(1, b"two").unwrap();
            drop(other);
            let report = ends.recv_timeout(LIMIT).unwrap();
            assert_eq!(report.reason, CloseReason::Clean, "{report}");
            assert_eq!(report.received.messages, 2, "{report}");
        }
    });
}

#[test]
fn dropping_the_last_handle_never_waits_for_a_peer_that_does_not_read() {
    within(Duration::from_secs(20), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || RawPeer::accept(&listener));
        let (sender, ends) = mpsc::channel();
        let mut timeouts = trunkline::Timeouts::default();
        timeouts.close = PROMPT;
        let client = Client::builder()
            .timeouts(timeouts)
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .connect(address)
            .unwrap();
        let mut peer = accepting.join().unwrap();
        let body = vec![3; 10_000];
        let mut accepted = 0;
        while client.push_timeout(1, &body, millis(50)).is_ok() {
            accepted += 1;
        }
        let start = Instant::now();
        drop(client);
        let took = start.elapsed();
        assert!(took < PROMPT / 2, "dropping took {took:?}");
        let report = ends.recv_timeout(LIMIT).unwrap();
        let mut delivered = 0;
        while peer.next().is_some() {
            delivered += 1;
        }
        let lost = accepted - delivered;
        let (least, more) = (report.not_written.messages, report.unconfirmed.messages);
        assert!(least > 0 && report.confirmed.messages == 0, "{report}");
        assert_eq!(least + more, accepted, "{report}");
        assert!(least <= lost && lost <= least + more, "{report}: {lost}");
    });
}

/// Nobody asked for SO_LINGER: what the system took goes out after the end, and nobody waits.
#[test]
fn what_the_system_has_taken_is_delivered_even_after_an_abort() {
    within(Duration::from_secs(20), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || RawPeer::accept(&listener));
        let (sender, ends) = mpsc::channel();
        let client = Client::builder()
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .connect(address)
            .unwrap();
        let mut peer = accepting.join().unwrap();
        let body = vec![3; 10_000];
        while client.push_timeout(1, &body, millis(50)).is_ok() {}
        let start = Instant::now();
        client.abort();
        drop(client);
        let report = ends.recv_timeout(LIMIT).unwrap();
        let took = start.elapsed();
        assert!(took < PROMPT, "{took:?}");
        // Time for the socket to be closed too.
        thread::sleep(millis(50));
        let mut delivered = 0;
        while peer.next().is_some() {
            delivered += 1;
        }
        // The last one that was begun is cut.
        assert!(delivered > 50, "{delivered}; {report}");
        assert!(delivered + 10 > report.unconfirmed.messages, "{report}");
    });
}
