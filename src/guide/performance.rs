//! What bounds the engine, what a message costs, and what was tried.
//!
//! # How it was measured
//!
//! Server and client are two processes on 127.0.0.1, on two virtual cores (AMD EPYC, KVM, Linux
//! 6.18), in release builds; all take turns in one run, and a ratio is the median of what five
//! rounds gave. Such a machine has fast and slow minutes: absolute figures of two runs differ by
//! half and more, and ratios of one run spread by 10 to 50 %. `benches/peers/compare` repeats it,
//! `cargo bench --bench queue` holds the send queue alone against others.
//!
//! The references are bare sockets: *swap* is a mutex around two buffers and a writer thread,
//! *batch* a loop that fills a buffer and writes it, *raw* a blocking read and write.
//!
//! # What a message costs
//!
//! | workload | rate | to the reference | processor time a message | context switches a message |
//! |---|---|---|---|---|
//! | 4 B one way | 15.6 M/s | 0.53 of swap | 0.12 µs | under 0.001 |
//! | 64 B one way | 12.4 M/s | 0.48 of swap | 0.14 µs | under 0.001 |
//! | 1 KiB one way | 2.8 M/s | 0.93 of swap | 0.7 µs | 0.002 |
//! | 64 B one way, 4 threads | 11.9 M/s | 0.65 of swap | 0.16 µs | under 0.001 |
//! | one caller, 581 B there and back | 41 k/s, p50 22 µs | 0.76 of raw's p50 | 47 µs | 0.04 |
//! | the same, [`Wait::Park`](crate::Wait::Park) | 22 k/s, p50 43 µs | 1.5 of raw's p50 | 48 µs | 3 |
//!
//! **Small pushes are bounded by instructions.** In the sender one takes about 370, besides the
//! clearing of memory that was written; in the receiver about 370 too, of which a tenth is the
//! handler of the benchmark itself. The system has a fourth of the sender's time and a third of the
//! receiver's, whose core is the one that is full.
//!
//! **Pushes of 1 KiB and more are bounded by the system's copying**: there is little between us and
//! bare sockets.
//!
//! **A lone call is bounded by waking**: a thread that sleeps on the other core is awake 20 to
//! 30 µs later, whatever a library does. Hence the polling of
//! [`Wait::Adaptive`](crate::Wait::Adaptive).
//!
//! # How often a body is copied
//!
//! | | sender | receiver |
//! |---|---|---|
//! | up to 64 KiB | into the open batch | by the system into the read buffer, where handlers borrow it |
//! | larger | into a buffer of its own | the same; the buffer grows with what has come |
//!
//! An owned reply is copied once more for its caller;
//! [`call_with`](crate::Session::call_with) lends it instead. A broadcast is encoded once.
//!
//! # What each refinement gave
//!
//! | what | gave |
//! |---|---|
//! | a lock of one word around the open batch, given back by a plain store, in place of parking_lot's | 4 B: 18 % |
//! | a sender that finds it taken pauses longer and longer before it puts its frame aside | 4 threads of 64 B: twice the rate |
//! | room taken ahead for a run of pushes, and no fence for each | with the lock: 4 threads of 64 B: 0.23 to 0.49 of swap |
//! | a short way for messages that are a number and a body | 64 B: 370 instead of 520 and 560 instructions |
//! | readers and callers that poll for up to 200 µs while answers are quick | one caller: p50 0.76 of raw's instead of 1.0 |
//!
//! # What was tried and failed
//!
//! - A lock-free double buffer (reserve in one word, count what is complete) and a lock-free ring of
//!   bytes, as prototypes: 0.8 of the mutex with two buffers.
//! - A sender that flushes by itself at 64 or 128 KiB: 1 KiB one way fell to two thirds.
//! - Yielding while holding the writer role, for company: nothing, 32 callers 0.81 against 0.82.
//! - A moving average of round trips to decide who polls: it makes the callers of a crowd sleep, and
//!   keeps them slow.
//! - More spinning without giving the core away in the queue's gate: 4 threads fell to 0.55 of swap,
//!   as the one inside may wait for that very core.
