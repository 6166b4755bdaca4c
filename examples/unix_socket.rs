//! Messages over Unix sockets: one that only this user may connect to, and a pair without any
//! name. Each peer's user and process are known. It all happens in this process.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use trunkline::{Address, Body, Client, Context, Server, SocketOptions, Status};

const GREET: &str = "/greet";
const LIMIT: Duration = Duration::from_secs(2);

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("unix_socket: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let folder = Folder::new()?;
    let file = folder.0.join("app.sock");
    let mut options = SocketOptions::default();
    options.unix_mode = Some(0o600);
    let server = Server::builder()
        .socket_options(options)
        .on_accept(let_in)
        .on_connected(|session| println!("server: {} is here", session.peer_address()))
        .on_error(|error| eprintln!("server: {error}"))
        .on_call(GREET, greet)
        .bind(format!("unix:{}", file.display()))?;
    println!("server: listening on {}", server.local_address());
    println!("server: the file has mode {:o}", mode(&file)?);

    // By the name of the file.
    let client = Client::connect(server.local_address())?;
    ask(&client, "a client")?;
    client.shutdown(LIMIT)?;

    // Over a pair of sockets: this thread sets up one end after the other.
    let (here, there) = UnixStream::pair()?;
    server.serve(here)?;
    let client = Client::from_stream(there)?;
    ask(&client, "the other end of a pair")?;
    client.shutdown(LIMIT)?;

    let report = server.shutdown(LIMIT)?;
    println!("server: {report}");
    println!("server: the file is gone: {}", !file.exists());
    Ok(())
}

/// The system vouches for the user of a Unix peer, so no password is needed.
fn let_in(peer: &Address) -> Result<(), Status> {
    match peer.process() {
        Some(process) => {
            println!("server: user {} knocks", process.uid);
            Ok(())
        }
        None => Err(Status::new(Status::FORBIDDEN, "who are you?")),
    }
}

fn greet(cx: &Context<'_>, name: Body<'_>) -> Result<String, Status> {
    let name: String = name.decode()?;
    let process = cx.peer_address().process();
    let process = process.ok_or_else(|| Status::new(Status::FORBIDDEN, "not over a socket"))?;
    Ok(format!("hello, {name} in process {}", process.pid))
}

fn ask(client: &Client, name: &str) -> Result<(), Failure> {
    let greeting: String = client.call_as(GREET, name)?;
    println!("client: {} says {greeting:?}", client.peer_address());
    Ok(())
}

fn mode(file: &Path) -> Result<u32, Failure> {
    Ok(fs::metadata(file)?.permissions().mode() & 0o777)
}

/// A folder that is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("trunkline-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
