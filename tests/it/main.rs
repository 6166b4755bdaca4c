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
mod deadlines;
mod display;
mod embedded;
mod framed;
mod framing;
mod golden;
mod guide;
mod handlers;
mod handles;
mod heartbeats;
mod hostile;
mod hostile_peers;
mod house;
mod hub;
mod inbox;
mod intact;
mod interceptors;
mod limits_live;
mod log_records;
mod nesting;
mod order;
mod own_sockets;
mod pools;
mod protocols;
mod proxying;
mod reconnect;
#[cfg(feature = "config")]
mod settings;
mod slow_peers;
mod socket_options;
mod stats;
mod support;
mod threads;
mod unix;
