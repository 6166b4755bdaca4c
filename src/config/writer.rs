//! Who writes to the socket of a session.

/// Who writes to the socket of a session.
///
/// | | [`OnDemand`](Writer::OnDemand) | [`Thread`](Writer::Thread) |
/// |---|---|---|
/// | a lone message | is written by who sends it, without blocking | wakes the writer thread, which costs about as much as a write |
/// | many messages | are written by the writer thread | are written by the writer thread |
/// | time of a sender | a write now and then | never a write |
/// | threads of an idle session | the reader | reader and writer |
///
/// Either builder has `writer` for all its sessions. Order, limits and delivery are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum Writer {
    /// A sender that finds the session idle writes by itself; the writer thread exists from the
    /// first load on. The default.
    #[default]
    OnDemand,
    /// The writer thread writes everything, from the beginning of the session on. One exception:
    /// dropping the last handle of a client writes what the system takes at once, as the process
    /// may end after it.
    Thread,
}
