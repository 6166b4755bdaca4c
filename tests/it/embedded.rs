//! Small machines: what the embedded limits keep a server to, and who starts its threads.

use std::collections::HashSet;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, Kind, Limits, Server, ThreadRole};

use crate::limits_live::welcome_at;
use crate::support::{LIMIT, eventually, frame, resident_bytes, tcp_address, thread_count, within};
use crate::threads::alone;

/// As many sessions as the embedded limits let in, from four addresses.
fn fill(server: &Server) -> Vec<TcpStream> {
    let limits = Limits::embedded();
    let address = tcp_address(server);
    let sessions = 0..limits.sessions;
    sessions
        .map(|index| {
            let from = format!("127.0.0.{}", 1 + index / limits.sessions_per_address);
            let (stream, welcome) = welcome_at(&from, address);
            assert_eq!(welcome.refusal, None);
            stream
        })
        .collect()
}

#[test]
fn the_embedded_limits_bound_memory_and_threads_under_load() {
    const TEST: &str = "embedded::the_embedded_limits_bound_memory_and_threads_under_load";
    alone(TEST, 6 * LIMIT, || {
        let limits = Limits::embedded();
        let server = Server::builder()
            .limits(limits.clone())
            .on_call(1, |_, body| body.to_vec())
            .bind("127.0.0.1:0")
            .unwrap();
        let (memory, threads) = (resident_bytes(), thread_count());
        let mut peers = fill(&server);
        let (_, welcome) = welcome_at("127.0.0.9", tcp_address(&server));
        let refusal = welcome.refusal.unwrap();
        assert!(refusal.text().contains("limits.sessions = 64"), "{refusal}");

        // Nobody reads: calls whose replies fill the reserve, and a frame that is never whole.
        let calls = frame(Kind::Call, 1, 7, &[1; 1024]).repeat(200);
        let unfinished = &frame(Kind::Push, 2, 0, &[2; 900 << 10])[..256 << 10];
        for peer in &mut peers {
            peer.set_write_timeout(Some(LIMIT)).unwrap();
            peer.write_all(&calls).unwrap();
            peer.write_all(unfinished).unwrap();
        }
        let sessions = server.hub().sessions();
        assert_eq!(sessions.len(), peers.len());
        // Pushes until the kernel takes no more and every queue is full.
        let is_full = |session: &trunkline::Session| {
            let full = |_| session.try_push(3, vec![3; 16 << 10]).is_err();
            (0..4096).any(full)
        };
        assert!(eventually(2 * LIMIT, || sessions.iter().all(is_full)));
        let calls_answered = || server.stats().calls_answered;
        let all = 200 * peers.len() as u64;
        assert!(eventually(LIMIT, || calls_answered() == all));

        // Queue and reserve, and what came of the unfinished frame in a buffer that doubles.
        let queues = limits.queued_bytes + limits.reply_reserve_bytes;
        let each = (queues as usize) + (512 << 10) + (64 << 10);
        let grown = resident_bytes().saturating_sub(memory);
        println!("{grown} bytes for {} sessions", peers.len());
        assert!(grown < peers.len() * each, "{grown} bytes");
        let started = thread_count() - threads;
        println!("{started} threads");
        assert!(started <= 2 * peers.len() + 2, "{started} threads");
    });
}

#[test]
fn the_hook_runs_first_on_every_thread_of_a_client_or_server() {
    within(LIMIT, || {
        let (sender, handled) = mpsc::channel();
        let known = Arc::new(Mutex::new(HashSet::new()));
        let roles = Arc::new(Mutex::new(HashSet::new()));
        let (noted, seen, on_client) = (known.clone(), roles.clone(), roles.clone());
        let is_known = move || known.lock().unwrap().contains(&thread::current().id());
        let server = Server::builder()
            .on_thread_start(move |started| {
                assert_eq!(thread::current().name(), Some(started.name));
                noted.lock().unwrap().insert(thread::current().id());
                seen.lock().unwrap().insert(("server", started.role));
            })
            .on_push(1, move |_, _| sender.send(is_known()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .on_thread_start(move |started| {
                on_client.lock().unwrap().insert(("client", started.role));
            })
            .connect(server.local_address())
            .unwrap();
        // A stream of pushes brings the writer thread about.
        for _ in 0..10_000 {
            client.push(1, "a").unwrap();
        }
        client.flush(LIMIT).unwrap();
        assert!(handled.iter().take(10_000).all(|is_known| is_known));
        let expected = [
            ("server", ThreadRole::Accept),
            ("server", ThreadRole::Reader),
            ("client", ThreadRole::Reader),
            ("client", ThreadRole::Writer),
        ];
        let all_came = || {
            let roles = roles.lock().unwrap();
            expected.iter().all(|role| roles.contains(role))
        };
        assert!(eventually(LIMIT, all_came), "{roles:?}");
    });
}

#[test]
fn a_panic_of_the_hook_does_not_keep_the_thread_from_its_work() {
    within(LIMIT, || {
        let server = Server::builder()
            .on_thread_start(|_| panic!("as asked"))
            .on_call(1, |_, body| body.to_vec())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        assert_eq!(client.call(1, "still here").unwrap().body(), b"still here");
        client.shutdown(Duration::from_secs(1)).unwrap();
    });
}
