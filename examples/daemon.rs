//! A service as systemd runs one: small limits, a log on standard error, statistics for
//! whoever reads a Unix socket, and a tidy end at SIGTERM.
//!
//! ```text
//! daemon                    serves a client of its own for a moment, then sends itself SIGTERM
//! daemon ADDR STATS_PATH    serves until SIGTERM or SIGINT; `nc -U STATS_PATH` prints figures
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, process, thread};

use log::{LevelFilter, Log, Metadata, Record};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use trunkline::{Client, Framing, Hub, Limits, Server, SocketOptions};

/// How long sessions may take to finish what runs and to say goodbye.
const LAST_MINUTES: Duration = Duration::from_secs(5);

/// Writes records as systemd's journal reads them, with the priority in front.
struct Journal;

impl Log for Journal {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let priority = match record.level() {
            log::Level::Error => 3,
            log::Level::Warn => 4,
            log::Level::Info => 6,
            log::Level::Debug | log::Level::Trace => 7,
        };
        eprintln!("<{priority}>{}: {}", record.target(), record.args());
    }

    fn flush(&self) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    log::set_logger(&Journal).map_err(|error| error.to_string())?;
    log::set_max_level(LevelFilter::Info);
    // Blocked before any thread starts, so that all inherit it and this one can wait for it.
    let mut ends = SigSet::empty();
    ends.add(Signal::SIGTERM);
    ends.add(Signal::SIGINT);
    ends.thread_block()?;

    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => demonstrate(&ends),
        [address, stats] => run(address, stats, &ends, |_| ()),
        _ => Err("usage: daemon [ADDR STATS_PATH]".into()),
    }
}

/// Serves until one of the signals comes; `begun` is told where.
fn run(
    address: &str,
    stats_path: &str,
    ends: &SigSet,
    begun: impl FnOnce(&Server),
) -> Result<(), Box<dyn Error>> {
    let server = Server::builder()
        .limits(Limits::embedded())
        .stack_bytes(256 << 10)
        .on_thread_start(|thread| log::debug!("thread {} starts", thread.name))
        .on_call("/reverse", |_, body| {
            body.iter().rev().copied().collect::<Vec<u8>>()
        })
        .bind(address)?;
    let stats = serve_stats(stats_path, server.hub().clone())?;
    begun(&server);

    let signal = ends.wait()?;
    println!("{signal}: shutting down");
    println!("{}", server.shutdown(LAST_MINUTES)?);
    stats.shutdown(LAST_MINUTES)?;
    Ok(())
}

/// Writes the figures to everybody who connects, as text for Prometheus and people.
fn serve_stats(path: &str, hub: Hub) -> Result<Server, trunkline::Error> {
    let mut options = SocketOptions::default();
    options.unix_mode = Some(0o600);
    Server::builder()
        .framing(Framing::Stream)
        .socket_options(options)
        .limits(Limits::embedded())
        .on_connected(move |session| {
            let text = hub.stats().prometheus("daemon");
            if let Err(error) = session.push(0, text) {
                log::warn!("statistics cannot be sent: {error}");
            }
            session.close();
        })
        .bind(format!("unix:{path}"))
}

fn demonstrate(ends: &SigSet) -> Result<(), Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("trunkline-daemon-{}", process::id()));
    fs::create_dir(&folder)?;
    let stats: PathBuf = folder.join("stats.sock");
    let path = stats.to_str().ok_or("the temporary folder is not UTF-8")?;
    let own_path = path.to_owned();
    let served = run("127.0.0.1:0", path, ends, |server| {
        let address = server.local_address().clone();
        thread::spawn(move || {
            if let Err(error) = visit(&address.to_string(), &own_path) {
                eprintln!("visitor: {error}");
            }
            let _ = kill(Pid::this(), Signal::SIGTERM);
        });
    });
    fs::remove_dir_all(&folder)?;
    served
}

/// Calls the service a few times and reads its figures.
fn visit(address: &str, stats_path: &str) -> Result<(), Box<dyn Error>> {
    let client = Client::connect(address)?;
    for word in ["sregnirts", "sdaerht"] {
        let reply = client.call("/reverse", word)?;
        println!("/reverse {word}: {}", reply.decode::<&str>()?);
    }
    let mut stream = std::os::unix::net::UnixStream::connect(stats_path)?;
    let text = std::io::read_to_string(&mut stream)?;
    let wanted = ["daemon_sessions ", "daemon_calls_answered_total "];
    for line in text.lines() {
        if wanted.iter().any(|start| line.starts_with(start)) {
            println!("{line}");
        }
    }
    client.shutdown(Duration::from_secs(1))?;
    Ok(())
}
