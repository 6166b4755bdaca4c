//! `w4`: many connections, with many messages in flight on each.
//!
//! Once the first message is back the connection's reader thread does everything: for each
//! message that comes back it checks it and sends the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};

use trunkline::{Client, Error, Framing, Reply, Session};

use crate::Failure;
use crate::client;
use crate::options::{ECHO, Options};
use crate::payload::{self, Stamped};
use crate::report::Report;
use crate::run::Run;

pub(crate) fn run(options: &Options) -> Result<Report, Failure> {
    let (sender, ends) = mpsc::channel();
    let mut connected = Vec::new();
    for number in 0..options.connections {
        let flow = Arc::new(Flow {
            template: payload::template(options.size),
            route: options.push_route(),
            share: options.share(number, options.connections),
            window: options.window,
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            end: sender.clone(),
        });
        connected.push((connect(options, &flow)?, flow));
    }
    let run = Run::start(options)?;
    for (client, flow) in &connected {
        match options.framing {
            Framing::Native => flow.call_next(client, 1),
            _ => flow.push_next(client, 1),
        }
    }
    let busy = connected.iter().filter(|(_, flow)| flow.share > 0).count();
    let mut errors = 0;
    for _ in 0..busy {
        errors += ends.recv()??;
    }
    run.finish(errors)
}

fn connect(options: &Options, flow: &Arc<Flow>) -> Result<Client, Error> {
    let (pushed, closed) = (flow.clone(), flow.clone());
    client::builder(options)
        .on_push(options.back_route(), move |cx, body| {
            let expected = pushed.done.load(Relaxed);
            let room = pushed.came_back(body.as_bytes(), expected);
            pushed.push_next(&cx.session(), room);
        })
        .on_closed(move |_, report| {
            closed.fail(format!("a session ended before the end: {report}").into());
        })
        .connect(options.address())
}

/// The messages of one connection.
struct Flow {
    template: Vec<u8>,
    route: u32,
    share: u64,
    window: u64,
    begun: AtomicU64,
    done: AtomicU64,
    errors: AtomicU64,
    /// Where to tell how many errors there were, or that there will be no end.
    end: Sender<Result<u64, Failure>>,
}

impl Flow {
    /// A message is back; the answer is how many may follow it.
    fn came_back(&self, body: &[u8], sequence: u64) -> u64 {
        if !payload::is_intact(body, self.template.len(), sequence) {
            self.errors.fetch_add(1, Relaxed);
        }
        let done = self.done.fetch_add(1, Relaxed) + 1;
        if done == self.share {
            // Nobody listens any more once the run has failed.
            let _ = self.end.send(Ok(self.errors.load(Relaxed)));
        }
        if done == 1 { self.window } else { 1 }
    }

    fn fail(&self, failure: Failure) {
        let _ = self.end.send(Err(failure));
    }

    /// The next messages, as many as there is room for and are left.
    fn next(&self, room: u64) -> impl Iterator<Item = Stamped<'_>> {
        let first = self.begun.fetch_add(room, Relaxed);
        (first..self.share.min(first + room)).map(|sequence| Stamped {
            template: &self.template,
            sequence,
        })
    }

    fn push_next(&self, session: &Session, room: u64) {
        for body in self.next(room) {
            if let Err(error) = session.push(self.route, body) {
                return self.fail(error.into());
            }
        }
    }

    fn call_next(self: &Arc<Self>, session: &Session, room: u64) {
        for body in self.next(room) {
            let sequence = body.sequence;
            let (flow, replied) = (self.clone(), session.clone());
            match session.request(ECHO).start(body) {
                Ok(call) => call.on_reply(move |reply| flow.replied(&replied, sequence, reply)),
                Err(error) => return self.fail(error.into()),
            }
        }
    }

    fn replied(self: &Arc<Self>, session: &Session, sequence: u64, reply: Result<Reply, Error>) {
        match reply {
            Ok(reply) => {
                let room = self.came_back(reply.body(), sequence);
                self.call_next(session, room);
            }
            Err(error) => self.fail(error.into()),
        }
    }
}
