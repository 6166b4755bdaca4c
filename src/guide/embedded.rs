//! Small machines: what it takes, and how to make it take less.
//!
//! It needs an operating system with threads and sockets, that is Linux: this is a crate for
//! gateways and boards that run it, not for microcontrollers.
//!
//! # What to set
//!
//! ```
//! # use std::time::Duration;
//! # use trunkline::{Limits, Server, SocketOptions, Timeouts};
//! let mut socket = SocketOptions::default();
//! socket.read_buffer_least = 1 << 10;
//! socket.read_buffer_most = 8 << 10;
//! let builder = Server::builder()
//!     .limits(Limits::embedded())
//!     .socket_options(socket)
//!     .stack_bytes(256 << 10)
//!     .on_thread_start(|thread| eprintln!("{}", thread.name));
//! # drop(builder);
//! ```
//!
//! | setting | effect |
//! |---|---|
//! | [`Limits::embedded`](crate::Limits::embedded) | 64 sessions, frames up to 1 MiB, at most 640 KiB in the queues of a session and 32 MiB held for all peers; the [table](super::limits#sizes-and-counts) has both presets side by side |
//! | `frame_bytes`, `body_bytes` | the next to lower: one frame that comes is held as a whole |
//! | `read_buffer_least`, `read_buffer_most` | 4 and 64 KiB for each session, idle and busy |
//! | `send_buffer`, `receive_buffer` | the kernel's buffers, tuned by the system otherwise, up to megabytes |
//! | [`stack_bytes`](crate::ServerBuilder::stack_bytes) | address space for each thread, 512 KiB by default. Only used pages take memory, but on 32 bits the space itself is scarce: 64 sessions with two threads each take 64 MiB of it |
//! | [`on_thread_start`](crate::ServerBuilder::on_thread_start) | priority and affinity of each thread |
//!
//! # What a session takes
//!
//! | | idle | at most |
//! |---|---|---|
//! | memory of the process | about 32 KiB on x86-64, stack pages included; a test holds it below 64 KiB | the [limits](super::limits#memory-of-a-session) |
//! | threads | 1 | 2, and 16 more while handlers wait inside each other |
//! | file descriptors | 1 | 1 |
//! | processor | nothing polls; a ping every 10 s, or as [`Heartbeat`](crate::Heartbeat) says | |
//!
//! # Machines
//!
//! - 32 bits are enough: lengths that a machine cannot address are refused. Every change is
//!   tested on ARMv7 (emulated) and on x86 of 32 bits.
//! - No 64-bit atomics are needed: where a machine has none, as many 32-bit ARM and MIPS ones, a
//!   lock takes their place. A test keeps `AtomicU64` out of the sources.
//! - Byte order does not matter: the wire is little-endian everywhere.
//! - Time is monotonic: setting the clock ends and prolongs nothing, and no real-time clock is
//!   needed.
//! - There is no unsafe code in the crate itself, and no C to compile.
//!
//! # As a daemon
//!
//! The example `daemon` of the repository is a service as systemd runs one: it ends tidily at
//! SIGTERM, logs with priorities to standard error, and shows its [figures](super::statistics) to
//! whoever reads a Unix socket. A socket that systemd has opened is served with
//! [`ServerBuilder::from_listener`](crate::ServerBuilder::from_listener).
//!
//! # Lines without a network
//!
//! [`Framed`](crate::Framed) reads and writes messages on a serial line, or on anything else that
//! carries bytes, without a thread.
