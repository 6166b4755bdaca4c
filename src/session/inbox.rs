//! Pull instead of handlers: messages that wait until a thread of the application takes them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam::channel::{
    Receiver, RecvTimeoutError, Sender, TryRecvError, unbounded as unbounded_channel,
};

use super::received::Received;
use super::{Session, Watched};
use crate::config::{Limits, deadline};
use crate::connection::inlet::{Place, Room};
use crate::connection::{Arrival, before_wait};
use crate::error::{Error, ErrorKind};
use crate::message::{Kind, MessageRef, MetadataRef};
use crate::status::{Status, StatusRef};

const TOO_MANY_CALLS: StatusRef<'_> = StatusRef {
    code: Status::OVERLOADED,
    text: "calls of limits.incoming_call_bytes are in the inbox or unanswered",
    cause: "",
};

/// A message in the inbox.
struct Letter {
    received: Received,
    /// Pushes take up room; calls have their own allowance.
    _place: Option<Place>,
    _ticket: Ticket,
}

/// A session's place in its server. It is kept until what the session sent is received: peers
/// that come, send and go cannot fill the inbox without end.
type Ticket = Option<Arc<dyn Send + Sync>>;

/// Where the messages without a handler wait, to be received by any number of threads:
/// [`Client::inbox`](crate::Client::inbox), [`Server::inbox`](crate::Server::inbox).
///
/// It is a cheap handle, and keeps no connection open. The messages of one session stay in
/// order. As an iterator it waits for each message, and ends at the end of the inbox.
///
/// A thread that has received from it is one that the messages wait for. If it waits for a call
/// while inbox and backlog (`limits.backlog_bytes`, `limits.backlog_messages`) are full, so that
/// the reply could not be read, the call ends with `WouldDeadlock` and the thread goes on.
///
/// A call whose caller has given up, or whose time limit has passed, before it is received is
/// answered `CANCELLED` or `DEADLINE_EXCEEDED` and not handed out.
///
/// With the last handle, that of the client or server included, what is in it is dropped.
#[derive(Clone)]
#[doc(alias = "mailbox")]
pub struct Inbox {
    letters: Receiver<Letter>,
    room: Arc<Room>,
}

impl Inbox {
    pub(crate) fn open(messages: usize, limits: &Limits) -> (Inbox, Source) {
        let (sender, letters) = unbounded_channel();
        let room = Room::new(messages, limits.inbox_bytes);
        let source = Source {
            sender,
            room: room.clone(),
            ticket: None,
        };
        (Inbox { letters, room }, source)
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// `Closed` once nothing can come any more and the inbox is empty. In a handler of a session
    /// whose messages come here `WouldDeadlock` if there is none now, as the session's next ones
    /// and its end wait for the handler. In other handlers `WouldDeadlock` or `Overloaded` if no
    /// thread can read meanwhile.
    pub fn recv(&self) -> Result<Received, Error> {
        if let Some(received) = self.try_recv()? {
            return Ok(received);
        }
        if self.room.is_behind_this_handler() {
            return Err(Error::new(
                ErrorKind::WouldDeadlock,
                "a handler cannot wait for messages that wait for the handler",
            ));
        }
        before_wait()?;
        loop {
            let letter = self.letters.recv().map_err(|_| ended())?;
            if let Some(received) = letter.received.unless_stale() {
                return Ok(received);
            }
        }
    }

    /// Waits for the next message, at most `limit`; then `None`.
    ///
    /// # Errors
    /// As [`recv`](Inbox::recv); with a limit a handler may wait.
    pub fn recv_timeout(&self, limit: Duration) -> Result<Option<Received>, Error> {
        if let Some(received) = self.try_recv()? {
            return Ok(Some(received));
        }
        let Some(until) = deadline(Instant::now(), limit) else {
            return self.recv().map(Some);
        };
        before_wait()?;
        loop {
            let letter = match self.letters.recv_deadline(until) {
                Ok(letter) => letter,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            };
            if let Some(received) = letter.received.unless_stale() {
                return Ok(Some(received));
            }
        }
    }

    /// The next message, if there is one now.
    ///
    /// # Errors
    /// `Closed` once nothing can come any more and the inbox is empty.
    pub fn try_recv(&self) -> Result<Option<Received>, Error> {
        self.room.received_here();
        loop {
            let letter = match self.letters.try_recv() {
                Ok(letter) => letter,
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => return Err(ended()),
            };
            if let Some(received) = letter.received.unless_stale() {
                return Ok(Some(received));
            }
        }
    }

    /// How many messages are in it.
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// Whether no message is in it.
    pub fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }
}

fn ended() -> Error {
    Error::new(
        ErrorKind::Closed,
        "the inbox has ended: its sessions are over and all messages are received",
    )
}

impl Iterator for Inbox {
    type Item = Received;

    fn next(&mut self) -> Option<Received> {
        self.recv().ok()
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("messages", &self.len())
            .finish_non_exhaustive()
    }
}

/// A way into the inbox, which is open as long as there is one.
#[derive(Clone)]
pub(crate) struct Source {
    sender: Sender<Letter>,
    room: Arc<Room>,
    ticket: Ticket,
}

impl Source {
    pub(crate) fn room(&self) -> Arc<Room> {
        self.room.clone()
    }

    /// The way of a session that has this place in its server.
    pub(crate) fn with_ticket(self, ticket: Arc<dyn Send + Sync>) -> Self {
        Source {
            ticket: Some(ticket),
            ..self
        }
    }

    /// Puts a push or call into the inbox; a push waits for room.
    pub(crate) fn deliver(
        &self,
        session: &Session,
        message: &MessageRef<'_>,
        arrival: Arrival,
        watched: Watched,
    ) {
        let connection = &session.connection;
        let place = match message.kind {
            Kind::Call => None,
            _ => connection.wait_for_place(&self.room, arrival.wire_bytes),
        };
        if let (Kind::Push, Some(watched)) = (message.kind, &watched) {
            watched.answered(Status::OK);
        }
        let Some(received) = Received::new(session, message, arrival, watched.clone()) else {
            connection.reply_status(message.sequence, TOO_MANY_CALLS, MetadataRef::EMPTY);
            if let Some(watched) = watched {
                watched.answered(Status::OVERLOADED);
            }
            return;
        };
        let letter = Letter {
            received,
            _place: place,
            _ticket: self.ticket.clone(),
        };
        // Without an inbox, as without its client, nobody can receive it.
        if self.sender.send(letter).is_err() && message.kind == Kind::Push {
            connection.counters.reader.dropped_pushes.fetch_add(1);
        }
    }
}
