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

mod basics;
mod framing;
mod golden;
mod hostile;
mod house;
