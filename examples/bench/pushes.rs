//! `w1` and `w1b`: pushes one way over one connection, until the server acknowledges them.

use std::sync::mpsc;
use std::thread;

use trunkline::{Error, Session};

use crate::Failure;
use crate::client;
use crate::options::Options;
use crate::payload::{self, PRODUCERS};
use crate::report::Report;
use crate::run::Run;

pub(crate) fn run(options: &Options) -> Result<Report, Failure> {
    if options.threads > PRODUCERS {
        return Err(format!("the stamps tell {PRODUCERS} producers apart").into());
    }
    let (sender, answers) = mpsc::channel();
    let end = sender.clone();
    let (count, size) = (options.count, options.size);
    let client = client::builder(options)
        .on_push(options.back_route(), move |_, body| {
            // Nobody listens any more once the run has failed.
            let _ = sender.send(Ok(payload::errors_shown(&body, count, size)));
        })
        .on_closed(move |_, report| {
            let _ = end.send(Err(format!("the session ended before the end: {report}")));
        })
        .connect(options.address())?;
    let session = client.session();
    let run = Run::start(options)?;
    match options.threads {
        1 => produce(options, &session, 0)?,
        _ => thread::scope(|scope| {
            let session = &session;
            let start = |producer| scope.spawn(move || produce(options, session, producer));
            let producers: Vec<_> = (0..options.threads).map(start).collect();
            producers.into_iter().try_for_each(|producer| {
                let produced = producer.join().map_err(|_| "a producer panicked")?;
                produced.map_err(Failure::from)
            })
        })?,
    }
    let errors = answers.recv()??;
    run.finish(errors)
}

/// Pushes one producer's share.
fn produce(options: &Options, session: &Session, producer: usize) -> Result<(), Error> {
    let route = options.push_route();
    let mut body = payload::template(options.size);
    for sequence in 0..options.share(producer, options.threads) {
        payload::stamp(&mut body, producer, sequence);
        session.push(route, &body)?;
    }
    Ok(())
}
