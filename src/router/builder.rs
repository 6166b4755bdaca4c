//! Collecting handlers; clients and servers offer the same methods for it.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;

use super::reply::{IntoReply, ReplyTo};
use super::{ClosedHook, ConnectedHook, Context, ErrorHook, Handler, Handlers, Routed};
use crate::codec::Body;
use crate::config::Dispatch;
use crate::error::{Error, ErrorKind};
use crate::message::{OwnedRoute, Route};
use crate::session::Interceptor;

/// Handlers in the making. Mistakes are kept and shown by [`build`](HandlersBuilder::build).
#[derive(Default)]
pub(crate) struct HandlersBuilder {
    numbers: BTreeMap<u32, Routed>,
    names: HashMap<Box<str>, Routed>,
    fallback: Routed,
    connected: Option<ConnectedHook>,
    closed: Option<ClosedHook>,
    error: Option<ErrorHook>,
    interceptors: Vec<Box<dyn Interceptor>>,
    inbox: Option<usize>,
    dispatch: Dispatch,
    mistake: Option<Error>,
}

impl HandlersBuilder {
    fn routed(&mut self, route: Route<'_>) -> &mut Routed {
        match route.to_owned_route() {
            OwnedRoute::Number(number) => {
                if number == u32::MAX {
                    self.mistake(format!("route number {number} is reserved"));
                }
                self.numbers.entry(number).or_default()
            }
            OwnedRoute::Name(name) => {
                if name.is_empty() {
                    self.mistake("the name of a route is not empty".into());
                }
                self.names.entry(name).or_default()
            }
        }
    }

    fn mistake(&mut self, what: String) {
        let mistake = Error::new(ErrorKind::InvalidInput, what);
        self.mistake.get_or_insert(mistake);
    }

    pub(crate) fn push(
        &mut self,
        route: Route<'_>,
        handler: impl Fn(&Context<'_>, Body<'_>) + Send + Sync + 'static,
    ) {
        let taken = self.routed(route).push.replace(Box::new(handler)).is_some();
        if taken {
            self.mistake(format!("route {route} has two push handlers"));
        }
    }

    pub(crate) fn call<R: IntoReply>(
        &mut self,
        route: Route<'_>,
        handler: impl Fn(&Context<'_>, Body<'_>) -> R + Send + Sync + 'static,
    ) {
        let taken = self
            .routed(route)
            .call
            .replace(answering(handler))
            .is_some();
        if taken {
            self.mistake(format!("route {route} has two call handlers"));
        }
    }

    pub(crate) fn other_pushes(
        &mut self,
        handler: impl Fn(&Context<'_>, Body<'_>) + Send + Sync + 'static,
    ) {
        self.fallback.push = Some(Box::new(handler));
    }

    pub(crate) fn other_calls<R: IntoReply>(
        &mut self,
        handler: impl Fn(&Context<'_>, Body<'_>) -> R + Send + Sync + 'static,
    ) {
        self.fallback.call = Some(answering(handler));
    }

    pub(crate) fn connected(&mut self, hook: ConnectedHook) {
        self.connected = Some(hook);
    }

    pub(crate) fn closed(&mut self, hook: ClosedHook) {
        self.closed = Some(hook);
    }

    pub(crate) fn error(&mut self, hook: ErrorHook) {
        self.error = Some(hook);
    }

    pub(crate) fn intercept(&mut self, interceptor: impl Interceptor) {
        self.interceptors.push(Box::new(interceptor));
    }

    pub(crate) fn inbox(&mut self, messages: usize) {
        if messages == 0 {
            self.mistake("an inbox holds at least one message".into());
        }
        self.inbox = Some(messages);
    }

    pub(crate) fn dispatch(&mut self, dispatch: Dispatch) {
        if let Dispatch::Pool(pool) = &dispatch {
            if pool.threads == 0 || pool.messages == 0 {
                self.mistake("a pool has at least one thread, and room for one push".into());
            }
        }
        self.dispatch = dispatch;
    }

    pub(crate) fn build(mut self) -> Result<Handlers, Error> {
        if self.inbox.is_some() && (self.fallback.push.is_some() || self.fallback.call.is_some()) {
            self.mistake(
                "an inbox takes all messages without a handler: on_other_pushes and \
                 on_other_calls would have none"
                    .into(),
            );
        }
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        Ok(Handlers {
            numbers: self.numbers.into_iter().collect(),
            names: self.names,
            fallback: self.fallback,
            connected: self.connected,
            closed: self.closed,
            error: self.error,
            interceptors: self.interceptors.into(),
            records: Arc::default(),
            inbox: self.inbox,
            dispatch: self.dispatch,
        })
    }
}

fn answering<R: IntoReply>(
    handler: impl Fn(&Context<'_>, Body<'_>) -> R + Send + Sync + 'static,
) -> Handler {
    Box::new(move |context, body| {
        handler(context, body).into_reply(ReplyTo { context });
    })
}

/// The methods that the builders of clients and servers have in common. The builder has fields
/// `handlers` and `config`.
macro_rules! handler_methods {
    () => {
        /// Handles the pushes of a route, by number or name.
        ///
        /// Handlers of one session run one after the other, in the order of arrival, on the
        /// thread that reads it, unless [`dispatch`](Self::dispatch) says otherwise; see [`guide::threads`]($crate::guide::threads) for what they may
        /// do. Two push handlers of one route are `InvalidInput` when the builder ends.
        #[doc(alias = "pull")]
        #[doc(alias = "sub")]
        #[doc(alias = "subscribe")]
        #[doc(alias = "RoutePush")]
        #[doc(alias = "DataReceived")]
        #[doc(alias = "ReceiveEventHandler")]
        pub fn on_push<'r>(
            mut self,
            route: impl Into<$crate::message::Route<'r>>,
            handler: impl Fn(&$crate::Context<'_>, $crate::Body<'_>) + Send + Sync + 'static,
        ) -> Self {
            self.handlers.push(route.into(), handler);
            self
        }

        /// Handles the calls of a route, by number or name. What the handler returns is the
        /// answer: a body, `()`, a [`Deferred`]($crate::Deferred), or a `Result` with a
        /// [`Status`]($crate::Status). Two call handlers of one route are `InvalidInput` when the
        /// builder ends.
        #[doc(alias = "rep")]
        #[doc(alias = "respond")]
        #[doc(alias = "RouteCall")]
        #[doc(alias = "DataReceived")]
        pub fn on_call<'r, R: $crate::IntoReply>(
            mut self,
            route: impl Into<$crate::message::Route<'r>>,
            handler: impl Fn(&$crate::Context<'_>, $crate::Body<'_>) -> R + Send + Sync + 'static,
        ) -> Self {
            self.handlers.call(route.into(), handler);
            self
        }

        /// Handles the pushes of all routes without a push handler; without it they are dropped
        /// and counted.
        #[doc(alias = "SetUnknownPush")]
        pub fn on_other_pushes(
            mut self,
            handler: impl Fn(&$crate::Context<'_>, $crate::Body<'_>) + Send + Sync + 'static,
        ) -> Self {
            self.handlers.other_pushes(handler);
            self
        }

        /// Handles the calls of all routes without a call handler; without it they are answered
        /// with status `NO_ROUTE`.
        #[doc(alias = "SetUnknownCall")]
        pub fn on_other_calls<R: $crate::IntoReply>(
            mut self,
            handler: impl Fn(&$crate::Context<'_>, $crate::Body<'_>) -> R + Send + Sync + 'static,
        ) -> Self {
            self.handlers.other_calls(handler);
            self
        }

        /// Keeps the messages of all routes without a handler in an [`Inbox`]($crate::Inbox), to
        /// be received by threads of your own. Of a server it is one inbox for all sessions.
        ///
        /// At most so many pushes wait there, and at most `limits.inbox_bytes` of them; one
        /// without room waits, which in time stops its sender. For calls there is room as far as
        /// `limits.incoming_calls` and `limits.incoming_call_bytes` of their session go; a call
        /// beyond is answered with status `OVERLOADED`. What comes behind a push that waits is
        /// held in the backlog, as it is behind a handler that waits.
        ///
        /// Zero, or an inbox beside `on_other_pushes` or `on_other_calls`, is an error of the
        /// builder.
        #[doc(alias = "PULL")]
        pub fn inbox(mut self, messages: usize) -> Self {
            self.handlers.inbox(messages);
            self
        }

        /// On which threads handlers run: on that of their session, or, of all sessions, on a
        /// pool; see [`guide::threads`]($crate::guide::threads#a-pool). Default
        /// [`Dispatch::Inline`]($crate::Dispatch::Inline).
        ///
        /// A pool without threads, or without room for a push, is an error of the builder.
        #[doc(alias = "thread pool")]
        #[doc(alias = "workers")]
        #[doc(alias = "SetMaxGoroutine")]
        pub fn dispatch(mut self, dispatch: $crate::Dispatch) -> Self {
            self.handlers.dispatch(dispatch);
            self
        }

        /// Runs when a session begins, before its first message is read, on the thread that reads
        /// it; it may do what a handler may.
        #[doc(alias = "Accepted")]
        pub fn on_connected(
            mut self,
            hook: impl Fn(&$crate::Session) + Send + Sync + 'static,
        ) -> Self {
            self.handlers.connected(Box::new(hook));
            self
        }

        /// Runs once when a session has ended, after its last message, on the thread that read
        /// it. Its name and groups are gone by then; the [values]($crate::Session::data) kept with
        /// it are still there.
        #[doc(alias = "RemoteDisconnected")]
        pub fn on_closed(
            mut self,
            hook: impl Fn(&$crate::Session, &$crate::CloseReport) + Send + Sync + 'static,
        ) -> Self {
            self.handlers.closed(Box::new(hook));
            self
        }

        /// Runs for errors that no caller sees: failed handshakes, refused connections, sessions
        /// that did not end cleanly. It runs on whichever thread found the error, and must not
        /// wait.
        #[doc(alias = "ErrorEventHandler")]
        pub fn on_error(mut self, hook: impl Fn(&$crate::Error) + Send + Sync + 'static) -> Self {
            self.handlers.error(Box::new(hook));
            self
        }

        /// Runs code around every handler and every outgoing call, in the order of these calls.
        #[doc(alias = "plugin")]
        pub fn intercept(mut self, interceptor: impl $crate::Interceptor) -> Self {
            self.handlers.intercept(interceptor);
            self
        }

        /// How much is accepted and held. Default [`Limits::server`]($crate::Limits::server).
        pub fn limits(mut self, limits: $crate::Limits) -> Self {
            self.config.limits = limits;
            self
        }

        /// How long everything may take. Default [`Timeouts::default`]($crate::Timeouts).
        pub fn timeouts(mut self, timeouts: $crate::Timeouts) -> Self {
            self.config.timeouts = timeouts;
            self
        }

        /// How often this side says that it is there, and when its peer is taken for lost.
        /// Default [`Heartbeat::default`]($crate::Heartbeat).
        pub fn heartbeat(mut self, heartbeat: $crate::Heartbeat) -> Self {
            self.config.heartbeat = heartbeat;
            self
        }

        /// What happens to a push when the send queue of its session is full. Default
        /// [`SlowPeer::Block`]($crate::SlowPeer::Block); each session may
        /// [have its own]($crate::Session::set_slow_peer).
        pub fn slow_peer(mut self, policy: $crate::SlowPeer) -> Self {
            self.config.slow_peer = policy;
            self
        }

        /// Options of the sockets. Default [`SocketOptions::default`]($crate::SocketOptions).
        pub fn socket_options(mut self, options: $crate::SocketOptions) -> Self {
            self.config.socket = options;
            self
        }

        /// Runs on each thread that is started here, before anything else: to set its affinity
        /// or priority, or to register it somewhere. Not on the threads that a process has once:
        /// timer and callbacks, nor on one that looks up a name.
        pub fn on_thread_start(
            mut self,
            hook: impl Fn(&$crate::StartedThread<'_>) + Send + Sync + 'static,
        ) -> Self {
            self.config.threads.on_start = Some(std::sync::Arc::new(hook));
            self
        }

        /// Limits, time limits, heartbeats, socket options and the policy for slow peers as a file
        /// sets them, in place of those set so far; and how a client reconnects and holds, if it
        /// does and the file says so.
        #[cfg(feature = "config")]
        #[cfg_attr(docsrs, doc(cfg(feature = "config")))]
        pub fn settings(mut self, settings: $crate::Settings) -> Self {
            self.config.set(settings);
            self
        }

        /// Stack of each thread of a connection, in bytes. Default 512 KiB of address space.
        pub fn stack_bytes(mut self, bytes: usize) -> Self {
            self.config.threads.stack_bytes = Some(bytes);
            self
        }

        /// The protocol to speak. Default [`Framing::Native`]($crate::Framing::Native).
        pub fn framing(mut self, framing: $crate::Framing) -> Self {
            self.framing = framing;
            self
        }
    };
}
pub(crate) use handler_methods;
