//! The ways into an inbox and into a pool: the room for pushes there, and the readers that wait
//! for a place.
//!
//! Only places are counted here; the messages themselves lie in the layers above.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{Connection, seat};
use crate::config::Limits;

/// How many pushes, and how many bytes of them.
#[derive(Clone, Copy, Default)]
struct Amount {
    messages: usize,
    bytes: usize,
}

impl Amount {
    fn with(self, bytes: usize) -> Amount {
        Amount {
            messages: self.messages + 1,
            bytes: self.bytes + bytes,
        }
    }

    fn fits(self, bound: Amount) -> bool {
        self.messages <= bound.messages && self.bytes <= bound.bytes
    }
}

/// The room for pushes in one inbox or pool, shared by the connections whose messages go there.
pub(crate) struct Room {
    bound: Amount,
    desk: Mutex<Desk>,
}

#[derive(Default)]
struct Desk {
    taken: Amount,
    /// Readers that sleep until there is a place, first come first.
    waiting: VecDeque<Arc<Condvar>>,
}

thread_local! {
    /// The rooms that this thread has received from.
    static RECEIVES_FROM: RefCell<Vec<Weak<Room>>> = const { RefCell::new(Vec::new()) };
}

impl Room {
    pub(crate) fn new(messages: usize, bytes: u32) -> Arc<Self> {
        Arc::new(Room {
            bound: Amount {
                messages,
                bytes: bytes as usize,
            },
            desk: Mutex::default(),
        })
    }

    /// This thread receives from the room: while it waits for a call, the messages wait for it.
    pub(crate) fn received_here(self: &Arc<Self>) {
        if !self.is_emptied_here() {
            // A thread that is ending keeps no mark.
            let _ = RECEIVES_FROM.try_with(|rooms| {
                let mut rooms = rooms.borrow_mut();
                rooms.retain(|room| room.strong_count() > 0);
                rooms.push(Arc::downgrade(self));
            });
        }
    }

    /// Whether this thread receives from the room.
    fn is_emptied_here(&self) -> bool {
        let is_among = |rooms: &RefCell<Vec<Weak<Room>>>| {
            let rooms = rooms.borrow();
            rooms.iter().any(|room| std::ptr::eq(room.as_ptr(), self))
        };
        RECEIVES_FROM.try_with(is_among).unwrap_or(false)
    }

    /// Whether this thread runs a handler of a session whose messages go there.
    pub(crate) fn is_behind_this_handler(&self) -> bool {
        seat::is_handler_where(|connection| {
            let inlets = &connection.inlets;
            inlets.iter().any(|inlet| std::ptr::eq(&*inlet.room, self))
        })
    }

    fn has_room(&self, desk: &Desk, bytes: usize) -> bool {
        desk.taken.messages == 0 || desk.taken.with(bytes).fits(self.bound)
    }

    fn take(self: &Arc<Self>, mut desk: MutexGuard<'_, Desk>, bytes: usize) -> Place {
        desk.taken = desk.taken.with(bytes);
        if self.has_room(&desk, 0) {
            self.wake_next(&mut desk);
        }
        drop(desk);
        Place {
            room: self.clone(),
            bytes,
        }
    }

    fn wake_next(&self, desk: &mut Desk) {
        if let Some(reader) = desk.waiting.pop_front() {
            reader.notify_one();
        }
    }
}

/// A push's place in the room; dropping it makes room for another.
pub(crate) struct Place {
    room: Arc<Room>,
    bytes: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut desk = self.room.desk.lock();
        desk.taken.messages -= 1;
        desk.taken.bytes -= self.bytes;
        self.room.wake_next(&mut desk);
    }
}

/// One connection's way into a room.
pub(super) struct Inlet {
    room: Arc<Room>,
    /// Where the reader sleeps, with the lock of the desk.
    woken: Arc<Condvar>,
    /// What may still go beyond the bound while the session closes.
    extra: Mutex<Amount>,
}

impl Inlet {
    pub(super) fn new(room: Arc<Room>, limits: &Limits) -> Self {
        Inlet {
            room,
            woken: Arc::default(),
            extra: Mutex::new(Amount {
                messages: limits.backlog_messages as usize,
                bytes: limits.backlog_bytes as usize,
            }),
        }
    }

    fn take_extra(&self, bytes: usize) -> bool {
        let mut extra = self.extra.lock();
        let wanted = Amount { messages: 1, bytes };
        let fits = wanted.fits(*extra);
        if fits {
            extra.messages -= 1;
            extra.bytes -= bytes;
        }
        fits
    }
}

impl Connection {
    /// Whether the messages of this connection wait until this thread goes on: it runs a
    /// handler, or receives from the inbox or for the pool.
    pub(super) fn is_awaited_here(&self) -> bool {
        seat::is_handler_of(self) || self.inlets.iter().any(|inlet| inlet.room.is_emptied_here())
    }

    /// The connection closes or has ended: a reader that waits for a place looks again.
    pub(super) fn wake_at_inlets(&self) {
        for inlet in &self.inlets {
            // With the lock, so that a reader that has looked is asleep by now.
            let _desk = inlet.room.desk.lock();
            inlet.woken.notify_one();
        }
    }

    /// A place in one of the rooms for a push of this size; waits for it, while another thread
    /// reads.
    ///
    /// After the end of the connection there is always one, so that nothing that was read is
    /// lost.
    pub(crate) fn wait_for_place(&self, room: &Arc<Room>, bytes: usize) -> Option<Place> {
        let mut inlets = self.inlets.iter();
        let inlet = inlets.find(|inlet| Arc::ptr_eq(&inlet.room, room))?;
        let may_enter = |desk: &Desk| {
            room.has_room(desk, bytes)
                || self.is_over()
                || (self.is_closing() && inlet.take_extra(bytes))
        };
        let mut desk = room.desk.lock();
        if may_enter(&desk) {
            return Some(room.take(desk, bytes));
        }
        drop(desk);
        // If no thread is to be had nobody reads meanwhile, and a call that the room's receiver
        // waits for may run into its time limit.
        let _ = seat::before_wait();
        desk = room.desk.lock();
        let mut has_slept = false;
        while !may_enter(&desk) {
            match has_slept {
                true => desk.waiting.push_front(inlet.woken.clone()),
                false => desk.waiting.push_back(inlet.woken.clone()),
            }
            inlet.woken.wait(&mut desk);
            desk.waiting
                .retain(|reader| !Arc::ptr_eq(reader, &inlet.woken));
            has_slept = true;
        }
        Some(room.take(desk, bytes))
    }
}
