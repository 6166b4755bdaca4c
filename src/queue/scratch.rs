//! A buffer per thread for encoding. It is taken out while user code runs, so that code which
//! sends from within an encoder only costs an allocation; as does what sends while its thread
//! ends, from the `drop` of a value that the thread kept.

use std::cell::Cell;

/// A buffer that grew beyond this for one message is not kept.
const KEEP: usize = 64 << 10;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Runs `use_it` with an empty buffer.
pub(crate) fn with<R>(use_it: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = SPARE.try_with(Cell::take).unwrap_or_default();
    buffer.clear();
    let result = use_it(&mut buffer);
    if buffer.capacity() <= KEEP {
        // A thread that ends keeps none.
        let _ = SPARE.try_with(|spare| spare.set(buffer));
    }
    result
}
