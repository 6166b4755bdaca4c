//! What a process has used: processor time, context switches, memory, threads.

use std::fs;
use std::path::PathBuf;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::Failure;

/// Linux tells processor time in hundredths of a second, whatever its own clock does.
const TICKS: f64 = 100.0;

/// Seconds and counts since the process began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
}

impl Usage {
    /// What was used since `earlier`.
    pub(crate) fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user: self.user - earlier.user,
            system: self.system - earlier.system,
            // The switches of a thread are forgotten with it.
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }
}

/// The usage of this process.
pub(crate) fn own_usage() -> Result<Usage, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(Usage {
        user: seconds(usage.user_time()),
        system: seconds(usage.system_time()),
        voluntary_switches: usage.voluntary_context_switches().try_into()?,
        involuntary_switches: usage.involuntary_context_switches().try_into()?,
    })
}

/// Another process, seen through `/proc`. What cannot be read is 0.
pub(crate) struct Process {
    folder: PathBuf,
}

impl Process {
    pub(crate) fn new(pid: u32) -> Self {
        Process {
            folder: PathBuf::from(format!("/proc/{pid}")),
        }
    }

    /// Its usage: times in steps of 10 ms, and the switches of the threads it has.
    pub(crate) fn usage(&self) -> Usage {
        let stat = self.read("stat");
        // Behind the name, which may hold anything, come state and numbers.
        let numbers = stat.rsplit(')').next().unwrap_or_default();
        let mut times = numbers
            .split_whitespace()
            .skip(11)
            .map(|number| number.parse::<f64>().unwrap_or(0.0) / TICKS);
        let mut usage = Usage {
            user: times.next().unwrap_or(0.0),
            system: times.next().unwrap_or(0.0),
            ..Usage::default()
        };
        for thread in self.threads() {
            let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
            usage.voluntary_switches += field(&status, "voluntary_ctxt_switches:");
            usage.involuntary_switches += field(&status, "nonvoluntary_ctxt_switches:");
        }
        usage
    }

    /// Its resident memory in KiB.
    pub(crate) fn resident(&self) -> u64 {
        field(&self.read("status"), "VmRSS:")
    }

    pub(crate) fn thread_count(&self) -> usize {
        self.threads().count()
    }

    fn threads(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let tasks = fs::read_dir(self.folder.join("task"));
        tasks
            .into_iter()
            .flatten()
            .flatten()
            .map(|task| task.path())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }
}

/// The number behind a name in a status file.
fn field(status: &str, name: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
