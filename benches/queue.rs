//! The send queue beside two yardsticks: `cargo bench --bench queue [-- --quick]`.
//!
//! Producers append frames, one consumer takes and discards them; nothing is written anywhere.
//! All stand in one interleaved run, and the ratios are medians of what each round gave: what
//! the queue makes of the yardstick that is a parking_lot mutex around two swapped byte buffers,
//! and beside it crossbeam's SegQueue with a frame in each element. The queue counts bytes and
//! messages against its bound in all that, as in a connection; so does a counter for each of the
//! others.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub
)]

#[allow(dead_code, unused_imports, reason = "the crate needs more of it")]
#[path = "../src"]
mod source {
    pub(crate) mod error;
    pub(crate) mod escape;
    pub(crate) mod memory;
    pub(crate) mod queue;
    pub(crate) mod stats;
    pub(crate) mod status;
}
use source::{error, escape, memory, queue, stats, status};

#[path = "queue/contestants.rs"]
mod contestants;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use contestants::{Contestant, MutexBuffers, Ours, Segments};

const SIZES: [usize; 4] = [4, 64, 256, 1024];
const PRODUCERS: [usize; 3] = [1, 2, 4];

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (rounds, length) = match is_quick {
        true => (1, Duration::from_millis(20)),
        false => (5, Duration::from_millis(200)),
    };
    println!("| frame | producers | mutex and two buffers | this queue | SegQueue |");
    println!("|---|---|---|---|---|");
    for size in SIZES {
        for producers in PRODUCERS {
            let rates: Vec<[f64; 3]> = (0..rounds)
                .map(|_| {
                    [
                        rate(&MutexBuffers::default(), size, producers, length),
                        rate(&Ours::default(), size, producers, length),
                        rate(&Segments::default(), size, producers, length),
                    ]
                })
                .collect();
            let of = |each: fn(&[f64; 3]) -> f64| median(rates.iter().map(each).collect());
            println!(
                "| {size} B | {producers} | {:.1} M/s | {:.2} | {:.2} |",
                of(|[mutex, ..]| mutex / 1e6),
                of(|[mutex, ours, _]| ours / mutex),
                of(|[mutex, _, segments]| segments / mutex),
            );
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Frames a second, counted where they are taken.
fn rate(queue: &impl Contestant, size: usize, producers: usize, length: Duration) -> f64 {
    let frame = vec![7; size];
    let over = AtomicBool::new(false);
    let start = Barrier::new(producers + 1);
    thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| {
                start.wait();
                while !over.load(Ordering::Relaxed) {
                    if !queue.append(&frame) {
                        thread::yield_now();
                    }
                }
            });
        }
        start.wait();
        let begun = Instant::now();
        let mut taken = 0;
        while begun.elapsed() < length {
            match queue.take() {
                0 => thread::yield_now(),
                frames => taken += frames,
            }
        }
        over.store(true, Ordering::Relaxed);
        taken as f64 / begun.elapsed().as_secs_f64()
    })
}
