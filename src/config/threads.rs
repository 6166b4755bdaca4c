//! How the threads of a client or server are started.

use std::fmt;
use std::sync::Arc;

/// What a thread of this crate is for; see [`guide::threads`](crate::guide::threads).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThreadRole {
    /// Reads a connection and runs its handlers, or stands in for one that does.
    Reader,
    /// Writes to a connection under load.
    Writer,
    /// Accepts the connections of a listener.
    Accept,
    /// Runs handlers of a [`Pool`](crate::Pool).
    Pool,
}

/// A thread that has just started, as the hook on its start sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StartedThread<'a> {
    /// What it is for.
    pub role: ThreadRole,
    /// Its name, such as `tl-read-7`.
    pub name: &'a str,
}

type StartHook = Arc<dyn Fn(&StartedThread<'_>) + Send + Sync>;

/// What the builders say about threads.
#[derive(Clone, Default)]
pub(crate) struct ThreadOptions {
    pub(crate) stack_bytes: Option<usize>,
    pub(crate) on_start: Option<StartHook>,
}

impl fmt::Debug for ThreadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadOptions")
            .field("stack_bytes", &self.stack_bytes)
            .finish_non_exhaustive()
    }
}
