//! The behaviour of the crate as its users see it: one binary, a module per behaviour.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    missing_debug_implementations
)]

mod addresses;
mod backpressure;
mod basics;
mod calls;
mod catalogue;
mod closing;
mod cuts;
mod framing;
mod golden;
mod handlers;
mod hostile;
mod hostile_peers;
mod house;
mod inbox;
mod intact;
mod limits_live;
mod nesting;
mod order;
mod protocols;
mod support;
mod threads;
mod unix;
