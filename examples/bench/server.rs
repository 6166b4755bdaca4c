//! The server of a run.

use std::io::{self, Write};

use trunkline::{Framing, Server};

use crate::Failure;
use crate::options::{ECHO, Options, Workload};
use crate::payload::Checker;

/// Serves until standard input closes.
pub(crate) fn serve(options: &Options) -> Result<(), Failure> {
    let builder = Server::builder().framing(options.framing);
    let (push_route, back_route) = (options.push_route(), options.back_route());
    let builder = match (options.workload, options.framing) {
        (Workload::Pushes, _) => {
            let (checker, count) = (Checker::new(options.size), options.count);
            builder.on_push(push_route, move |cx, body| {
                if checker.check(&body) == count {
                    let acknowledgement = checker.acknowledgement();
                    if cx.session().push(back_route, acknowledgement).is_err() {
                        cx.session().abort();
                    }
                }
            })
        }
        (_, Framing::Native) => builder.on_call(ECHO, |cx, body| cx.reply(body)),
        _ => builder.on_push(push_route, move |cx, body| {
            let session = cx.session();
            if session.push(back_route, body).is_err() {
                session.abort();
            }
        }),
    };
    let server = builder.bind(options.address())?;
    let mut output = io::stdout();
    writeln!(output, "READY")?;
    output.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    drop(server);
    Ok(())
}
