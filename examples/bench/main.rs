//! The benchmark peer: measures this crate the way the other libraries are measured.
//!
//! ```text
//! bench server --port P --workload W --variant V --size S --count N --threads T --conns C --window K
//! bench client (the same) --server-pid PID
//! ```
//!
//! The server prints `READY`, serves, and ends when its standard input closes. The client runs
//! one workload and prints one line of JSON.
//!
//! | workload | what is timed |
//! |---|---|
//! | `w1`, `w1b` | pushes one way over one connection, from one or several threads, to the acknowledgement |
//! | `w2` | one caller, one call at a time |
//! | `w3` | T callers share one connection |
//! | `w4` | C connections with up to K messages in flight on each |
//! | `w5` | C connections with one call at a time on each, and the server's memory for them |
//!
//! Variants choose the protocol: `native` (or `default`), and for `w1`, `w1b` and `w4` also
//! `length`, whose echoes are pushes. Everything else is the default of the crate.

mod calls;
mod client;
mod echoes;
mod options;
mod payload;
mod probe;
mod pushes;
mod report;
mod run;
mod server;

use std::process::ExitCode;

use options::{Options, Role};

/// Whatever went wrong, for the one line that tells it.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<ExitCode, Failure> {
    let options = Options::parse(std::env::args().skip(1))?;
    match options.role {
        Role::Server => server::serve(&options).map(|()| ExitCode::SUCCESS),
        Role::Client => Ok(client::measure(&options)),
    }
}
