//! `w6`: many connections push as fast as they can, without a window, and count the answers.
//!
//! Nothing is kept of a message: the queues of the sessions, which are bounded, slow the pushing
//! threads down.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier};
use std::thread;

use trunkline::{Client, Error};

use crate::Failure;
use crate::client;
use crate::options::Options;
use crate::payload::{self, Checker};
use crate::pushes;
use crate::report::Report;
use crate::run::Run;

/// Bytes of stack of a pushing thread.
const STACK: usize = 64 << 10;

/// How a connection ended its part: with so many errors, or before its time.
type End = Result<u64, Failure>;

pub(crate) fn run(options: &Options) -> Result<Report, Failure> {
    let (sender, ends) = mpsc::channel();
    let shares = (0..options.connections).map(|number| options.share(number, options.connections));
    let shares: Vec<u64> = shares.filter(|share| *share > 0).collect();
    let start = Arc::new(Barrier::new(shares.len() + 1));
    let mut clients = Vec::new();
    for share in shares {
        let client = connect(options, share, sender.clone())?;
        let (options, session) = (options.clone(), client.session());
        let (start, end) = (start.clone(), sender.clone());
        thread::Builder::new().stack_size(STACK).spawn(move || {
            start.wait();
            if let Err(error) = pushes::produce(&options, &session, 0, share) {
                tell(&end, Err(error.into()));
            }
        })?;
        clients.push(client);
    }
    let run = Run::start(options)?;
    start.wait();
    let mut errors = 0;
    for _ in &clients {
        errors += ends.recv()??;
    }
    run.finish(errors)
}

/// A connection that expects so many answers.
fn connect(options: &Options, share: u64, end: Sender<End>) -> Result<Client, Error> {
    let (size, closed) = (options.size, end.clone());
    let checker = Checker::new(size);
    client::builder(options)
        .on_push(options.back_route(), move |_, body| {
            if checker.check(&body) == share {
                let summary = checker.acknowledgement();
                tell(&end, Ok(payload::errors_shown(&summary, share, size)));
            }
        })
        .on_closed(move |_, report| {
            let text = format!("a session ended before the end: {report}");
            tell(&closed, Err(text.into()));
        })
        .connect(options.address())
}

fn tell(end: &Sender<End>, how: End) {
    // Nobody listens any more once the run has failed.
    let _ = end.send(how);
}
