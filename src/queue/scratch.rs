//! Per-thread buffers for encoding. They are taken out while user code may run, so that code
//! which sends from within an encoder only costs an allocation.

use std::cell::RefCell;

/// A buffer that grew beyond this for one message is not kept.
const KEEP: usize = 64 << 10;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `use_it` with an empty buffer.
pub(crate) fn with<R>(use_it: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = SPARE
        .with_borrow_mut(Vec::pop)
        .unwrap_or_else(|| Vec::with_capacity(1024));
    buffer.clear();
    let result = use_it(&mut buffer);
    if buffer.capacity() <= KEEP {
        SPARE.with_borrow_mut(|spare| spare.push(buffer));
    }
    result
}
