//! The benchmark peer: measures this crate the way the other libraries are measured.
//!
//! ```text
//! bench server --port P --workload W --variant V --size S --count N --threads T --conns C --window K
//! bench client (the same) --server-pid PID
//! bench ntcpmsg [--quick]
//! ```
//!
//! The server prints `READY`, serves, and ends when its standard input closes. The client runs
//! one workload and prints one line of JSON. `ntcpmsg` runs many of both, and prints the two tables
//! in which NTCPMSG presents its speed.
//!
//! | workload | what is timed |
//! |---|---|
//! | `w1`, `w1b` | pushes one way over one connection, from one or several threads, to the acknowledgement |
//! | `w2` | one caller, one call at a time |
//! | `w3` | T callers share one connection |
//! | `w4` | C connections with up to K messages in flight on each |
//! | `w5` | C connections with one call at a time on each, and the server's memory for them |
//! | `w6` | C connections push as fast as they can, each message is pushed back; also the peak memory of both processes |
//!
//! A variant is words joined by `-`. Some choose the protocol: `native` (or `default`), and for
//! `w1`, `w1b`, `w4` and `w6` also `length`, whose echoes are pushes. `park` and `spin` choose
//! how to wait, `thread` a standing writer. Everything else is the default of the crate, but for
//! the send queues of `w6`, which are smaller with many connections.

mod calls;
mod client;
mod echoes;
mod flood;
mod ntcpmsg;
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
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == "ntcpmsg").is_some() {
        return ntcpmsg::run(words);
    }
    let options = Options::parse(words)?;
    match options.role {
        Role::Server => server::serve(&options).map(|()| ExitCode::SUCCESS),
        Role::Client => Ok(client::measure(&options)),
    }
}
