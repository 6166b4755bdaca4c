//! `bench ntcpmsg`: the two tables in which NTCPMSG presents its speed, filled in by this crate.
//!
//! Each figure is a run of the workload `w1` or `w3` in processes of their own, as often and as
//! long as it takes to last for some time.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, ExitCode, Stdio, exit};
use std::thread;
use std::time::Duration;

use crate::Failure;

/// Bytes of a message.
const SIZES: [usize; 7] = [4, 16, 64, 256, 1024, 8192, 65536];
/// Seconds that a run lasts at least.
const LASTING: f64 = 1.0;
/// The same of a quick look, which proves nothing.
const QUICK: f64 = 0.02;
/// Messages of the first run, for each client.
const FIRST: u64 = 2_000;
/// Both tables take no longer; the processes of a run have limits of their own.
const LIMIT: Duration = Duration::from_secs(300);

/// One of the two tables.
struct Table {
    title: &'static str,
    workload: &'static str,
    clients: usize,
    threads: usize,
    /// What NTCPMSG came to with messages of some sizes.
    theirs: &'static [(usize, &'static str)],
    note: &'static str,
}

const ONE_WAY: Table = Table {
    title: "One way: pushes of one thread over one connection",
    workload: "w1",
    clients: 1,
    threads: 1,
    theirs: &[(4, "3.1 M"), (64, "1.8 M"), (1024, "324 k")],
    note: "NTCPMSG: measured by this project with .NET Core 3.1 on 2 virtual cores (AMD EPYC, KVM, \
           Linux 6.18).\nWhere a cell is empty, nothing was measured.",
};

const SYNCHRONOUS: Table = Table {
    title: "Synchronous: calls of 4 client processes x 32 threads, a connection for each process",
    workload: "w3",
    clients: 4,
    threads: 32,
    theirs: &[],
    note: "NTCPMSG was not measured with so many clients. On the machine above, 32 threads of one\n\
           process made 52 k calls/s of 64 B with it, and one thread 12.4 k calls/s of 581 B.",
};

/// Prints both tables.
pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<ExitCode, Failure> {
    let lasting = match words.next().as_deref() {
        None => LASTING,
        Some("--quick") => QUICK,
        Some(other) => return Err(format!("bench ntcpmsg [--quick]; what is {other}?").into()),
    };
    thread::Builder::new().spawn(|| {
        thread::sleep(LIMIT);
        let _ = writeln!(io::stderr(), "no result after {LIMIT:?}");
        exit(1)
    })?;
    for table in [ONE_WAY, SYNCHRONOUS] {
        table.print(lasting)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Table {
    fn print(&self, lasting: f64) -> Result<(), Failure> {
        let mut output = io::stdout();
        writeln!(output, "**{}**\n", self.title)?;
        writeln!(
            output,
            "| bytes | messages/s | MB/s | server CPU, % of a core | NTCPMSG, messages/s |\n\
             |---|---|---|---|---|"
        )?;
        for size in SIZES {
            let run = self.long_run(size, lasting)?;
            let theirs = self.theirs.iter().find(|(of, _)| *of == size);
            writeln!(
                output,
                "| {size} | {} | {:.1} | {:.0} | {} |",
                rounded(run.rate),
                run.rate * size as f64 / 1e6,
                run.server_cores * 100.0,
                theirs.map_or("", |(_, rate)| rate),
            )?;
        }
        writeln!(output, "\n{}\n", self.note)?;
        Ok(())
    }

    /// Runs with more messages each time, until one run lasts.
    fn long_run(&self, size: usize, lasting: f64) -> Result<Run, Failure> {
        let mut count = FIRST;
        loop {
            let run = self.run(size, count)?;
            if run.seconds >= lasting {
                return Ok(run);
            }
            // A very short run says little about a long one.
            let factor = (1.2 * lasting / run.seconds).clamp(1.2, 20.0);
            count = (count as f64 * factor) as u64;
        }
    }

    /// Runs once, with so many messages of each client.
    fn run(&self, size: usize, count: u64) -> Result<Run, Failure> {
        // A port that was just given out is not given out again so soon.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut words = vec!["--workload".to_owned(), self.workload.to_owned()];
        for (name, number) in [
            ("--port", u64::from(port)),
            ("--size", size as u64),
            ("--count", count),
            ("--threads", self.threads as u64),
        ] {
            words.extend([name.to_owned(), number.to_string()]);
        }
        let server = ServerProcess::start(&words)?;
        words.extend(["--server-pid".to_owned(), server.0.id().to_string()]);
        let clients = (0..self.clients).map(|_| start("client", &words));
        let clients: Vec<Child> = clients.collect::<Result<_, _>>()?;
        let mut run = Run::default();
        for client in clients {
            let line = String::from_utf8(client.wait_with_output()?.stdout)?;
            if !line.contains("\"ok\":true") {
                return Err(format!("a client failed: {line}").into());
            }
            run.seconds = run.seconds.max(field(&line, "secs")?);
            run.server_cores += field(&line, "srv_cpu")? / self.clients as f64;
        }
        run.rate = count as f64 * self.clients as f64 / run.seconds;
        Ok(run)
    }
}

/// What came of a run.
#[derive(Default)]
struct Run {
    /// Until the last client was done.
    seconds: f64,
    /// Messages per second, of all clients together.
    rate: f64,
    /// How many cores the server kept busy.
    server_cores: f64,
}

/// A server that ends with the run.
struct ServerProcess(Child);

impl ServerProcess {
    fn start(words: &[String]) -> Result<Self, Failure> {
        let mut server = ServerProcess(start("server", words)?);
        let output = server.0.stdout.take().ok_or("a server without output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        match line.trim() {
            "READY" => Ok(server),
            _ => Err("the server did not start".into()),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this program once more, as a server or a client.
fn start(role: &str, words: &[String]) -> Result<Child, Failure> {
    let child = Command::new(env::current_exe()?)
        .arg(role)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    Ok(child)
}

/// A number in the line of a client.
fn field(line: &str, name: &str) -> Result<f64, Failure> {
    let start = format!("\"{name}\":");
    let number = line
        .split_once(&start)
        .and_then(|(_, rest)| rest.split([',', '}']).next()?.parse().ok());
    Ok(number.ok_or(format!("a client without {name}: {line}"))?)
}

fn rounded(rate: f64) -> String {
    match rate {
        1e6.. => format!("{:.1} M", rate / 1e6),
        1e3.. => format!("{:.0} k", rate / 1e3),
        _ => format!("{rate:.0}"),
    }
}
