//! What the application keeps with a session: one value of each type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::Session;

type Value = Arc<dyn Any + Send + Sync>;

/// The values of one session. No user code runs under the lock, not even a value's `drop`.
#[derive(Default)]
pub(super) struct Data(RwLock<Kept>);

#[derive(Default)]
struct Kept {
    values: HashMap<TypeId, Value>,
    /// The closed event has run: what comes now would keep itself alive if it held its session.
    is_over: bool,
}

impl Data {
    fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let value = self.0.read().values.get(&TypeId::of::<T>()).cloned();
        value.and_then(|value| value.downcast().ok())
    }

    fn replace<T: Send + Sync + 'static>(&self, value: Option<T>) -> Option<Arc<T>> {
        let id = TypeId::of::<T>();
        let value = value.map(|value| Arc::new(value) as Value);
        let mut kept = self.0.write();
        let old = match &value {
            Some(value) if !kept.is_over => kept.values.insert(id, value.clone()),
            _ => kept.values.remove(&id),
        };
        drop(kept);
        old.and_then(|old| old.downcast().ok())
    }

    fn insert_if_missing<T: Send + Sync + 'static>(&self, value: T) -> Arc<T> {
        let value = Arc::new(value);
        let mut kept = self.0.write();
        if kept.is_over {
            return value;
        }
        let place = kept.values.entry(TypeId::of::<T>());
        let found: Value = place.or_insert_with(|| value.clone()).clone();
        drop(kept);
        found.downcast().unwrap_or(value)
    }
}

/// Values of the application's own, one of each type, shared by all handles of the session. They
/// are dropped after the closed event, so that one that holds its session keeps nothing alive; from
/// then on none is kept.
impl Session {
    /// The value of this type, if there is one.
    pub fn data<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.attached.data.get()
    }

    /// Keeps a value; the answer is the one whose place it takes.
    #[doc(alias = "Swap")]
    pub fn set_data<T: Send + Sync + 'static>(&self, value: T) -> Option<Arc<T>> {
        self.attached.data.replace(Some(value))
    }

    /// The value of this type; if there is none, the one that `make` makes. Of two threads
    /// that make one at once both get the same, and the other is dropped.
    pub fn data_or_else<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.data()
            .unwrap_or_else(|| self.attached.data.insert_if_missing(make()))
    }

    /// Takes the value of this type out.
    pub fn take_data<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.attached.data.replace(None)
    }

    /// The session is over and its closed event has run.
    pub(crate) fn clear_data(&self) {
        let mut kept = self.attached.data.0.write();
        kept.is_over = true;
        let values = std::mem::take(&mut kept.values);
        drop(kept);
        for value in values.into_values() {
            self.connection.guard(|| drop(value));
        }
    }
}
