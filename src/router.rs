//! From routes to handlers: what runs when a message comes, and where.

mod builder;
mod context;
mod pool;
mod reply;
mod service;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::codec::Body;
use crate::config::{Config, Dispatch, Limits};
use crate::connection::{Arrival, CloseReport, Connection, Owner, Receiver};
use crate::error::{Error, caught};
use crate::hub::Member;
use crate::message::{Kind, MessageRef, MetadataRef, Route};
use crate::records::{Records, Topic};
use crate::session::{Exchange, Inbox, Interceptors, Session, Source};
use crate::status::{Status, StatusRef};

pub(crate) use builder::{HandlersBuilder, handler_methods};
pub use context::Context;
use pool::Lane;
pub(crate) use pool::Workers;
pub use reply::{IntoReply, Replied, ReplyTo};
use service::Service;

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
    /// On which threads they run.
    dispatch: Dispatch,
}

impl Handlers {
    /// The inbox that was asked for, and what keeps it open.
    pub(crate) fn open_inbox(&self, limits: &Limits) -> Option<(Inbox, Source)> {
        self.inbox.map(|messages| Inbox::open(messages, limits))
    }

    /// The pool that was asked for.
    pub(crate) fn open_pool(&self, config: &Config) -> Option<Arc<Workers>> {
        match &self.dispatch {
            Dispatch::Inline => None,
            Dispatch::Pool(pool) => Some(Workers::new(pool.clone(), config)),
        }
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
    service: Arc<Service>,
    /// The way to the inbox, if there is one.
    inbox: Option<Source>,
    /// The way to the pool, if there is one.
    lane: Option<Arc<Lane>>,
    /// The session's place in a server's hub; a client's session has none. It is dropped last:
    /// a stop waits for those that the hub knows, and then the inbox has ended.
    member: Option<Member>,
}

impl Router {
    pub(crate) fn new(
        handlers: Arc<Handlers>,
        session: Session,
        member: Option<Member>,
        inbox: Option<Source>,
        pool: Option<Arc<Workers>>,
    ) -> Self {
        let hub = member.as_ref().map(Member::hub).cloned();
        let service = Arc::new(Service::new(handlers, session, hub));
        Router {
            lane: pool.map(|workers| Lane::new(service.clone(), workers)),
            service,
            inbox,
            member,
        }
    }
}

impl Receiver for Router {
    fn connected(&self) {
        let Service {
            handlers, session, ..
        } = &*self.service;
        let (id, peer) = (session.id(), session.peer_address());
        handlers.record(Topic::Begun, format_args!("session {id} with {peer} began"));
        if let Some(hook) = &handlers.connected {
            hook(session);
        }
    }

    fn message(&self, message: &MessageRef<'_>, arrival: Arrival) -> bool {
        let connection = &self.service.session.connection;
        let Some(handler) = self.service.handler(message) else {
            match &self.inbox {
                Some(inbox) => self.deliver(inbox, message, arrival),
                None => no_handler(connection, message),
            }
            return false;
        };
        if let Some(lane) = &self.lane {
            // What somebody here waits for must not wait for a thread, which may be who waits.
            if !connection.descends_from_open_call(message) && lane.take(message, arrival) {
                return false;
            }
        }
        self.service.run(handler, message, arrival);
        true
    }

    fn closed(&self, report: &CloseReport) {
        if let Some(member) = &self.member {
            member.leave();
        }
        if let Some(lane) = &self.lane {
            lane.finish();
        }
        let Service {
            handlers, session, ..
        } = &*self.service;
        let topic = report
            .error
            .as_ref()
            .map_or(Topic::Ended, |_| Topic::Broken);
        handlers.record(topic, format_args!("{report}"));
        if let Some(error) = &report.error {
            handlers.tell(error);
        }
        if let Some(hook) = &handlers.closed {
            hook(session, report);
        }
    }

    fn end(&self) {
        self.service.session.clear_data();
    }
}

impl Router {
    /// Puts a message without a handler into the inbox, unless an interceptor refuses it.
    fn deliver(&self, inbox: &Source, message: &MessageRef<'_>, arrival: Arrival) {
        let session = &self.service.session;
        let connection = &session.connection;
        let exchange = || Exchange::incoming(session, message);
        match session.intercept(exchange) {
            Ok(watched) => inbox.deliver(session, message, arrival, watched),
            Err(status) if message.kind == Kind::Call => {
                connection.reply_status(message.sequence, status.as_ref(), MetadataRef::EMPTY);
            }
            Err(_) => {
                connection.counters.reader.dropped_pushes.fetch_add(1);
            }
        }
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
