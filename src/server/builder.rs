//! A server in the making.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::accept::AcceptThread;
use super::admission::Admission;
use super::refusal::Refusals;
use super::{AcceptHook, Server, Shared, State};
use crate::address::{Address, UnixName};
use crate::config::{Config, SocketOptions, ThreadRole, deadline};
use crate::connection::listen::{Listener, listen_tcp, listen_unix};
use crate::connection::threads::{self, Places};
use crate::connection::{dial, socket};
use crate::error::Error;
use crate::hub::Hub;
use crate::protocol::Framing;
use crate::records::Topic;
use crate::router::{HandlersBuilder, handler_methods};
use crate::status::Status;

/// Where to listen.
enum Endpoint {
    /// With socket options of its own, or with those of the server.
    At(String, Option<SocketOptions>),
    Adopted(OwnedFd),
}

/// A server in the making.
#[must_use = "nothing listens before bind"]
#[derive(Default)]
pub struct ServerBuilder {
    handlers: HandlersBuilder,
    config: Config,
    framing: Framing,
    accept_hook: Option<AcceptHook>,
    endpoints: Vec<Endpoint>,
}

impl ServerBuilder {
    handler_methods!();

    /// Asks before a connection is let in, by its address; that of a Unix peer tells its user
    /// and process. It runs on the accept thread, or in [`Server::serve`]: it must not wait. The
    /// status is told to the client. Default: all that the limits admit are let in.
    pub fn on_accept(
        mut self,
        hook: impl Fn(&Address) -> Result<(), Status> + Send + Sync + 'static,
    ) -> Self {
        self.accept_hook = Some(Box::new(hook));
        self
    }

    /// Listens on one more address, with the same handlers.
    pub fn also_on(mut self, address: impl ToString) -> Self {
        self.endpoints.push(Endpoint::At(address.to_string(), None));
        self
    }

    /// Listens on one more address, with socket options of its own.
    pub fn also_on_with(mut self, address: impl ToString, options: SocketOptions) -> Self {
        self.endpoints
            .push(Endpoint::At(address.to_string(), Some(options)));
        self
    }

    /// Accepts from one more listener that was opened elsewhere: a `TcpListener`, a
    /// `UnixListener`, or an inherited descriptor, as of systemd. It belongs to the server from
    /// now on. The file of a Unix listener is not removed at the end, and other holders of the
    /// listener, such as systemd, go on listening; but for them, too, it no longer blocks.
    pub fn also_from(mut self, listener: impl Into<OwnedFd>) -> Self {
        self.endpoints.push(Endpoint::Adopted(listener.into()));
        self
    }

    /// Listens and serves, on `HOST:PORT` (port 0: any free one), `unix:/PATH` or, on Linux,
    /// `unix:@NAME` for a Unix socket without a file.
    ///
    /// Of a name all addresses are taken that this machine has. A socket's file that a dead
    /// server has left behind is replaced; at the end the file is removed.
    ///
    /// # Errors
    /// `AddressInUse`, `Io`, `ConnectFailed` for a name that is not resolved, `Timeout` if that,
    /// or the lock of the folder of a socket's file, takes longer than `timeouts.connect`,
    /// `Overloaded` if this process has threads enough, `Unsupported` for `unix:@NAME` elsewhere
    /// than on Linux, `InvalidInput` for mistakes in the builder or the address.
    #[doc(alias = "ListenAndServe")]
    #[doc(alias = "listen")]
    pub fn bind(mut self, address: impl ToString) -> Result<Server, Error> {
        self.endpoints
            .insert(0, Endpoint::At(address.to_string(), None));
        self.start()
    }

    /// Serves on a listener that was opened elsewhere; see [`also_from`](Self::also_from).
    ///
    /// # Errors
    /// `InvalidInput` for what is not a listening stream socket, and as [`bind`](Self::bind).
    pub fn from_listener(mut self, listener: impl Into<OwnedFd>) -> Result<Server, Error> {
        self.endpoints.insert(0, Endpoint::Adopted(listener.into()));
        self.start()
    }

    /// Serves on the addresses and listeners given so far. There may be none: then it serves
    /// what is given to [`Server::serve`].
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn start(self) -> Result<Server, Error> {
        let handlers = Arc::new(self.handlers.build()?);
        self.config.check()?;
        let config = Arc::new(self.config);
        let mut listeners = Vec::new();
        for endpoint in self.endpoints {
            listen(endpoint, &config, &mut listeners)?;
        }
        let addresses = listeners
            .iter()
            .map(|(listener, _)| listener.address.clone());
        let (inbox, source) = handlers.open_inbox(&config.limits).unzip();
        let pool = handlers.open_pool(&config);
        let shared = Arc::new(Shared {
            hub: Hub::new(self.framing),
            owner: handlers.owner(&config.limits),
            handlers,
            admission: Admission::new(&config.limits),
            refusals: Refusals::new(),
            inbox,
            config,
            framing: self.framing,
            accept_hook: self.accept_hook,
            addresses: addresses.collect(),
            stopping: AtomicBool::new(false),
            state: Mutex::new(State {
                listeners: listeners
                    .iter()
                    .map(|(listener, _)| listener.clone())
                    .collect(),
                inbox: source,
                pool,
                ..State::default()
            }),
            changed: Condvar::new(),
        });
        // From here on dropping the server stops whatever has started.
        let server = Server { shared };
        for address in server.local_addresses() {
            let handlers = &server.shared.handlers;
            handlers.record(Topic::Listening, format_args!("listening on {address}"));
        }
        for (listener, config) in listeners {
            let places = Places::take(1)?;
            let shared = server.shared.clone();
            server.shared.state.lock().accept_threads += 1;
            let thread = AcceptThread::new(shared, config, places);
            let (name, role) = ("tl-accept".into(), ThreadRole::Accept);
            let options = &server.shared.config.threads;
            threads::spawn(name, role, options, move || thread.run(listener))?;
        }
        Ok(server)
    }
}

/// Opens the listeners of one endpoint, and says how their connections are set up.
fn listen(
    endpoint: Endpoint,
    config: &Arc<Config>,
    listeners: &mut Vec<(Arc<Listener>, Arc<Config>)>,
) -> Result<(), Error> {
    let mut add = |listener, config: &Arc<Config>| {
        listeners.push((Arc::new(listener), config.clone()));
    };
    match endpoint {
        Endpoint::Adopted(descriptor) => {
            let socket = socket::adopt_listener(descriptor, &config.socket)?;
            add(Listener::adopted(socket)?, config);
        }
        Endpoint::At(name, options) => {
            let config = match options {
                None => config.clone(),
                Some(options) => Arc::new(Config {
                    socket: options,
                    ..Config::clone(config)
                }),
            };
            config.check()?;
            let limit = deadline(Instant::now(), config.timeouts.connect);
            if let Some(unix) = UnixName::parse(&name)? {
                add(listen_unix(&unix, &config.socket, limit)?, &config);
                return Ok(());
            }
            for listener in listen_tcp(&dial::resolve(&name, limit)?, &config.socket)? {
                add(listener, &config);
            }
        }
    }
    Ok(())
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("config", &self.config)
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}
