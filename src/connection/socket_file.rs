//! The file of a listening Unix socket: taken over from a dead server, and removed at the end.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

/// How often a locked folder is tried.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Keeps other servers from this folder while the answer lives: of two that start at once, one
/// could remove the other's fresh file.
pub(super) fn lock_folder(path: &Path, deadline: Option<Instant>) -> io::Result<Option<OwnedFd>> {
    // What cannot be read cannot be locked. If it is not there, or no folder, binding will say so.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = rustix::fs::open(folder_of(path), flags, Mode::empty()) else {
        return Ok(None);
    };
    // Anybody who can read the folder can lock it, and for as long as they like.
    while flock(&folder, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "another process keeps the folder locked for longer than timeouts.connect",
            ));
        }
        thread::sleep(LOCK_PAUSE);
    }
    Ok(Some(folder))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Removes the file of a socket on which nobody listens any more.
pub(super) fn remove_stale(path: &Path, target: &SockAddr) -> io::Result<()> {
    let is_socket = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type().is_socket(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !is_socket {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "there is a file of that name, and it is no socket",
        ));
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    match probe.connect(target) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        // Whatever else is there is alive: binding will say that the address is taken.
        _ => Ok(()),
    }
}

/// The file of a Unix socket of ours: removed when the listener goes, unless another has taken
/// its place.
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    number: u64,
}

impl SocketFile {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(SocketFile {
            // Wherever the process goes meanwhile.
            path: std::path::absolute(path)?,
            device: metadata.dev(),
            number: metadata.ino(),
        })
    }

    pub(super) fn set_mode(&self, mode: u32) -> io::Result<()> {
        fs::set_permissions(&self.path, fs::Permissions::from_mode(mode))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.number));
        if is_ours {
            // Gone already, or the folder is closed to us: the next server replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}
