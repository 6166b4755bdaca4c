//! A snapshot as text for Prometheus and what reads its format.

use std::fmt;

use super::Stats;

impl Stats {
    /// The figures in Prometheus' text exposition format, version 0.0.4: counters end in
    /// `_total`, times are in seconds, and the handler time is a summary.
    ///
    /// Each name begins with `prefix` and an underscore, with nothing if the prefix is empty;
    /// characters of the prefix that the format does not allow become underscores.
    ///
    /// ```
    /// # fn main() -> Result<(), trunkline::Error> {
    /// let server = trunkline::Server::builder()
    ///     .on_call("/metrics", |cx, _| match cx.hub() {
    ///         Some(hub) => hub.stats().prometheus("trunkline"),
    ///         None => String::new(),
    ///     })
    ///     .bind("127.0.0.1:0")?;
    /// let client = trunkline::Client::connect(server.local_address())?;
    /// let text: String = client.call_as("/metrics", ())?;
    /// assert!(text.contains("trunkline_sessions 1\n"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn prometheus(&self, prefix: &str) -> String {
        let prefix = valid(prefix);
        Exposition {
            stats: self,
            prefix: &prefix,
        }
        .to_string()
    }
}

/// The beginning of all names, made of what names may be made of.
fn valid(prefix: &str) -> String {
    if prefix.is_empty() {
        return String::new();
    }
    let digit_first = prefix.starts_with(|first: char| first.is_ascii_digit());
    let valid = |c: char| match c.is_ascii_alphanumeric() || c == ':' {
        true => c,
        false => '_',
    };
    let head = digit_first.then_some('_');
    let prefix = head.into_iter().chain(prefix.chars().map(valid));
    prefix.chain(['_']).collect()
}

struct Exposition<'a> {
    stats: &'a Stats,
    prefix: &'a str,
}

impl Exposition<'_> {
    /// What a name means; its samples follow.
    fn describe(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        kind: &str,
        help: &str,
    ) -> fmt::Result {
        let prefix = self.prefix;
        writeln!(f, "# HELP {prefix}{name} {}", help.trim())?;
        writeln!(f, "# TYPE {prefix}{name} {kind}")
    }

    fn handler_time(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = self.prefix;
        let name = "handler_time_seconds";
        let time = self.stats.handler_time();
        self.describe(f, name, "summary", "How long handlers ran, from a sample.")?;
        if let Some(time) = &time {
            let p99 = time.p99.as_secs_f64();
            writeln!(f, "{prefix}{name}{{quantile=\"0.99\"}} {p99}")?;
        }
        let sum = time.map_or(0.0, |time| time.total.as_secs_f64());
        let count = time.map_or(0, |time| time.samples);
        writeln!(f, "{prefix}{name}_sum {sum}")?;
        writeln!(f, "{prefix}{name}_count {count}")?;
        let name = "handler_time_peak_seconds";
        let peak = time.map_or(0.0, |time| time.maximum.as_secs_f64());
        self.describe(f, name, "gauge", "The slowest handler of the sample.")?;
        writeln!(f, "{prefix}{name} {peak}")
    }
}

impl fmt::Display for Exposition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = self.prefix;
        for figure in self.stats.figures() {
            let (suffix, kind) = match figure.is_counter {
                true => ("_total", "counter"),
                false => ("", "gauge"),
            };
            let name = format!("{}{suffix}", figure.name);
            self.describe(f, &name, kind, figure.help)?;
            writeln!(f, "{prefix}{name} {}", figure.value)?;
        }
        let help = "How full the fullest send queue is; from 1 on no push or call finds room.";
        self.describe(f, "queue_fill", "gauge", help)?;
        writeln!(f, "{prefix}queue_fill {}", self.stats.queue_fill())?;
        self.handler_time(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_becomes_the_beginning_of_valid_names() {
        for (prefix, begins) in [
            ("", ""),
            ("trunkline", "trunkline_"),
            ("a:b_c", "a:b_c_"),
            ("my-app.v2 é", "my_app_v2___"),
            ("2nd", "_2nd_"),
        ] {
            assert_eq!(valid(prefix), begins);
        }
    }
}
