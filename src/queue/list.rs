//! The list of frames put aside: crossbeam's, or a locked one in loom's models, which prove
//! the protocol around the list and not crossbeam itself.

#[cfg(not(loom))]
pub(super) struct List<T>(crossbeam::queue::SegQueue<T>);

#[cfg(not(loom))]
impl<T> List<T> {
    pub(super) fn new() -> Self {
        List(crossbeam::queue::SegQueue::new())
    }

    pub(super) fn push(&self, value: T) {
        self.0.push(value);
    }

    pub(super) fn pop(&self) -> Option<T> {
        self.0.pop()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(loom)]
pub(super) struct List<T>(loom::sync::Mutex<std::collections::VecDeque<T>>);

#[cfg(loom)]
impl<T> List<T> {
    pub(super) fn new() -> Self {
        List(loom::sync::Mutex::new(std::collections::VecDeque::new()))
    }

    pub(super) fn push(&self, value: T) {
        self.0.lock().unwrap().push_back(value);
    }

    pub(super) fn pop(&self) -> Option<T> {
        self.0.lock().unwrap().pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}
