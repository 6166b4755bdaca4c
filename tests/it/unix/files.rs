//! The file of a Unix socket: whose it is, its mode, and when it goes.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use trunkline::{ErrorKind, Server, SocketOptions};

use super::{echo, is_served};
use crate::support::folder::{Folder, unix};
use crate::support::{
    LIMIT, STARTS_A_PROCESS, child, child_role, left_out_under_emulation, within,
};

#[track_caller]
fn is_taken(path: &Path) {
    let error = echo().bind(unix(path)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddressInUse, "{error:#}");
    assert!(error.to_string().contains(&unix(path)), "{error}");
}

#[test]
fn the_file_goes_with_its_server() {
    within(LIMIT, || {
        let folder = Folder::new();
        let path = folder.file("app");
        for how in ["shutdown", "drop"] {
            let server = echo().bind(unix(&path)).unwrap();
            let metadata = fs::symlink_metadata(&path).unwrap();
            assert!(metadata.file_type().is_socket());
            if how == "shutdown" {
                server.shutdown(LIMIT).unwrap();
            }
            // A program may end right behind this.
            drop(server);
            assert!(!path.exists(), "{how}");
        }
        // One that cannot start.
        let taken = echo().bind("127.0.0.1:0").unwrap();
        let error = echo()
            .also_on(taken.local_address())
            .bind(unix(&path))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddressInUse, "{error}");
        assert!(!path.exists());
    });
}

#[test]
fn a_file_that_another_server_has_put_in_its_place_stays() {
    within(LIMIT, || {
        let folder = Folder::new();
        let path = folder.file("app");
        for how in ["shutdown", "drop"] {
            let first = echo().bind(unix(&path)).unwrap();
            fs::remove_file(&path).unwrap();
            let second = echo().bind(unix(&path)).unwrap();
            if how == "shutdown" {
                first.shutdown(LIMIT).unwrap();
            }
            drop(first);
            is_served(unix(&path));
            drop(second);
            assert!(!path.exists(), "{how}");
        }
    });
}

#[test]
fn the_file_of_a_live_server_is_not_replaced() {
    within(LIMIT, || {
        let folder = Folder::new();
        let path = folder.file("app");
        let server = echo().bind(unix(&path)).unwrap();
        is_taken(&path);
        is_served(unix(&path));
        server.shutdown(LIMIT).unwrap();
        let foreign = UnixListener::bind(&path).unwrap();
        is_taken(&path);
        drop(UnixStream::connect(&path).unwrap());
        drop(foreign);
        echo().bind(unix(&path)).unwrap();
    });
}

#[test]
fn a_file_that_is_no_socket_is_never_touched() {
    within(LIMIT, || {
        let folder = Folder::new();
        let [file, inner, link, stale] =
            ["file", "folder", "link", "stale"].map(|name| folder.file(name));
        fs::write(&file, b"precious").unwrap();
        fs::create_dir(&inner).unwrap();
        drop(UnixListener::bind(&stale).unwrap());
        symlink(&stale, &link).unwrap();
        for path in [&file, &inner, &link] {
            is_taken(path);
        }
        assert_eq!(fs::read(&file).unwrap(), b"precious");
        assert!(inner.is_dir());
        assert_eq!(fs::read_link(&link).unwrap(), stale);
        assert!(stale.exists());
    });
}

/// Another way to the folder on which the system spends long: a chain of links with long texts.
fn slow_way(folder: &Folder) -> PathBuf {
    let detour = "./".repeat(1_900);
    for link in 0..30 {
        let next = match link {
            0 => detour.clone(),
            _ => format!("{detour}{}", link - 1),
        };
        symlink(next, folder.file(&link.to_string())).unwrap();
    }
    folder.file("29")
}

#[test]
fn the_mode_of_the_file_is_set_before_anyone_can_connect() {
    within(Duration::from_secs(60), || {
        let folder = Folder::new();
        let path = folder.file("app");
        let slow = slow_way(&folder).join("app");
        for mode in [0o600, 0o660, 0o777, 0o606].repeat(3) {
            let mut options = SocketOptions::default();
            options.unix_mode = Some(mode);
            let builder = Server::builder().socket_options(options);
            let server = thread::scope(|scope| {
                // It would be quicker than the setting of the mode.
                let first_client = scope.spawn(|| {
                    let stream = loop {
                        if let Ok(stream) = UnixStream::connect(&path) {
                            break stream;
                        }
                    };
                    let metadata = fs::metadata(&path).unwrap();
                    drop(stream);
                    metadata.permissions().mode() & 0o777
                });
                let server = builder.bind(unix(&slow)).unwrap();
                assert_eq!(first_client.join().unwrap(), mode);
                server
            });
            drop(server);
            assert!(!path.exists());
        }
    });
}

#[test]
fn a_server_in_a_relative_place_removes_its_file_wherever_it_has_gone() {
    if child_role().is_some() {
        let server = echo().bind("unix:app").unwrap();
        is_served("unix:app");
        let path = std::env::current_dir().unwrap().join("app");
        std::env::set_current_dir("/").unwrap();
        assert!(path.exists());
        drop(server);
        assert!(!path.exists());
        return;
    }
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    within(Duration::from_secs(20), || {
        let folder = Folder::new();
        let test =
            "unix::files::a_server_in_a_relative_place_removes_its_file_wherever_it_has_gone";
        let output = child(test, "go")
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    });
}
