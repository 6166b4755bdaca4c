//! The conversation, without sockets, threads or a clock: which calls are open, what was
//! delivered, how the session closes, and whether the peer behaves. `now` is always passed in.

pub(crate) mod backoff;
pub(crate) mod calls;
pub(crate) mod closing;
pub(crate) mod delivery;
pub(crate) mod heartbeat;
pub(crate) mod watch;
