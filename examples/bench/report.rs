//! The line of JSON that a client prints.

use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};
use std::process::ExitCode;

use hdrhistogram::Histogram;

use crate::Failure;
use crate::options::Options;

/// Fields, in the order in which they were added.
pub(crate) struct Report {
    fields: String,
    errors: u64,
}

impl Report {
    /// Begins with what was asked for.
    pub(crate) fn new(options: &Options) -> Self {
        let mut report = Report {
            fields: String::new(),
            errors: 0,
        };
        report.add("workload", quoted(&options.workload_name));
        report.add("variant", quoted(&options.variant));
        report.add("size", options.size);
        report.add("threads", options.threads);
        report.add("conns", options.connections);
        report.add("window", options.window);
        report
    }

    /// A run that came to no result.
    pub(crate) fn failed(options: &Options, failure: &dyn Display) -> Self {
        let mut report = Report::new(options);
        report.add("err", quoted(&failure.to_string()));
        report.set_errors(1);
        report
    }

    pub(crate) fn add(&mut self, name: &str, value: impl Display) {
        let comma = if self.fields.is_empty() { "" } else { "," };
        // Writing to a string does not fail.
        let _ = write!(self.fields, "{comma}\"{name}\":{value}");
    }

    pub(crate) fn set_errors(&mut self, errors: u64) {
        self.errors = errors;
    }

    /// Percentiles of latencies in nanoseconds.
    pub(crate) fn add_latencies(&mut self, latencies: &[u64]) -> Result<(), Failure> {
        let mut histogram = Histogram::<u64>::new(3)?;
        for nanoseconds in latencies {
            histogram.record(*nanoseconds)?;
        }
        for (name, quantile) in [("p50_us", 0.5), ("p99_us", 0.99), ("max_us", 1.0)] {
            let microseconds = histogram.value_at_quantile(quantile) as f64 / 1e3;
            self.add(name, format_args!("{microseconds:.1}"));
        }
        Ok(())
    }

    /// Prints the line; the answer is how the process ends.
    pub(crate) fn print(mut self) -> ExitCode {
        let errors = self.errors;
        self.add("errors", errors);
        self.add("ok", errors == 0);
        let mut output = io::stdout().lock();
        let printed = writeln!(output, "{{{}}}", self.fields).and_then(|()| output.flush());
        match printed {
            Ok(()) if errors == 0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_default())
}
