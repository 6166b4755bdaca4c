//! The command line.

use std::str::FromStr;

use trunkline::Framing;

use crate::Failure;

/// Calls that are answered with their own body.
pub(crate) const ECHO: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    Client,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// `w1` and `w1b`, which differ in the number of threads.
    Pushes,
    /// `w2`
    OneCaller,
    /// `w3`
    ManyCallers,
    /// `w4`
    Echoes,
    /// `w5`
    ManyConnections,
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) role: Role,
    pub(crate) workload: Workload,
    pub(crate) workload_name: String,
    pub(crate) framing: Framing,
    pub(crate) variant: String,
    pub(crate) port: u16,
    /// Bytes of a body.
    pub(crate) size: usize,
    /// Messages or calls in all.
    pub(crate) count: u64,
    pub(crate) threads: usize,
    pub(crate) connections: usize,
    /// Messages in flight on one connection.
    pub(crate) window: u64,
    pub(crate) server_pid: u32,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, Failure> {
        let role = match words.next().as_deref() {
            Some("server") => Role::Server,
            Some("client") => Role::Client,
            _ => return Err("usage: bench server|client --port P --workload W ...".into()),
        };
        let mut options = Options {
            role,
            workload: Workload::Pushes,
            workload_name: "w1".into(),
            framing: Framing::Native,
            variant: "native".into(),
            port: 0,
            size: 64,
            count: 100_000,
            threads: 1,
            connections: 1,
            window: 128,
            server_pid: 0,
        };
        while let Some(name) = words.next() {
            let value = words.next().ok_or(format!("{name} needs a value"))?;
            match name.as_str() {
                "--workload" => options.workload_name = value,
                "--variant" => options.variant = value,
                "--port" => options.port = number(&name, &value)?,
                "--size" => options.size = number(&name, &value)?,
                "--count" => options.count = number(&name, &value)?,
                "--threads" => options.threads = number(&name, &value)?,
                "--conns" => options.connections = number(&name, &value)?,
                "--window" => options.window = number(&name, &value)?,
                "--server-pid" => options.server_pid = number(&name, &value)?,
                // Sizes a buffer of other peers.
                "--buf" => {}
                _ => return Err(format!("unknown option {name}").into()),
            }
        }
        options.choose()?;
        Ok(options)
    }

    /// Finds out what the names of workload and variant mean.
    fn choose(&mut self) -> Result<(), Failure> {
        self.workload = match self.workload_name.as_str() {
            "w1" | "w1b" => Workload::Pushes,
            "w2" => Workload::OneCaller,
            "w3" => Workload::ManyCallers,
            "w4" => Workload::Echoes,
            "w5" => Workload::ManyConnections,
            other => return Err(format!("there is no workload {other}").into()),
        };
        self.framing = match (self.variant.as_str(), self.workload) {
            ("native" | "default", _) => Framing::Native,
            ("length", Workload::Pushes | Workload::Echoes) => Framing::LengthPrefixed,
            (other, _) => {
                return Err(format!("no variant {other} of {}", self.workload_name).into());
            }
        };
        if self.size < 4 || self.threads == 0 || self.connections == 0 || self.window == 0 {
            return Err("bodies have 4 bytes or more; there is one of everything at least".into());
        }
        Ok(())
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The route of measured pushes; a protocol without routes has only route 0.
    pub(crate) fn push_route(&self) -> u32 {
        u32::from(self.framing == Framing::Native)
    }

    /// The route of what the server pushes back.
    pub(crate) fn back_route(&self) -> u32 {
        self.push_route() * 2
    }

    /// What one of `parts` has to do of the whole count; the first takes the rest.
    pub(crate) fn share(&self, part: usize, parts: usize) -> u64 {
        let each = self.count / parts as u64;
        match part {
            0 => each + self.count % parts as u64,
            _ => each,
        }
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, Failure> {
    value
        .parse()
        .map_err(|_| format!("{name} {value}: not a number that fits").into())
}
