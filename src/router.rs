//! From routes to handlers: what runs when a message comes.

mod builder;
mod context;
mod reply;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::codec::Body;
use crate::config::Limits;
use crate::connection::{Arrival, CloseReport, Connection, Dispatch, Owner};
use crate::error::{Error, caught};
use crate::hub::Member;
use crate::message::{Kind, MessageRef, MetadataRef, Route};
use crate::records::{Limit, Records, Topic};
use crate::session::{Exchange, Inbox, Interceptors, Session, Source};
use crate::status::{Status, StatusRef};

pub(crate) use builder::{HandlersBuilder, handler_methods};
pub use context::Context;
pub use reply::{IntoReply, Replied, ReplyTo};

/// A handler, with its way of answering inside.
type Handler = Box<dyn Fn(&Context<'_>, Body<'_>) + Send + Sync>;
type ConnectedHook = Box<dyn Fn(&Session) + Send + Sync>;
type ClosedHook = Box<dyn Fn(&Session, &CloseReport) + Send + Sync>;
type ErrorHook = Box<dyn Fn(&Error) + Send + Sync>;

/// The handlers of one route.
#[derive(Default)]
struct Routed {
    push: Option<Handler>,
    call: Option<Handler>,
}

impl Routed {
    fn handler(&self, kind: Kind) -> Option<&Handler> {
        match kind {
            Kind::Call => self.call.as_ref(),
            _ => self.push.as_ref(),
        }
    }
}

/// All handlers and events of a client or server.
#[derive(Default)]
pub(crate) struct Handlers {
    /// Sorted by number.
    numbers: Vec<(u32, Routed)>,
    names: HashMap<Box<str>, Routed>,
    fallback: Routed,
    connected: Option<ConnectedHook>,
    closed: Option<ClosedHook>,
    error: Option<ErrorHook>,
    interceptors: Interceptors,
    records: Arc<Records>,
    /// How many pushes the inbox holds, if there is one.
    inbox: Option<usize>,
}

impl Handlers {
    /// The inbox that was asked for, and what keeps it open.
    pub(crate) fn open_inbox(&self, limits: &Limits) -> Option<(Inbox, Source)> {
        self.inbox.map(|messages| Inbox::open(messages, limits))
    }

    fn find(&self, kind: Kind, route: Route<'_>) -> Option<&Handler> {
        let routed = match route {
            Route::Number(number) => {
                let found = self
                    .numbers
                    .binary_search_by_key(&number, |(number, _)| *number);
                found
                    .ok()
                    .and_then(|index| self.numbers.get(index))
                    .map(|(_, routed)| routed)
            }
            Route::Name(name) => self.names.get(name),
        };
        routed
            .and_then(|routed| routed.handler(kind))
            .or_else(|| self.fallback.handler(kind))
    }

    pub(crate) fn interceptors(&self) -> Interceptors {
        self.interceptors.clone()
    }

    /// What the connections of this server or client share.
    pub(crate) fn owner(&self, limits: &Limits) -> Arc<Owner> {
        Owner::new(limits, self.records.clone())
    }

    /// Writes a log record.
    pub(crate) fn record(&self, topic: Topic, what: fmt::Arguments<'_>) {
        self.records.write(topic, Instant::now(), what);
    }

    /// Tells the application, and its log, about an error that no caller sees.
    pub(crate) fn report(&self, topic: Topic, error: &Error) {
        self.record(topic, format_args!("{error:#}"));
        self.tell(error);
    }

    /// Tells the application alone.
    pub(crate) fn tell(&self, error: &Error) {
        if let Some(hook) = &self.error {
            // A panic in the hook has nowhere to go; the panic hook has shown it.
            let _ = caught(|| hook(error));
        }
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.numbers.iter().map(|(number, _)| number).collect();
        f.debug_struct("Handlers")
            .field("numbers", &numbers)
            .field("names", &self.names.keys())
            .finish_non_exhaustive()
    }
}

/// What the reader thread of one session owns: the way to the handlers.
pub(crate) struct Router {
    handlers: Arc<Handlers>,
    session: Session,
    /// At most a panic a second of one session is recorded.
    panics: Limit,
    /// The session's place in a server's hub; a client's session has none.
    member: Option<Member>,
    /// The way to the inbox, if there is one.
    inbox: Option<Source>,
}

impl Router {
    pub(crate) fn new(
        handlers: Arc<Handlers>,
        session: Session,
        member: Option<Member>,
        inbox: Option<Source>,
    ) -> Self {
        Router {
            handlers,
            session,
            panics: Limit::new(1),
            member,
            inbox,
        }
    }
}

impl Dispatch for Router {
    fn connected(&self) {
        let (id, peer) = (self.session.id(), self.session.peer_address());
        self.handlers
            .record(Topic::Begun, format_args!("session {id} with {peer} began"));
        if let Some(hook) = &self.handlers.connected {
            hook(&self.session);
        }
    }

    fn message(&self, message: &MessageRef<'_>, arrival: Arrival) -> bool {
        let connection = &self.session.connection;
        let Some(handler) = self.handlers.find(message.kind, message.route) else {
            match &self.inbox {
                Some(inbox) => self.deliver(inbox, message, arrival),
                None => no_handler(connection, message),
            }
            return false;
        };
        let hub = self.member.as_ref().map(Member::hub);
        let context = Context::new(&self.session, message, arrival, hub);
        let body = Body::new(message.body, message.codec);
        if context.begin() {
            if caught(|| handler(&context, body)).is_none() {
                connection.count_panic();
                self.record_panic(message);
                context.answer_status(Status::HANDLER_PANICKED, "the handler panicked");
            }
            context.end();
        } else if message.kind == Kind::Push {
            connection.counters.reader.dropped_pushes.fetch_add(1);
        }
        true
    }

    fn closed(&self, report: &CloseReport) {
        if let Some(member) = &self.member {
            member.leave();
        }
        let topic = report
            .error
            .as_ref()
            .map_or(Topic::Ended, |_| Topic::Broken);
        self.handlers.record(topic, format_args!("{report}"));
        if let Some(error) = &report.error {
            self.handlers.tell(error);
        }
        if let Some(hook) = &self.handlers.closed {
            hook(&self.session, report);
        }
    }

    fn end(&self) {
        self.session.clear_data();
    }
}

impl Router {
    /// Puts a message without a handler into the inbox, unless an interceptor refuses it.
    fn deliver(&self, inbox: &Source, message: &MessageRef<'_>, arrival: Arrival) {
        let connection = &self.session.connection;
        let exchange = || Exchange::incoming(&self.session, message);
        match self.session.intercept(exchange) {
            Ok(watched) => inbox.deliver(&self.session, message, arrival, watched),
            Err(status) if message.kind == Kind::Call => {
                connection.reply_status(message.sequence, status.as_ref(), MetadataRef::EMPTY);
            }
            Err(_) => {
                connection.counters.reader.dropped_pushes.fetch_add(1);
            }
        }
    }

    fn record_panic(&self, message: &MessageRef<'_>) {
        let (kind, route, id) = (message.kind, message.route, self.session.id());
        self.handlers.records.write_limited(
            Topic::Panicked,
            Some(&self.panics),
            Instant::now(),
            format_args!("the handler of a {kind} of route {route} panicked in session {id}"),
        );
    }
}

fn no_handler(connection: &Arc<Connection>, message: &MessageRef<'_>) {
    if message.kind != Kind::Call {
        connection.counters.reader.dropped_pushes.fetch_add(1);
        return;
    }
    let text = format!("nothing handles calls of route {}", message.route);
    let status = StatusRef {
        code: Status::NO_ROUTE,
        text: &text,
        cause: "",
    };
    connection.reply_status(message.sequence, status, MetadataRef::EMPTY);
}
