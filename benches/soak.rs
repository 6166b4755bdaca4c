//! The cuts of the tests in any number: `cargo bench --bench soak [-- CUTS [SEED]]`.
//!
//! Each cuts a connection at a random byte while both ends push and call, and holds what each
//! end reports against what the other received. It stops at the first promise that is broken,
//! and says how to repeat it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    missing_debug_implementations
)]

#[allow(dead_code, unused_imports, reason = "the tests need more of it")]
#[path = "../tests/it"]
mod it {
    pub(crate) mod cuts {
        pub(crate) mod ends;
        pub(crate) mod random;
    }
    pub(crate) mod support;
}

use std::time::Instant;

use it::{cuts, support};

/// Cuts between two lines of output.
const ROUND: usize = 1_000;

fn main() {
    // Cargo adds `--bench`.
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse().ok());
    let cuts = numbers.next().unwrap_or(10_000);
    let seed = numbers.next().unwrap_or(1) as u64;
    let begun = Instant::now();
    let mut done = 0;
    while done < cuts {
        let seed = seed + (done / ROUND) as u64;
        let count = ROUND.min(cuts - done);
        let reasons = cuts::random::cut_at_random(seed, count);
        done += count;
        let seconds = begun.elapsed().as_secs_f64();
        println!("{done} cuts in {seconds:.1} s, the last {count} with seed {seed}: {reasons:?}");
    }
    println!("after each cut the counts enclosed what was lost, nothing came twice, nobody waited");
}
