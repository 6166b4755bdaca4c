//! `w4`: many connections, with many messages in flight on each.
//!
//! Once the first message is back the connection's reader thread does everything: for each
//! message that comes back it checks it and sends the next.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};

use trunkline::{Body, Client, Error, Framing, Session};

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
            session: OnceLock::new(),
            end: sender.clone(),
        });
        connected.push((connect(options, &flow)?, flow));
    }
    let run = Run::start(options)?;
    for (_, flow) in &connected {
        match options.framing {
            Framing::Native => flow.clone().call_next(1),
            _ => flow.push_next(1),
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
    let client = client::builder(options)
        .on_push(options.back_route(), move |_, body| {
            let expected = pushed.done.load(Relaxed);
            let room = pushed.came_back(&body, expected);
            pushed.push_next(room);
        })
        .on_closed(move |_, report| {
            closed.fail(format!("a session ended before the end: {report}").into());
        })
        .connect(options.address())?;
    flow.session.get_or_init(|| client.session());
    Ok(client)
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
    /// Set before the first message.
    session: OnceLock<Session>,
    /// Where to tell how many errors there were, or that there will be no end.
    end: Sender<Result<u64, Failure>>,
}

impl Flow {
    /// A message is back; the answer is how many may follow it.
    fn came_back(&self, body: &[u8], sequence: u64) -> u64 {
        if !payload::is_intact(body, self.template.len(), sequence) {
            self.errors.fetch_add(1, Relaxed);
        }
        // One thread at a time counts: the connection's reader.
        let done = self.done.load(Relaxed) + 1;
        self.done.store(done, Relaxed);
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
        let first = self.begun.load(Relaxed);
        self.begun.store(first + room, Relaxed);
        (first..self.share.min(first + room)).map(|sequence| Stamped {
            template: &self.template,
            sequence,
        })
    }

    fn push_next(&self, room: u64) {
        let Some(session) = self.session.get() else {
            return;
        };
        for body in self.next(room) {
            if let Err(error) = session.push(self.route, body) {
                return self.fail(error.into());
            }
        }
    }

    fn call_next(self: Arc<Self>, room: u64) {
        let first = self.begun.load(Relaxed);
        let last = self.share.min(first + room);
        self.begun.store(first + room, Relaxed);
        // The last call takes this handle along instead of another one.
        let mut flow = Some(self);
        for sequence in first..last {
            let this = match sequence + 1 == last {
                true => flow.take(),
                false => flow.clone(),
            };
            if let Some(this) = this {
                this.call(sequence);
            }
        }
    }

    fn call(self: Arc<Self>, sequence: u64) {
        let flow = self.clone();
        let Some(session) = self.session.get() else {
            return;
        };
        let body = Stamped {
            template: &self.template,
            sequence,
        };
        let sent = session
            .request(ECHO)
            .call_then(body, move |reply| flow.replied(sequence, reply));
        if let Err(error) = sent {
            self.fail(error.into());
        }
    }

    fn replied(self: Arc<Self>, sequence: u64, reply: Result<Body<'_>, Error>) {
        match reply {
            Ok(body) => {
                let room = self.came_back(&body, sequence);
                self.call_next(room);
            }
            Err(error) => self.fail(error.into()),
        }
    }
}
