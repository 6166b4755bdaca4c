//! Pages that answer one question each; the [crate page](crate) is the way in.
//!
//! | page | answers |
//! |---|---|
//! | [`promises`] | what may I rely on, and what not yet? |
//! | [`threads`] | which threads run, and what may a handler do? |
//! | [`limits`] | how much, how long, and what happens then? |
//! | [`errors`] | whose fault is it, and does a retry help? |
//! | [`logging`] | what stands in the log? |
//! | [`statistics`] | what do the figures tell? |
//! | [`embedded`] | does it fit a small machine? |
//! | [`policy`] | what may change in which version? |
//! | [`coming_from`] | what are my old words called here? |

pub mod coming_from;
pub mod embedded;
pub mod errors;
pub mod limits;
pub mod logging;
pub mod policy;
pub mod promises;
pub mod statistics;
pub mod threads;
