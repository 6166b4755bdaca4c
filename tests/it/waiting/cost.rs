//! What waiting costs in processor time. In processes of their own.

use std::thread;
use std::time::{Duration, Instant};

use trunkline::{Client, Server, Wait};

use super::{ECHO, WAYS, pair};
use crate::support::{LIMIT, millis, processor_time};
use crate::threads::alone;

const SLOW: u32 = 5;
const TAKES: Duration = Duration::from_millis(5);

/// A client of a server that takes its time, and the server.
fn slow(wait: Wait) -> (Server, Client) {
    let server = Server::builder()
        .wait(wait)
        .on_call(SLOW, |_, _| thread::sleep(TAKES))
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Client::builder().wait(wait);
    let client = client.connect(server.local_address()).unwrap();
    (server, client)
}

#[test]
fn a_server_that_answers_after_5_ms_costs_hardly_more_than_if_nobody_polled() {
    const TEST: &str =
        "waiting::cost::a_server_that_answers_after_5_ms_costs_hardly_more_than_if_nobody_polled";
    alone(TEST, 6 * LIMIT, || {
        let pairs = [Wait::Park, Wait::Adaptive].map(slow);
        let mut used = [Duration::ZERO; 2];
        let mut took = [Duration::ZERO; 2];
        // In turns, as others use the machine too; the calls for which there is patience count.
        for way in [0, 1].repeat(5) {
            let (_, client) = &pairs[way];
            let (before, begun) = (processor_time(), Instant::now());
            for _ in 0..80 {
                client.call(SLOW, "").unwrap();
            }
            used[way] += processor_time() - before;
            took[way] += begun.elapsed();
        }
        let [parked, adaptive] = [0, 1].map(|way| used[way].div_duration_f64(took[way]));
        println!("{parked:.4} of a core if nobody polls, else {adaptive:.4}");
        assert!(adaptive < parked + 0.05, "{adaptive} instead of {parked}");
    });
}

#[test]
fn an_idle_session_uses_no_processor_time_in_any_way_of_waiting() {
    const TEST: &str =
        "waiting::cost::an_idle_session_uses_no_processor_time_in_any_way_of_waiting";
    alone(TEST, 6 * LIMIT, || {
        let pairs = WAYS.map(pair);
        for (_, client, session) in &pairs {
            client.call(ECHO, "to").unwrap();
            session.call(ECHO, "and fro").unwrap();
        }
        thread::sleep(millis(400));
        let before = processor_time();
        thread::sleep(millis(1_000));
        let used = processor_time() - before;
        assert!(used < millis(50), "{used:?} in a second");
    });
}

#[test]
fn at_most_half_of_the_cores_are_used_by_readers_that_poll() {
    const TEST: &str = "waiting::cost::at_most_half_of_the_cores_are_used_by_readers_that_poll";
    alone(TEST, 6 * LIMIT, || {
        let cores = thread::available_parallelism().unwrap().get() as u32;
        // Four readers for each core.
        let pairs: Vec<_> = (0..2 * cores).map(|_| pair(Wait::Spin)).collect();
        thread::sleep(millis(400));
        let before = processor_time();
        for (_, client, _) in &pairs {
            client.call(ECHO, "").unwrap();
        }
        thread::sleep(millis(400));
        let used = processor_time() - before;
        // Each that polls does so for 100 ms; without a cap all cores would be busy so long.
        let most = millis(100) * (cores / 2).max(1);
        println!("{used:?} of at most {most:?}");
        assert!(used < most * 3, "{used:?}, {most:?}");
    });
}
