//! A buffer per thread for encoding. It is taken out while user code runs, so that code which
//! sends from within an encoder only costs an allocation.

use std::cell::Cell;

/// A buffer that grew beyond this for one message is not kept.
const KEEP: usize = 64 << 10;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Runs `use_it` with an empty buffer.
pub(crate) fn with<R>(use_it: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = SPARE.take();
    buffer.clear();
    let result = use_it(&mut buffer);
    if buffer.capacity() <= KEEP {
        SPARE.set(buffer);
    }
    result
}
