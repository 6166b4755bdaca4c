//! The reader thread: reads, parses in place, runs handlers inline, hands replies to their
//! callers; and the threads that stand in for it while a handler waits (see `order`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::buffer::{ReadBuffer, Sizes};
use super::ending::StreamEnd;
use super::order::{Held, Order};
use super::sampling::Sampling;
use super::seat::Seat;
use super::serving::ServedCall;
use super::threads::Places;
use super::waiter::outcome;
use super::{Arrival, Connection, Receiver};
use crate::error::{Error, ErrorKind};
use crate::memory::Charge;
use crate::message::{Kind, MessageRef};
use crate::protocol::Decoded;

/// What the reader threads of one connection share.
pub(super) struct Reading<D> {
    connection: Arc<Connection>,
    dispatch: D,
    pub(super) order: Order,
}

/// What the reader thread does; `received` is what came behind the handshake. The places are for
/// this thread and the writer, if they are given back with the connection; substitutes take
/// their own.
pub(crate) fn prepare<D: Receiver>(
    connection: &Arc<Connection>,
    dispatch: D,
    received: &[u8],
    places: Option<Places>,
) -> impl FnOnce() + Send + use<D> {
    let charge = || Charge::new(connection.memory.clone());
    let reading = Arc::new(Reading {
        connection: connection.clone(),
        dispatch,
        order: Order::new(charge()),
    });
    let sizes = Sizes::from(&connection.config.socket);
    let buffer = ReadBuffer::new(received, sizes, charge());
    let guard = connection.count_thread();
    move || {
        let reader = Reader::new(reading, buffer);
        reader.connection().drain_inline();
        reader.connection().begin_heartbeat();
        reader.dispatch_connected();
        reader.run();
        // Who waits for the threads finds also gone what the dispatch holds.
        drop(reader);
        drop(guard);
        drop(places);
    }
}

/// One reader thread.
pub(super) struct Reader<D> {
    pub(super) reading: Arc<Reading<D>>,
    seat: Rc<Seat>,
    pub(super) buffer: RefCell<ReadBuffer>,
    /// Whether the handler that runs was let past the order: it is not the dispatcher away.
    pub(super) nested: Cell<bool>,
    sampling: Sampling,
}

impl<D: Receiver> Reader<D> {
    pub(super) fn new(reading: Arc<Reading<D>>, buffer: ReadBuffer) -> Rc<Self> {
        let seat = Seat::take(&reading.connection);
        let reader = Rc::new(Reader {
            reading,
            seat: seat.clone(),
            buffer: RefCell::new(buffer),
            nested: Cell::new(false),
            sampling: Sampling::default(),
        });
        seat.set_reader(Some(reader.clone()));
        reader
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.reading.connection
    }

    fn dispatch_connected(&self) {
        self.note_arrival();
        self.seat.handle(None, || {
            self.connection()
                .guard(|| self.reading.dispatch.connected());
        });
        if self.seat.has_handed_over() {
            self.work_off_backlog();
        }
    }

    /// Reads, and rests in between, until the connection has ended.
    pub(super) fn run(&self) {
        loop {
            if self.seat.has_handed_over() {
                self.buffer.borrow_mut().let_go();
                match self.reading.order.rest() {
                    Some(buffer) => *self.buffer.borrow_mut() = buffer,
                    None => break,
                }
                self.seat.reads_again();
            }
            match self.read_on() {
                Ok(()) => continue,
                Err(end) => {
                    self.finish(end);
                    break;
                }
            }
        }
        self.seat.leave();
    }

    /// Reads until the reading was handed over, or the stream ends.
    fn read_on(&self) -> Result<(), StreamEnd> {
        let socket = self.connection().socket.lock().clone();
        let Some(socket) = socket else {
            return Err(StreamEnd::Whole);
        };
        loop {
            let needed = match self.parse() {
                Ok(Parsed::HandedOver) => return Ok(()),
                Ok(Parsed::Cut) => return Err(StreamEnd::Whole),
                Ok(Parsed::NeedsMore(needed)) => needed,
                Err(error) => {
                    self.connection().fail(error);
                    return Err(StreamEnd::Whole);
                }
            };
            let connection = self.connection();
            connection.drain_gathered();
            let mut buffer = self.buffer.borrow_mut();
            if let Err(error) = connection.before_read(&mut buffer, needed) {
                drop(buffer);
                connection.fail(error);
                return Err(StreamEnd::Whole);
            }
            let result = buffer.fill(&socket, needed);
            connection.after_read();
            self.sampling.begin_anew();
            match result {
                Ok(0) if buffer.is_empty() => return Err(StreamEnd::Whole),
                Ok(0) => return Err(StreamEnd::Cut),
                Ok(_) => {}
                Err(source) => {
                    return Err(StreamEnd::Error(Error::with_source(
                        ErrorKind::Disconnected,
                        "reading from the peer failed",
                        source,
                    )));
                }
            }
        }
    }

    /// Takes every complete frame out of the buffer.
    fn parse(&self) -> Result<Parsed, Error> {
        let (bytes, (mut start, end)) = {
            let buffer = self.buffer.borrow();
            (buffer.bytes(), buffer.position())
        };
        let connection = self.connection();
        let limits = &connection.config.limits;
        loop {
            if connection.is_cut() {
                return Ok(Parsed::Cut);
            }
            let input = bytes.get(start..end).unwrap_or_default();
            let size = match connection.framing.decode(input, limits)? {
                Decoded::Incomplete { needed } => {
                    return Ok(Parsed::NeedsMore(needed));
                }
                Decoded::Message { message, size } => {
                    start += size;
                    self.buffer.borrow_mut().consume_to(start);
                    self.accept(&message, size)?;
                    if self.seat.has_handed_over() {
                        self.return_to_order();
                        return Ok(Parsed::HandedOver);
                    }
                    continue;
                }
                Decoded::Refused {
                    kind,
                    sequence,
                    status,
                    size,
                } => {
                    if kind == Kind::Reply {
                        let mut reply = MessageRef::control(kind, sequence, &[]);
                        reply.status = Some(status.as_ref());
                        start += size;
                        self.buffer.borrow_mut().consume_to(start);
                        self.accept(&reply, size)?;
                        if self.seat.has_handed_over() {
                            self.return_to_order();
                            return Ok(Parsed::HandedOver);
                        }
                        continue;
                    }
                    connection.refuse(kind, sequence, &status, size);
                    size
                }
                Decoded::Skipped { size } => {
                    connection.counters.reader.skipped_frames.fetch_add(1);
                    connection.spend_budget()?;
                    size
                }
            };
            start += size;
            self.buffer.borrow_mut().consume_to(start);
        }
    }

    fn accept(&self, message: &MessageRef<'_>, size: usize) -> Result<(), Error> {
        let connection = self.connection();
        match message.kind {
            Kind::Push | Kind::Call => {
                self.request(message, size);
                Ok(())
            }
            Kind::Reply => {
                connection.count_received(size, self.reading.order.is_away());
                if let Some(callback) = connection.complete_call(message)? {
                    self.note_arrival();
                    self.handle(None, || connection.guard(|| callback(outcome(message))));
                }
                Ok(())
            }
            _ => connection.control(message),
        }
    }

    /// User code runs that may take long, while messages lie behind it in the buffer.
    fn note_arrival(&self) {
        let mut buffer = self.buffer.borrow_mut();
        if !buffer.is_empty() {
            buffer.came();
        }
    }

    /// A push or call: now, or in its order after the handler that waits.
    fn request(&self, message: &MessageRef<'_>, size: usize) {
        let connection = self.connection();
        if message.kind == Kind::Call {
            let open = connection.call_came(message.sequence);
            if open >= connection.config.limits.incoming_calls as usize {
                connection.count_received(size, true);
                return connection.answer_overloaded(message.sequence);
            }
        }
        let (at, noted) = self.buffer.borrow_mut().came();
        let arrival = Arrival {
            wire_bytes: size,
            at,
        };
        let is_held = self.reading.order.is_away()
            && !connection.descends_from_open_call(message)
            && self.hold(message, arrival);
        if !is_held {
            self.dispatch(message, arrival, noted);
        }
    }

    /// Holds a message back; `false` if it is to be dispatched now, in its order.
    fn hold(&self, message: &MessageRef<'_>, arrival: Arrival) -> bool {
        let size = arrival.wire_bytes;
        let connection = self.connection();
        let limits = &connection.config.limits;
        if message.kind == Kind::Push {
            connection.held.fetch_add(1, Ordering::SeqCst);
        }
        let full = &connection.backlog_full;
        loop {
            match self.reading.order.hold(message, arrival, limits, full) {
                Held::Yes => return true,
                Held::InOrder => {
                    connection.let_go(message.kind);
                    return false;
                }
                Held::Full if message.kind == Kind::Call => {
                    connection.count_received(size, true);
                    connection.answer_overloaded(message.sequence);
                    return true;
                }
                Held::Full => {
                    connection.drain_gathered();
                    connection.release_awaited();
                    self.reading.order.wait_for_room(size, limits);
                }
            }
        }
    }

    /// Runs user code. If it hands the reading over while another thread is the dispatcher
    /// away, it was let past the order.
    fn handle(&self, call: Option<ServedCall>, run: impl FnOnce()) {
        if !self.seat.has_handed_over() {
            self.nested.set(self.reading.order.is_away());
        }
        self.seat.handle(call, run);
    }

    /// `noted` is when its arrival was noted, if that was this moment.
    fn dispatch(&self, message: &MessageRef<'_>, arrival: Arrival, noted: Option<Instant>) {
        let connection = self.connection();
        connection.count_received(arrival.wire_bytes, self.reading.order.is_away());
        if message.kind == Kind::Call && connection.is_closing() {
            return connection.answer_going_away(message.sequence);
        }
        connection.watch_gathered();
        let call = (message.kind == Kind::Call).then(|| ServedCall {
            sequence: message.sequence,
            deadline: connection.deadline_of(message, arrival.at),
        });
        let sample = self.sampling.next(noted);
        let mut handled = false;
        self.handle(call, || {
            handled = self.reading.dispatch.message(message, arrival);
        });
        if let Some(sample) = sample.filter(|_| handled) {
            connection.counters.handler_times.note(sample.elapsed());
        }
    }

    /// The handler during which the reading was handed over has returned.
    fn return_to_order(&self) {
        if self.nested.replace(false) {
            self.reading.order.nested_returns();
        } else {
            self.work_off_backlog();
        }
    }

    /// Runs what was held back, in order, until nothing is left; then the reader dispatches.
    fn work_off_backlog(&self) {
        let connection = self.connection();
        while let Some((held, arrival)) = self.reading.order.next_held(&connection.backlog_full) {
            let message = held.as_ref();
            match connection.stale(&message, arrival.at) {
                Some(status) => connection.refuse_held(&message, arrival, status),
                None => self.dispatch(&message, arrival, None),
            }
            connection.let_go(message.kind);
        }
    }

    /// The stream has ended: the last things, once handlers that wait elsewhere are back.
    fn finish(&self, end: StreamEnd) {
        let connection = self.connection();
        connection.stream_ended(end);
        self.reading.order.finish();
        // In the closed event nothing can be handed over any more, and nothing needs to be.
        self.seat.set_reader(None);
        self.buffer.borrow_mut().let_go();
        let report = connection.report();
        connection.count_end(report.reason);
        self.seat.handle(None, || {
            connection.guard(|| self.reading.dispatch.closed(&report));
            connection.guard(|| self.reading.dispatch.end());
        });
        connection.announce_end(report);
    }
}

enum Parsed {
    /// Another thread reads now.
    HandedOver,
    /// This side has ended the connection.
    Cut,
    /// No complete frame is left; so many bytes make up the next, if that is known.
    NeedsMore(Option<usize>),
}
