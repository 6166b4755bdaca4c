//! One timed run, seen from the client: the clock, and what both processes use meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::options::Options;
use crate::probe::{Process, Usage, own_usage};
use crate::report::Report;

/// How long the server comes to rest before its memory is looked at.
const REST: Duration = Duration::from_millis(300);

/// A run whose clock runs.
pub(crate) struct Run<'o> {
    options: &'o Options,
    server: Process,
    server_before: Usage,
    client_before: Usage,
    begun: Instant,
}

impl<'o> Run<'o> {
    pub(crate) fn start(options: &'o Options) -> Result<Self, Failure> {
        let server = Process::new(options.server_pid);
        Ok(Run {
            options,
            server_before: server.usage(),
            client_before: own_usage()?,
            server,
            begun: Instant::now(),
        })
    }

    /// Stops the clock.
    pub(crate) fn finish(self, errors: u64) -> Result<Report, Failure> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let client = own_usage()?.since(&self.client_before);
        let server = self.server.usage().since(&self.server_before);
        let options = self.options;
        let rate = options.count as f64 / seconds;
        let mut report = Report::new(options);
        report.add("count", options.count);
        report.add("secs", format_args!("{seconds:.4}"));
        report.add("rate", format_args!("{rate:.1}"));
        report.add(
            "mb_s",
            format_args!("{:.1}", rate * options.size as f64 / 1e6),
        );
        for (name, usage) in [("cli", &client), ("srv", &server)] {
            let busy = (usage.user + usage.system) / seconds;
            let system = usage.system / seconds;
            report.add(&format!("{name}_cpu"), format_args!("{busy:.3}"));
            report.add(&format!("{name}_sys"), format_args!("{system:.3}"));
            report.add(&format!("{name}_vcs"), usage.voluntary_switches);
            report.add(&format!("{name}_ivcs"), usage.involuntary_switches);
        }
        report.add("srv_rss_kb", self.server.resident());
        report.add("srv_threads", self.server.thread_count());
        report.set_errors(errors);
        Ok(report)
    }
}

/// The server's memory before the connections of a run, and with them.
pub(crate) struct Memory {
    server: Process,
    connections: usize,
    before: u64,
    idle: u64,
}

impl Memory {
    pub(crate) fn before(options: &Options) -> Self {
        let server = Process::new(options.server_pid);
        Memory {
            before: server.resident(),
            idle: 0,
            connections: options.connections,
            server,
        }
    }

    /// Looks again, once every connection is open and idle.
    pub(crate) fn look_at_rest(&mut self) {
        thread::sleep(REST);
        self.idle = self.server.resident();
    }

    pub(crate) fn add_to(&self, report: &mut Report) {
        let each = self.idle.saturating_sub(self.before) as f64 / self.connections as f64;
        report.add("rss_base_kb", self.before);
        report.add("rss_idle_kb", self.idle);
        report.add("rss_per_conn_kb", format_args!("{each:.2}"));
    }
}
