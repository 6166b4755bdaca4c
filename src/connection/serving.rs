//! Which call the handler on this thread serves: what it calls meanwhile belongs to that call.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Instant;

use super::Connection;

/// A call of the peer, as its handler's thread knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedCall {
    pub(crate) sequence: u32,
    pub(crate) deadline: Option<Instant>,
}

/// A call of the peer, with the connection that it came by.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) connection: Arc<Connection>,
    pub(crate) call: ServedCall,
}

thread_local! {
    /// The connection whose handlers run on this thread.
    static HOST: RefCell<Option<Arc<Connection>>> = const { RefCell::new(None) };
    static CALL: Cell<Option<ServedCall>> = const { Cell::new(None) };
}

/// This thread runs handlers of the connection from now on, or none any more.
pub(super) fn attach(connection: Option<Arc<Connection>>) {
    HOST.set(connection);
}

/// Runs the handler of this call; on any thread.
pub(crate) fn serve(connection: &Arc<Connection>, call: ServedCall, run: impl FnOnce()) {
    let is_attached = is_host(connection);
    let elsewhere = (!is_attached).then(|| HOST.replace(Some(connection.clone())));
    CALL.set(Some(call));
    run();
    CALL.set(None);
    if let Some(elsewhere) = elsewhere {
        HOST.set(elsewhere);
    }
}

fn is_host(connection: &Connection) -> bool {
    let is_same = |host: &RefCell<Option<Arc<Connection>>>| {
        let host = host.borrow();
        host.as_ref()
            .is_some_and(|host| std::ptr::eq(&**host, connection))
    };
    HOST.try_with(is_same).unwrap_or(false)
}

/// The call that the handler on this thread serves, if one runs and has not answered it yet.
pub(crate) fn current() -> Option<Served> {
    let call = CALL.get()?;
    let connection = HOST.try_with(|host| host.borrow().clone()).ok().flatten()?;
    Some(Served { connection, call })
}

/// A call was answered: if its handler did that, it serves nobody any more.
pub(super) fn answered(connection: &Connection, sequence: u32) {
    if CALL.get().is_some_and(|call| call.sequence == sequence) && is_host(connection) {
        CALL.set(None);
    }
}
