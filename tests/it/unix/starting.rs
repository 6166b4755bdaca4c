//! Starting where a dead server has left its file, and where others start too.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use trunkline::{ErrorKind, Server, Timeouts};

use super::{echo, is_served};
use crate::support::folder::{Folder, unix};
use crate::support::{
    LIMIT, STARTS_A_PROCESS, child, child_role, left_out_under_emulation, millis, within,
};

#[test]
fn the_file_of_a_killed_server_is_replaced() {
    if let Some(address) = child_role() {
        let server = echo().bind(address).unwrap();
        println!("\nlistening");
        server.wait();
        return;
    }
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    within(Duration::from_secs(20), || {
        let folder = Folder::new();
        let path = folder.file("app");
        let mut killed = child(
            "unix::starting::the_file_of_a_killed_server_is_replaced",
            &unix(&path),
        )
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
        let output = BufReader::new(killed.stdout.take().unwrap());
        assert!(
            output
                .lines()
                .map_while(Result::ok)
                .any(|line| line == "listening")
        );
        is_served(unix(&path));
        killed.kill().unwrap();
        killed.wait().unwrap();
        assert!(path.exists(), "the file went without its server's doing");
        let server = echo().bind(unix(&path)).unwrap();
        is_served(unix(&path));
        drop(server);
        assert!(!path.exists());
    });
}

#[test]
fn of_servers_that_start_at_once_on_a_stale_file_one_wins() {
    within(Duration::from_secs(60), || {
        let folder = Folder::new();
        let path = folder.file("app");
        for round in 0..50 {
            drop(UnixListener::bind(&path).unwrap());
            let start = Barrier::new(3);
            let started: Vec<_> = thread::scope(|scope| {
                let starting = [(); 3].map(|()| {
                    scope.spawn(|| {
                        start.wait();
                        echo().bind(unix(&path))
                    })
                });
                starting.map(|thread| thread.join().unwrap()).into()
            });
            let (servers, errors): (Vec<_>, Vec<_>) = started.into_iter().partition(Result::is_ok);
            assert_eq!(servers.len(), 1, "round {round}");
            for error in errors.into_iter().filter_map(Result::err) {
                assert_eq!(error.kind(), ErrorKind::AddressInUse, "round {round}");
            }
            let client = is_served(unix(&path));
            let server: &Server = servers[0].as_ref().unwrap();
            assert!(server.hub().session(client.id()).is_ok());
        }
    });
}

/// Opening a pipe waits for its other end.
#[test]
fn what_is_no_folder_is_an_error_at_once() {
    within(LIMIT, || {
        let folder = Folder::new();
        let pipe = folder.file("pipe");
        let mode = Mode::from_raw_mode(0o600);
        mknodat(CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        let error = echo().bind(unix(&pipe.join("app"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error:#}");
    });
}

#[test]
fn a_locked_folder_ends_bind_at_its_time_limit() {
    within(LIMIT, || {
        let folder = Folder::new();
        let locked = File::open(folder.path()).unwrap();
        flock(&locked, FlockOperation::LockExclusive).unwrap();
        let mut timeouts = Timeouts::default();
        timeouts.connect = millis(200);
        let start = Instant::now();
        let error = echo()
            .timeouts(timeouts)
            .bind(unix(&folder.file("app")))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error:#}");
        assert!(
            format!("{error:#}").contains("timeouts.connect"),
            "{error:#}"
        );
        assert!(start.elapsed() >= millis(200));
        drop(locked);
        echo().bind(unix(&folder.file("app"))).unwrap();
    });
}
