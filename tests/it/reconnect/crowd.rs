//! Many clients, and many times.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use trunkline::{Backoff, Client, Hold, ThreadRole};

use super::{ANY, echo, quick, restart};
use crate::support::{
    LIMIT, descriptor_count, eventually, server_session, tcp_address, thread_count, within,
};
use crate::threads::alone;

#[test]
fn two_hundred_sessions_after_each_other_leave_no_thread_and_no_descriptor() {
    const TEST: &str =
        "reconnect::crowd::two_hundred_sessions_after_each_other_leave_no_thread_and_no_descriptor";
    alone(TEST, Duration::from_secs(120), || {
        let readers: Arc<Mutex<usize>> = Arc::default();
        let started = readers.clone();
        let server = echo()
            .on_call(3, |cx, _| cx.session().call(4, "").map(drop).unwrap())
            .bind(ANY)
            .unwrap();
        let client = Client::builder()
            .reconnect(quick())
            .hold(Hold::default())
            // A handler that waits: a substitute reads meanwhile.
            .on_call(4, |cx, _| cx.session().call(1, "").map(drop).unwrap())
            .on_thread_start(move |thread| {
                if thread.role == ThreadRole::Reader && !thread.name.ends_with('+') {
                    *started.lock().unwrap() += 1;
                }
            })
            .connect(tcp_address(&server))
            .unwrap();
        let mut early = (0, 0);
        for round in 0..200 {
            let session = client.wait_connected(LIMIT).unwrap();
            client.call(3, "").unwrap();
            for _ in 0..100 {
                client.push(2, [0; 1000]).unwrap();
            }
            if round == 5 {
                early = (thread_count(), descriptor_count());
            }
            server_session(&server, session.id()).abort();
            assert!(eventually(LIMIT, || client.session() != session));
        }
        client.wait_connected(LIMIT).unwrap();
        client.call(3, "").unwrap();
        assert!(
            eventually(LIMIT, || (thread_count(), descriptor_count()) <= early),
            "{early:?}, then {:?}",
            (thread_count(), descriptor_count())
        );
        // All sessions were read by one thread.
        assert_eq!(*readers.lock().unwrap(), 1);
        client.shutdown(LIMIT).unwrap();
        server.shutdown(LIMIT).unwrap();
        drop((client, server));
        assert!(
            eventually(LIMIT, || thread_count() <= 3),
            "{}",
            thread_count()
        );
    });
}

#[test]
fn after_the_restart_of_a_server_all_clients_come_back_and_not_all_at_once() {
    within(Duration::from_secs(120), || {
        const CLIENTS: usize = 200;
        let mut backoff = Backoff::default();
        backoff.first = Duration::from_secs(2);
        backoff.most = Duration::from_secs(4);
        let server = echo().bind(ANY).unwrap();
        let address = tcp_address(&server);
        let clients: Vec<Client> = (0..CLIENTS)
            .map(|_| {
                let builder = Client::builder().reconnect(backoff.clone());
                builder.connect(address).unwrap()
            })
            .collect();
        server.shutdown(LIMIT).unwrap();
        let dials: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let times = dials.clone();
        let observed = move || {
            let times = times.clone();
            echo().on_accept(move |_| {
                times.lock().unwrap().push(Instant::now());
                Ok(())
            })
        };
        let server = restart(observed, address);
        for client in &clients {
            client.wait_connected(Duration::from_secs(60)).unwrap();
            client.call(1, "").unwrap();
        }
        assert!(eventually(LIMIT, || server.hub().len() == CLIENTS));
        let dials = dials.lock().unwrap();
        let begin = dials.iter().min().unwrap();
        let mut slots: HashMap<u128, usize> = HashMap::new();
        for dial in dials.iter() {
            *slots.entry((*dial - *begin).as_millis() / 100).or_default() += 1;
        }
        // One wait between 0 and 2 s: 10 of them in each 100 ms, were the machine alone.
        let busiest = slots.values().max().unwrap();
        assert!(*busiest < CLIENTS / 2, "{slots:?}");
    });
}
