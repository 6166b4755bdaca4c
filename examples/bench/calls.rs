//! `w2`, `w3` and `w5`: threads that make one call at a time, on one connection or on many.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use trunkline::{Client, Error};

use crate::Failure;
use crate::client::{self, give_up};
use crate::options::{ECHO, Options, Workload};
use crate::payload::{self, PRODUCERS};
use crate::report::Report;
use crate::run::{Memory, Run};

/// Bytes of stack of a caller's thread.
const STACK: usize = 64 << 10;
/// Threads that connect at the same time.
const DIALLERS: usize = 4;

/// One connection, shared by all callers.
pub(crate) fn run_shared(options: &Options) -> Result<Report, Failure> {
    let client = client::builder(options).connect(options.address())?;
    let (callers, warm_up) = match options.workload {
        Workload::OneCaller => (1, 500),
        _ => (options.threads, 50),
    };
    let clients = vec![&client; callers];
    time(options, &clients, warm_up, || {})
}

/// A connection for every caller, and what the server needs for one.
pub(crate) fn run_many(options: &Options) -> Result<Report, Failure> {
    let mut memory = Memory::before(options);
    let clients = connect(options)?;
    let clients: Vec<_> = clients.iter().collect();
    let mut report = time(options, &clients, 1, || memory.look_at_rest())?;
    memory.add_to(&mut report);
    Ok(report)
}

fn connect(options: &Options) -> Result<Vec<Client>, Failure> {
    let dial = |dialler| {
        (dialler..options.connections)
            .step_by(DIALLERS)
            .map(|_| client::builder(options).connect(options.address()))
            .collect::<Result<Vec<_>, _>>()
    };
    thread::scope(|scope| {
        let start = |dialler| scope.spawn(move || dial(dialler));
        let diallers: Vec<_> = (0..DIALLERS).map(start).collect();
        let mut clients = Vec::new();
        for dialler in diallers {
            clients.extend(dialler.join().map_err(|_| "a dialler panicked")??);
        }
        Ok(clients)
    })
}

/// Times the callers: one for each entry of `clients`. `at_rest` runs when all are warm.
fn time(
    options: &Options,
    clients: &[&Client],
    warm_up: u64,
    at_rest: impl FnOnce(),
) -> Result<Report, Failure> {
    let barrier = Barrier::new(clients.len() + 1);
    thread::scope(|scope| {
        let start = |(number, client)| {
            let mut caller = Caller::new(options, client, number, clients.len());
            let barrier = &barrier;
            thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, move || {
                    let warm = caller.warm_up(warm_up);
                    barrier.wait();
                    barrier.wait();
                    warm.and_then(|()| caller.run())
                })
                // Those that have started wait for all.
                .unwrap_or_else(|error| give_up(options, &error.into()))
        };
        let threads: Vec<_> = clients.iter().copied().enumerate().map(start).collect();
        barrier.wait();
        at_rest();
        let run = Run::start(options);
        barrier.wait();
        let mut calls = Calls::default();
        let mut failure = None;
        for thread in threads {
            match thread.join().map_err(|_| "a caller panicked")? {
                Ok(more) => calls.add(more),
                Err(error) => failure = Some(error),
            }
        }
        let mut report = run?.finish(calls.errors)?;
        report.add_latencies(&calls.latencies)?;
        failure.map_or(Ok(report), |error| Err(error.into()))
    })
}

/// What came of calls. Latencies are a plain list: 5,000 histograms would weigh on the run.
#[derive(Default)]
struct Calls {
    /// Nanoseconds.
    latencies: Vec<u64>,
    errors: u64,
}

impl Calls {
    fn add(&mut self, more: Calls) {
        self.latencies.extend(more.latencies);
        self.errors += more.errors;
    }
}

/// One thread's part.
struct Caller<'c> {
    client: &'c Client,
    producer: usize,
    share: u64,
    body: Vec<u8>,
}

impl<'c> Caller<'c> {
    fn new(options: &Options, client: &'c Client, number: usize, callers: usize) -> Self {
        Caller {
            client,
            producer: number % PRODUCERS,
            share: options.share(number, callers),
            body: payload::template(options.size),
        }
    }

    fn warm_up(&mut self, calls: u64) -> Result<(), Error> {
        (0..calls).try_for_each(|sequence| self.call(sequence).map(drop))
    }

    fn run(&mut self) -> Result<Calls, Error> {
        let mut calls = Calls {
            latencies: Vec::with_capacity(self.share as usize),
            errors: 0,
        };
        let mut begun = Instant::now();
        for sequence in 0..self.share {
            calls.errors += u64::from(!self.call(sequence)?);
            let now = Instant::now();
            calls.latencies.push((now - begun).as_nanos() as u64);
            begun = now;
        }
        Ok(calls)
    }

    /// Whether the same body came back.
    fn call(&mut self, sequence: u64) -> Result<bool, Error> {
        payload::stamp(&mut self.body, self.producer, sequence);
        self.client
            .call_with(ECHO, &self.body, |echo| echo.as_bytes() == self.body)
    }
}
