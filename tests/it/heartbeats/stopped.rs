//! Processes that are stopped for a while: this one's peer, the side that judges, and both.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use trunkline::{Client, CloseReason, ErrorKind};

use super::{ECHO, client, echo, within_limit};
use crate::support::{
    LIMIT, PROMPT, STARTS_A_PROCESS, child, child_role, eventually, left_out_under_emulation,
    millis, within,
};

const HEARTBEAT: Duration = Duration::from_secs(1);

/// A process at the other end; it ends with the test.
struct Other {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Other {
    fn start(test: &str, role: &str) -> Other {
        let mut process = child(test, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Other {
            process,
            input,
            output,
        }
    }

    /// What it says behind this word, on the next line that begins with it.
    fn says(&mut self, word: &str) -> String {
        let mut lines = self.output.by_ref().lines();
        lines
            .find_map(|line| Some(line.unwrap().strip_prefix(word)?.trim().to_owned()))
            .unwrap()
    }

    fn ask(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }

    /// Stops all its threads.
    fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.process.id());
        // One that ends meanwhile has none any more.
        let is_stopped = |task: std::io::Result<fs::DirEntry>| {
            let stat = task.and_then(|task| fs::read_to_string(task.path().join("stat")));
            stat.is_ok_and(|stat| stat.contains(") T "))
        };
        assert!(eventually(LIMIT, || {
            fs::read_dir(&tasks).unwrap().all(is_stopped)
        }));
    }

    fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server in a process of its own, until its input ends.
fn serve() {
    let server = echo(within_limit(HEARTBEAT)).bind("127.0.0.1:0").unwrap();
    println!("\naddress {}", server.local_address());
    for _ in std::io::stdin().lines() {}
}

/// Clients in a process of their own: for each line of input it says whether all their calls were
/// answered, and how sessions have ended. They are many, so that not all of their readers run
/// before the timer does.
fn call(address: &str) {
    let (sender, ends) = mpsc::channel();
    let connect = |_| {
        let sender = sender.clone();
        client(within_limit(HEARTBEAT))
            .on_closed(move |_, report| sender.send(report.to_string()).unwrap())
            .connect(address)
            .unwrap()
    };
    let clients: Vec<Client> = (0..CLIENTS).map(connect).collect();
    println!("\nconnected");
    for _ in std::io::stdin().lines() {
        let answered = |client: &Client| client.call(ECHO, b"there").is_ok();
        let called = clients.iter().filter(|client| answered(client)).count();
        println!(
            "\ncalled {called} {:?}",
            ends.try_iter().collect::<Vec<_>>()
        );
    }
}

const CLIENTS: usize = 30;
const ALIVE: &str = "30 []";

#[test]
fn a_peer_that_is_stopped_is_found_at_the_limit_and_a_short_stop_is_survived() {
    const TEST: &str = "heartbeats::stopped::a_peer_that_is_stopped_is_found_at_the_limit_and_a_short_stop_is_survived";
    if child_role().is_some() {
        return serve();
    }
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    within(Duration::from_secs(40), || {
        let mut other = Other::start(TEST, "server");
        let address = other.says("address");
        let (sender, ends) = mpsc::channel();
        let client = client(within_limit(HEARTBEAT))
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .connect(&*address)
            .unwrap();
        other.stop();
        assert!(ends.recv_timeout(HEARTBEAT / 4).is_err());
        other.go_on();
        client.call(ECHO, b"").unwrap();
        assert!(ends.try_recv().is_err());

        // Its system goes on acknowledging; a call shows that, as it is written.
        let heard = Instant::now();
        client.call(ECHO, b"").unwrap();
        other.stop();
        let pending = client.request(ECHO).start(b"").unwrap();
        let report = ends.recv_timeout(LIMIT).unwrap();
        let took = heard.elapsed();
        let most = HEARTBEAT + Duration::from_secs(1) + PROMPT;
        assert!(took >= HEARTBEAT && took < most, "{took:?}");
        assert_eq!(report.reason, CloseReason::Cut, "{report}");
        assert_eq!(report.error.unwrap().kind(), ErrorKind::Timeout);
        let error = pending.wait().unwrap_err();
        assert!(error.maybe_executed(), "{error:?}");
        other.go_on();
        assert!(ends.recv_timeout(millis(300)).is_err(), "a second end");
    });
}

#[test]
fn a_process_that_was_stopped_reads_before_it_judges() {
    const TEST: &str = "heartbeats::stopped::a_process_that_was_stopped_reads_before_it_judges";
    if let Some(address) = child_role() {
        return call(&address);
    }
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    within(Duration::from_secs(40), || {
        // This side goes on pinging, and does not judge.
        let (sender, ends) = mpsc::channel();
        let server = echo(within_limit(Duration::MAX))
            .on_closed(move |_, report| sender.send(report.clone()).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let mut other = Other::start(TEST, &server.local_address().to_string());
        other.says("connected");
        let session = server.hub().sessions().remove(0);
        for _ in 0..3 {
            other.stop();
            let before = session.stats().pings_sent;
            assert!(eventually(LIMIT, || session.stats().pings_sent >= before + 6));
            other.go_on();
            other.ask();
            assert_eq!(other.says("called"), ALIVE);
        }
        if let Ok(report) = ends.try_recv() {
            panic!("{report}");
        }
        assert_eq!(session.call(ECHO, b"there").unwrap().body(), b"there");
    });
}

#[test]
fn two_processes_that_were_both_stopped_keep_their_session() {
    const TEST: &str =
        "heartbeats::stopped::two_processes_that_were_both_stopped_keep_their_session";
    match child_role().as_deref() {
        Some("server") => return serve(),
        Some(address) => return call(address),
        None => {}
    }
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    within(Duration::from_secs(40), || {
        let mut server = Other::start(TEST, "server");
        let mut caller = Other::start(TEST, &server.says("address"));
        caller.says("connected");
        for server_first in [true, false] {
            // Longer than the limit, so that every deadline has passed when they go on.
            let (first, second) = match server_first {
                true => (&server, &caller),
                false => (&caller, &server),
            };
            first.stop();
            second.stop();
            thread::sleep(HEARTBEAT * 2);
            first.go_on();
            thread::sleep(millis(200));
            second.go_on();
            // And all of a limit later, when what began anew would have passed.
            thread::sleep(HEARTBEAT + millis(300));
            caller.ask();
            assert_eq!(caller.says("called"), ALIVE);
        }
    });
}
