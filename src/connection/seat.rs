//! What a thread that reads a connection, or serves one, knows about itself, and how it hands the
//! reading over when the handler that it runs is about to wait.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::Connection;
use super::serving::{self, ServedCall};
use crate::error::Error;

/// The part of a reader thread that does not depend on what it dispatches to.
pub(super) trait HandOver {
    /// Gives the reading to another thread, so that this one may wait.
    fn hand_over(&self) -> Result<(), Error>;
}

/// One per reader thread, or for a handler on another; the thread's own, reached through a
/// thread-local.
pub(super) struct Seat {
    connection: Arc<Connection>,
    /// Whether user code runs on this thread.
    handling: Cell<bool>,
    /// Whether another thread reads now.
    handed_over: Cell<bool>,
    reader: RefCell<Option<Rc<dyn HandOver>>>,
}

thread_local! {
    static SEAT: RefCell<Option<Rc<Seat>>> = const { RefCell::new(None) };
    /// The address of the connection whose output this thread gathers; 0 for none. Compared,
    /// never followed.
    static GATHERING: Cell<usize> = const { Cell::new(0) };
}

fn address(connection: &Connection) -> usize {
    std::ptr::from_ref(connection).addr()
}

impl Seat {
    /// Makes this thread a reader of the connection.
    pub(super) fn take(connection: &Arc<Connection>) -> Rc<Seat> {
        let seat = Rc::new(Seat {
            connection: connection.clone(),
            handling: Cell::new(false),
            handed_over: Cell::new(false),
            reader: RefCell::new(None),
        });
        SEAT.set(Some(seat.clone()));
        serving::attach(Some(connection.clone()));
        seat
    }

    pub(super) fn set_reader(&self, reader: Option<Rc<dyn HandOver>>) {
        *self.reader.borrow_mut() = reader;
    }

    /// This thread ceases to be a reader.
    pub(super) fn leave(&self) {
        self.set_reader(None);
        GATHERING.set(0);
        SEAT.set(None);
        serving::attach(None);
    }

    /// Runs user code: the handler of this call, or something else.
    pub(super) fn handle(&self, call: Option<ServedCall>, run: impl FnOnce()) {
        self.handling.set(true);
        if !self.handed_over.get() {
            GATHERING.set(address(&self.connection));
        }
        match call {
            Some(call) => serving::serve(&self.connection, call, run),
            None => run(),
        }
        GATHERING.set(0);
        self.handling.set(false);
    }

    pub(super) fn has_handed_over(&self) -> bool {
        self.handed_over.get()
    }

    pub(super) fn reads_again(&self) {
        self.handed_over.set(false);
    }
}

/// Runs a handler on a thread that does not read its connection: one of a pool.
pub(crate) fn serve(connection: &Arc<Connection>, call: Option<ServedCall>, run: impl FnOnce()) {
    let seat = Seat::take(connection);
    // So there is nothing to hand over, and what is sent is not gathered for a reader to write.
    seat.handed_over.set(true);
    seat.handle(call, run);
    seat.leave();
}

/// Whether what this thread sends on the connection is gathered.
pub(super) fn gathers(connection: &Connection) -> bool {
    GATHERING.get() == address(connection)
}

/// Looks at this thread's seat, if it has one; a thread that is ending has none any more.
fn look<R>(at: impl FnOnce(&Rc<Seat>) -> R) -> Option<R> {
    let seen = SEAT.try_with(|seat| seat.borrow().as_ref().map(at));
    seen.ok().flatten()
}

/// Whether this thread runs a handler or callback of any connection.
pub(crate) fn is_handling() -> bool {
    is_handler_where(|_| true)
}

/// Whether this thread runs a handler of this connection.
pub(crate) fn is_handler_of(connection: &Connection) -> bool {
    is_handler_where(|other| std::ptr::eq(other, connection))
}

/// Whether this thread runs a handler of such a connection.
pub(super) fn is_handler_where(is_such: impl FnOnce(&Connection) -> bool) -> bool {
    look(|seat| seat.handling.get() && is_such(&seat.connection)).unwrap_or(false)
}

/// This thread is about to wait: if it reads a connection, another thread takes that over.
///
/// # Errors
/// `WouldDeadlock` if too many handlers of the connection wait already, `Overloaded` if no
/// thread can be had.
pub(crate) fn before_wait() -> Result<(), Error> {
    let Some(seat) = look(Rc::clone) else {
        return Ok(());
    };
    if !seat.handling.get() || seat.handed_over.get() {
        return Ok(());
    }
    let reader = seat.reader.borrow().clone();
    if let Some(reader) = reader {
        seat.connection.drain_inline();
        reader.hand_over()?;
        seat.handed_over.set(true);
        GATHERING.set(0);
    }
    Ok(())
}
