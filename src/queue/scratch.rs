//! A buffer per thread for encoding. It is taken out while user code runs, so that code which
//! sends from within an encoder only costs an allocation.

use std::cell::Cell;

/// A buffer that grew beyond this for one message is not kept.
const KEEP: usize = 64 << 10;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Runs `use_it` with an empty buffer. In what a thread drops at its end it is a new one.
pub(crate) fn with<R>(use_it: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = SPARE.try_with(Cell::take).unwrap_or_default();
    buffer.clear();
    let result = use_it(&mut buffer);
    if buffer.capacity() <= KEEP {
        let _ = SPARE.try_with(|spare| spare.set(buffer));
    }
    result
}
