//! How threads wait for what comes from the peer.

/// How threads wait for what comes from the peer: callers for replies, and readers for anything.
///
/// To wake a thread that sleeps costs more than a round trip on the same machine. A thread that
/// polls instead, giving its core away between two looks, goes on at once, and uses processor time
/// meanwhile. Either builder has `wait` for all its sessions.
///
/// | | [`Park`](Wait::Park) | [`Adaptive`](Wait::Adaptive) | [`Spin`](Wait::Spin) |
/// |---|---|---|---|
/// | a caller polls | never | for up to 200 µs, as long as replies come within 100 µs | until its time limit |
/// | a reader polls its socket | never | for up to 200 µs, as long as what comes next comes within 100 µs | for up to 100 ms |
/// | a session on which little happens costs | nothing | nothing | nothing but these 100 ms each time |
/// | for | batteries, small or crowded machines, slow peers | most programs | the lowest latency, on cores that are there for it |
///
/// At most half of the cores of a process, and at least one, are used by readers that poll at the
/// same time, whatever the mode; the other readers sleep. Callers are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum Wait {
    /// Threads sleep at once. It takes the least processor time; a call takes about two wakes of
    /// a thread longer.
    Park,
    /// Threads poll where it has paid lately: after 64 waits in a row that were too long they
    /// sleep at once, and of each 4,096 such waits they try 64 again. The default.
    #[default]
    Adaptive,
    /// Threads poll, whatever it costs: a caller may keep a core busy until its reply comes, and
    /// so may the reader of a busy session.
    #[doc(alias = "busy_poll")]
    Spin,
}
