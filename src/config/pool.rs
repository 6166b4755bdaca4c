//! On which threads handlers run.

use std::thread::available_parallelism;

/// On which threads the handlers of a client or server run; see
/// [`guide::threads`](crate::guide::threads#a-pool).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dispatch {
    /// On the thread that reads the session, straight from its buffer: the least delay and no
    /// copy. The default.
    #[default]
    Inline,
    /// On worker threads, which all sessions of a server share: for handlers that take long.
    Pool(Pool),
}

/// The worker threads that handlers run on.
///
/// ```
/// # use trunkline::{Dispatch, Pool, Server};
/// let mut pool = Pool::default();
/// pool.threads = 16;
/// let builder = Server::builder().dispatch(Dispatch::Pool(pool));
/// # drop(builder);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pool {
    /// The most threads, each started when a message would wait for one, and kept. Default: as
    /// many as the machine runs at a time, and two at least. Zero is refused by the builder.
    pub threads: usize,
    /// Pushes that may wait for a thread, beside `limits.pool_bytes` of them. Default 1,024. Zero
    /// is refused by the builder. Calls that wait are bounded by `limits.incoming_calls` and
    /// `limits.incoming_call_bytes` of their session.
    pub messages: usize,
    /// Whether the messages of one session are handled one after the other, in the order of
    /// arrival. Default true. If not, they are begun in that order and run at the same time.
    pub ordered: bool,
}

impl Default for Pool {
    fn default() -> Self {
        Pool {
            threads: available_parallelism().map_or(2, |threads| threads.get().max(2)),
            messages: 1_024,
            ordered: true,
        }
    }
}
