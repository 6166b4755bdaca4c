//! The client of a run: starts the workload, prints what came of it, and never hangs.

use std::process::{ExitCode, exit};
use std::thread;
use std::time::Duration;

use trunkline::{Client, ClientBuilder};

use crate::Failure;
use crate::options::{Options, Workload};
use crate::report::Report;
use crate::{calls, echoes, pushes};

/// No run takes longer.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the workload and prints its line.
pub(crate) fn measure(options: &Options) -> ExitCode {
    let result = watch(options).and_then(|()| match options.workload {
        Workload::Pushes => pushes::run(options),
        Workload::OneCaller | Workload::ManyCallers => calls::run_shared(options),
        Workload::Echoes => echoes::run(options),
        Workload::ManyConnections => calls::run_many(options),
    });
    result
        .unwrap_or_else(|failure| Report::failed(options, &failure))
        .print()
}

/// Ends the process if the run takes too long.
fn watch(options: &Options) -> Result<(), Failure> {
    let options = options.clone();
    thread::Builder::new().spawn(move || {
        thread::sleep(LIMIT);
        give_up(&options, &format!("no result after {LIMIT:?}").into())
    })?;
    Ok(())
}

/// Ends the process, whose other threads may be waiting for each other.
pub(crate) fn give_up(options: &Options, failure: &Failure) -> ! {
    Report::failed(options, failure).print();
    exit(1)
}

/// A client in the making that speaks the protocol of the run.
pub(crate) fn builder(options: &Options) -> ClientBuilder {
    Client::builder().framing(options.framing)
}
