//! The writer role: one thread at a time writes to the socket.
//!
//! Under load that is the connection's writer thread, which takes everything that gathered
//! meanwhile into one large write. On an idle connection the sender writes by itself, without
//! blocking: waking a thread costs as much as a write. Whoever holds the role looks at the
//! queue once more after giving it back, so nothing that was appended meanwhile is left.

use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::output::WriteHalf;
use super::socket::{send_at_once, write_error};
use super::{Connection, gathering, seat, threads};
use crate::config::ThreadRole;
use crate::error::{Error, ErrorKind};
use crate::link::delivery::encode_count;
use crate::message::{Kind, MessageRef};
use crate::queue::Chunk;
use crate::stats::{Count, bump};
use crate::status::Status;

/// The control frames that the role holder owes.
pub(super) const PONG: u8 = 1;
pub(super) const GOODBYE: u8 = 2;
pub(super) const FINAL: u8 = 4;
pub(super) const PING: u8 = 8;
/// These wait until everything else has been written.
const LAST: u8 = GOODBYE | FINAL;

/// How many writes a sender does for others before it leaves the rest to the writer thread.
const INLINE_ROUNDS: usize = 4;
/// How often it looks again for what came meanwhile.
const INLINE_TURNS: usize = 16;
/// A second push within this many microseconds is a stream: the writer thread takes over.
const STREAM: usize = 20;
/// How long the writer thread looks for more before it sleeps.
const LINGER: Duration = Duration::from_micros(50);

/// Whether other callers are likely to send in the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    Alone,
    Crowded,
}

enum Drained {
    /// Nothing is left to write.
    Empty,
    /// The kernel takes no more now.
    Blocked,
    /// There is more, but these were enough rounds.
    More,
    /// The writing half is closed.
    Finished,
    Failed(Error),
}

impl Connection {
    /// A frame was appended: sees to it that somebody writes it.
    /// `waiting` is how many bytes wait with it.
    pub(super) fn appended(&self, kind: Kind, company: Company, waiting: usize) {
        if seat::gathers(self) {
            match waiting >= gathering::FULL {
                true => self.drain_inline(),
                false => self.watch_gathered(),
            }
            return;
        }
        if self.bell.is_awake() || self.blocked.load(Ordering::SeqCst) {
            return;
        }
        if kind == Kind::Call {
            if company == Company::Crowded {
                // Others that are about to call get into the same write.
                thread::yield_now();
            }
            return self.drain_inline();
        }
        let now = self.begun.elapsed().as_micros() as usize;
        let last = self.wrote_inline.swap(now, Ordering::Relaxed);
        if now.wrapping_sub(last) < STREAM {
            self.wake_writer();
        } else {
            self.drain_inline();
        }
    }

    /// Writes what is there, as far as the kernel takes it, unless somebody else does.
    pub(super) fn drain_inline(&self) {
        for _ in 0..INLINE_TURNS {
            if self.blocked.load(Ordering::SeqCst) {
                return;
            }
            let Some(mut half) = self.role.try_lock() else {
                return;
            };
            let drained = self.drain(&mut half, INLINE_ROUNDS);
            drop(half);
            match drained {
                Drained::Empty => {
                    // Pairs with a sender that appended and then found the role taken.
                    fence(Ordering::SeqCst);
                    if !self.has_output() {
                        return;
                    }
                }
                Drained::Blocked => return self.wake_writer(),
                Drained::More => return self.leave_to_writer(),
                Drained::Finished => return,
                Drained::Failed(error) => return self.fail(error),
            }
        }
        self.leave_to_writer();
    }

    /// What was begun here and is not written goes on in the writer thread.
    fn leave_to_writer(&self) {
        self.blocked.store(true, Ordering::SeqCst);
        self.wake_writer();
    }

    /// Marks a control frame as due and sees to it that somebody writes it.
    pub(super) fn owe(&self, due: u8) {
        self.due.fetch_or(due, Ordering::SeqCst);
        if !self.bell.is_awake() {
            self.drain_inline();
        }
    }

    fn has_output(&self) -> bool {
        let due = self.due.load(Ordering::SeqCst);
        // The rest of a write that blocked is left to the writer thread.
        self.blocked.load(Ordering::SeqCst)
            || !self.queue.is_empty()
            || due & !LAST != 0
            || (due & LAST != 0 && self.queue.is_settled())
    }

    /// Wakes the writer thread, or starts it.
    pub(super) fn wake_writer(&self) {
        if !self.bell.ring() || self.writer_started.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(connection) = self.me.upgrade() else {
            return;
        };
        let name = format!("tl-write-{}", self.id);
        let guard = self.count_thread();
        let (role, options) = (ThreadRole::Writer, &self.config.threads);
        let spawned = threads::spawn(name, role, options, move || {
            connection.write_loop();
            drop(guard);
        });
        if let Err(error) = spawned {
            self.fail(error);
        }
    }

    fn write_loop(&self) {
        loop {
            let drained = {
                let mut half = self.role.lock();
                // From here on it is this thread that finds out whether the kernel takes more.
                self.blocked.store(false, Ordering::SeqCst);
                self.drain(&mut half, usize::MAX)
            };
            match drained {
                Drained::Empty | Drained::More => self.linger(),
                Drained::Blocked => self.wait_writable(),
                Drained::Finished => self.bell.sleep(|| self.is_over()),
                Drained::Failed(error) => self.fail(error),
            }
            if self.is_over() {
                return;
            }
        }
    }

    /// Looks for more output for a while, then sleeps until there is some.
    fn linger(&self) {
        let start = Instant::now();
        while start.elapsed() < LINGER {
            if self.has_output() {
                return;
            }
            thread::yield_now();
        }
        self.queue.shrink();
        self.role.lock().shrink();
        self.bell.sleep(|| self.has_output() || self.is_over());
    }

    /// Waits, without the role, until the kernel takes more.
    fn wait_writable(&self) {
        let limit = self.config.timeouts.write;
        let Some(socket) = self.socket.lock().clone() else {
            self.blocked.store(false, Ordering::SeqCst);
            return;
        };
        self.queue.pause();
        let timeout = Timespec::try_from(limit).ok();
        let mut fds = [PollFd::new(&*socket, PollFlags::OUT)];
        let ready = poll(&mut fds, timeout.as_ref());
        drop(socket);
        self.blocked.store(false, Ordering::SeqCst);
        if ready == Ok(0) {
            self.fail(Error::new(
                ErrorKind::Timeout,
                format!("the peer took no byte within timeouts.write = {limit:?}"),
            ));
        }
    }

    /// Writes until nothing is left, the kernel takes no more, or the rounds are used up.
    fn drain(&self, half: &mut WriteHalf, rounds: usize) -> Drained {
        for _ in 0..rounds {
            if half.finished {
                return Drained::Finished;
            }
            if half.output().is_empty() && !self.fill(half) {
                return Drained::Empty;
            }
            let Some(socket) = &half.socket else {
                return Drained::Finished;
            };
            bump(&self.counters.writer.writes, 1);
            match send_at_once(socket, half.output()) {
                Ok(bytes) => half.written += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    self.blocked.store(true, Ordering::SeqCst);
                    return Drained::Blocked;
                }
                Err(error) => return Drained::Failed(write_error(error.into())),
            }
            if half.output().is_empty() {
                self.settle(half);
            } else {
                // The peer may answer to what it has, however long the rest takes.
                let (bytes, frames) = half.chunk.free(half.written);
                self.release(bytes, frames);
            }
        }
        Drained::More
    }

    /// Takes the next chunk from the queue; `false` if there is nothing to write.
    fn fill(&self, half: &mut WriteHalf) -> bool {
        let due = self.due.load(Ordering::SeqCst) & (PING | PONG);
        if due != 0 {
            self.due.fetch_and(!due, Ordering::SeqCst);
            self.push_signs(half, due);
            return true;
        }
        let Some(chunk) = self.queue.take(half.take_chunk()) else {
            return self.fill_last(half);
        };
        half.chunk = chunk;
        true
    }

    /// Goodbye and final pong, once everything before them is written.
    fn fill_last(&self, half: &mut WriteHalf) -> bool {
        let due = self.due.load(Ordering::SeqCst) & LAST;
        if due == 0 || !self.queue.is_settled() {
            return false;
        }
        if due & GOODBYE != 0 {
            self.due.fetch_and(!GOODBYE, Ordering::SeqCst);
            if self.framing.protocol().carries(Kind::Goodbye) {
                self.push_goodbye(half);
                self.goodbye_written();
            } else {
                half.half_close = true;
                self.settle(half);
            }
        } else {
            self.due.fetch_and(!FINAL, Ordering::SeqCst);
            self.push_signs(half, PONG);
            half.half_close = true;
        }
        !half.output().is_empty()
    }

    /// Puts a ping, a pong or both into the empty batch.
    fn push_signs(&self, half: &mut WriteHalf, due: u8) {
        let body = encode_count(self.counters.received());
        half.begin_control(|bytes| {
            if due & PING != 0 {
                bump(&self.counters.writer.pings_sent, 1);
                let ping = MessageRef::control(Kind::Ping, 0, &[]);
                self.framing.encode(&ping, bytes)?;
            }
            if due & PONG != 0 {
                let pong = MessageRef::control(Kind::Pong, 0, &body);
                self.framing.encode(&pong, bytes)?;
            }
            Ok(())
        });
    }

    /// Puts the goodbye into the empty batch, with the reason, if there is one.
    fn push_goodbye(&self, half: &mut WriteHalf) {
        let body = encode_count(self.counters.received());
        let mut frame = MessageRef::control(Kind::Goodbye, 0, &body);
        let reason = self.dismissal();
        frame.status = reason.as_ref().map(Status::as_ref);
        half.begin_control(|bytes| {
            self.encode(&frame, bytes).or_else(|_| {
                // The peer admits only small frames: the code alone.
                frame.status = frame.status.map(|reason| reason.shortened(0));
                self.framing.encode(&frame, bytes)
            })
        });
    }

    /// Everything taken is written: counts it and gives its room back.
    fn settle(&self, half: &mut WriteHalf) {
        self.count_sent(half.chunk.messages());
        let (bytes, frames) = half.chunk.room();
        self.release(bytes, frames);
        half.end_chunk();
        if half.half_close && !half.finished {
            self.half_close(half);
        }
    }

    fn release(&self, bytes: usize, frames: usize) {
        if frames > 0 {
            self.queue.release(bytes, frames);
        }
    }

    fn count_sent(&self, count: Count) {
        bump(&self.counters.writer.sent_messages, count.messages);
        bump(&self.counters.writer.sent_bytes, count.bytes);
    }

    /// For the last handle: writes what the kernel takes at once; `is_last` then closes the
    /// writing half, whatever is left.
    pub(super) fn write_at_once(&self, is_last: bool) {
        let mut half = self.role.lock();
        let drained = self.drain(&mut half, usize::MAX);
        if let Drained::Failed(error) = drained {
            drop(half);
            return self.fail(error);
        }
        if is_last {
            return self.half_close(&mut half);
        }
        drop(half);
        self.wake_writer();
    }

    fn half_close(&self, half: &mut WriteHalf) {
        half.finished = true;
        if let Some(socket) = &half.socket {
            let _ = socket.shutdown(std::net::Shutdown::Write);
        }
        self.written_out();
    }

    /// Takes out everything that was not written and lets go of the socket. `each` sees the
    /// frames that were not written as a whole; the answer is what they hold.
    ///
    /// The queue is closed: what has found room before is waited for, so that it is counted.
    pub(super) fn give_up_output(&self, mut each: impl FnMut(&[u8])) -> Count {
        let mut half = self.role.lock();
        let (whole, mut lost) = half.chunk.split(half.written, &mut each);
        self.count_sent(whole);
        let (bytes, frames) = half.chunk.room();
        self.queue.release(bytes, frames);
        half.give_up();
        while !self.queue.is_settled() {
            let Some(chunk) = self.queue.take(Chunk::default()) else {
                thread::yield_now();
                continue;
            };
            lost.add(chunk.split(0, &mut each).1);
            let (bytes, frames) = chunk.room();
            self.queue.release(bytes, frames);
        }
        lost
    }
}
