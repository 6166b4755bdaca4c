//! Callbacks may use the whole API: none of it deadlocks, whatever comes of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, Error, Hub, Server, Session, Timeouts};

use crate::support::{LIMIT, within};

const NOTE: u32 = 1;
const ECHO: u32 = 2;
/// What the session under test does in its handlers.
const ACT_PUSH: u32 = 3;
const ACT_CALL: u32 = 4;
/// For everything that may wait.
const SHORT: Duration = Duration::from_millis(300);

/// What a callback does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Push,
    TryPush,
    Call,
    CallAndForget,
    CallWithCallback,
    Flush,
    Close,
    Shutdown,
    Abort,
    Stats,
    Hub,
    Broadcast,
    DropClient,
    ConnectAndDrop,
    ShutdownServer,
    Panic,
}

const ACTIONS: [Action; 16] = [
    Action::Push,
    Action::TryPush,
    Action::Call,
    Action::CallAndForget,
    Action::CallWithCallback,
    Action::Flush,
    Action::Close,
    Action::Shutdown,
    Action::Abort,
    Action::Stats,
    Action::Hub,
    Action::Broadcast,
    Action::DropClient,
    Action::ConnectAndDrop,
    Action::ShutdownServer,
    Action::Panic,
];

/// Where it does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Push,
    Call,
    Connected,
    Closed,
    Reply,
    ReplyTimedOut,
    Error,
}

/// What actions act upon. The client and the server are taken out for a moment by those that
/// need to own them.
struct World {
    action: Action,
    server: Mutex<Option<Arc<Server>>>,
    hub: Mutex<Option<Hub>>,
    client: Mutex<Option<Client>>,
    done: mpsc::Sender<()>,
}

impl World {
    /// Does it once; whatever comes of it, it must come soon.
    fn act(&self, session: Option<&Session>) {
        let client = self.client.lock().unwrap().clone();
        let session = session
            .cloned()
            .or(client.as_ref().map(|client| client.session()));
        drop(client);
        let hub = self.hub.lock().unwrap().clone();
        match self.action {
            Action::Push => {
                let _ = session.map(|session| session.push(NOTE, b"pushed"));
            }
            Action::TryPush => {
                let _ = session.map(|session| session.try_push(NOTE, b"pushed").is_ok());
            }
            Action::Call => {
                let call = |session: Session| session.request(ECHO).timeout(SHORT).call(b"called");
                let _ = session.map(call);
            }
            Action::CallAndForget => {
                let start = |session: Session| session.request(ECHO).timeout(SHORT).start(b"").ok();
                drop(session.map(start));
            }
            Action::CallWithCallback => {
                let start = |session: Session| session.request(ECHO).timeout(SHORT).start(b"").ok();
                if let Some(call) = session.and_then(start) {
                    let (sender, ended) = mpsc::channel();
                    call.on_reply(move |_| {
                        let _ = sender.send(());
                    });
                    drop(ended);
                }
            }
            Action::Flush => {
                let _ = session.map(|session| session.flush(SHORT));
            }
            Action::Close => drop(session.map(|session| session.close())),
            Action::Shutdown => {
                let _ = session.map(|session| session.shutdown(SHORT));
            }
            Action::Abort => drop(session.map(|session| session.abort())),
            Action::Stats => {
                assert!(!session.unwrap().stats().to_string().is_empty());
            }
            Action::Hub => {
                let hub = hub.unwrap();
                for session in hub.sessions() {
                    assert!(hub.session(session.id()).is_ok() || session.is_closed());
                    let _ = session.try_push(NOTE, b"each");
                }
                let _ = (hub.len(), hub.is_empty());
            }
            Action::Broadcast => {
                hub.unwrap().broadcast(NOTE, b"to all").unwrap();
            }
            Action::DropClient => drop(self.client.lock().unwrap().take()),
            Action::ConnectAndDrop => {
                let address = session.map(|session| session.peer_address().clone());
                let server = self.server.lock().unwrap().clone();
                let address = server
                    .map(|server| server.local_address().clone())
                    .or(address);
                let mut timeouts = Timeouts::default();
                timeouts.connect = SHORT;
                timeouts.handshake = SHORT;
                let another = Client::builder().timeouts(timeouts);
                if let Ok(another) = another.connect(address.unwrap()) {
                    let _ = another.push(NOTE, b"from another");
                }
            }
            Action::ShutdownServer => {
                let server = self.server.lock().unwrap().clone();
                let _ = server.map(|server| server.shutdown(SHORT));
            }
            Action::Panic => {
                let _ = self.done.send(());
                panic!("of the test");
            }
        }
        let _ = self.done.send(());
    }

    /// As [`act`](World::act), on a thread of the test, of which a deadlock is one as well.
    fn act_once_more(self: &Arc<Self>) {
        if self.action != Action::Panic {
            self.act(None);
        }
    }
}

/// One action at one place, on the client's or the server's side.
fn combination(place: Place, action: Action, at_server: bool) {
    let (done, acted) = mpsc::channel();
    let world = Arc::new(World {
        action,
        server: Mutex::default(),
        hub: Mutex::default(),
        client: Mutex::default(),
        done,
    });
    let mut timeouts = Timeouts::default();
    timeouts.close = SHORT;
    let mut server = Server::builder()
        .timeouts(timeouts.clone())
        .on_call(ECHO, |_, body| body.to_vec());
    let mut client = Client::builder()
        .timeouts(timeouts)
        .on_push(NOTE, |_, _| {})
        .on_call(ECHO, |_, body| body.to_vec());
    macro_rules! place {
        ($builder:ident) => {{
            let world = world.clone();
            $builder = match place {
                Place::Push => {
                    $builder.on_push(ACT_PUSH, move |cx, _| world.act(Some(&cx.session())))
                }
                Place::Call => {
                    $builder.on_call(ACT_CALL, move |cx, _| world.act(Some(&cx.session())))
                }
                Place::Connected => $builder.on_connected(move |session| world.act(Some(session))),
                Place::Closed => $builder.on_closed(move |session, _| world.act(Some(session))),
                Place::Error => $builder.on_error(move |_| world.act(None)),
                Place::Reply | Place::ReplyTimedOut => $builder,
            };
        }};
    }
    match at_server {
        true => place!(server),
        false => place!(client),
    }
    // Held for a moment only: the world needs the server before the first connection.
    let server = Arc::new(server.bind("127.0.0.1:0").unwrap());
    *world.hub.lock().unwrap() = Some(server.hub().clone());
    *world.server.lock().unwrap() = Some(server.clone());
    let address = server.local_address();
    let client = client.connect(address).unwrap();
    let id = client.id();
    *world.client.lock().unwrap() = Some(client.clone());
    let session = server.hub().session(id);
    let peer = match at_server {
        true => client.session(),
        // Some actions have ended it by now.
        false => session.unwrap_or_else(|_| client.session()),
    };
    let own = match at_server {
        true => server
            .hub()
            .session(id)
            .unwrap_or_else(|_| client.session()),
        false => client.session(),
    };
    drop(client);
    match place {
        Place::Push => {
            let _ = peer.push(ACT_PUSH, b"act");
        }
        Place::Call => {
            let _ = peer.request(ACT_CALL).timeout(SHORT).call(b"act");
        }
        Place::Connected => {}
        Place::Closed => peer.close(),
        Place::Reply => on_reply(&world, &own, ECHO, LIMIT),
        Place::ReplyTimedOut => on_reply(&world, &own, u32::MAX - 1, Duration::from_micros(1)),
        Place::Error => peer.abort(),
    }
    let acted = acted.recv_timeout(LIMIT);
    assert!(
        acted.is_ok(),
        "{action:?} in {place:?}, at the server: {at_server}"
    );
    world.act_once_more();
    *world.client.lock().unwrap() = None;
    *world.server.lock().unwrap() = None;
    server.shutdown(SHORT).unwrap();
}

fn on_reply(world: &Arc<World>, session: &Session, route: u32, limit: Duration) {
    let world = world.clone();
    let callback = {
        let session = session.clone();
        move |_: Result<trunkline::Reply, Error>| world.act(Some(&session))
    };
    let call = session.request(route).timeout(limit).start(b"");
    // A call that has ended calls back here.
    let _ = catch_unwind(AssertUnwindSafe(|| call.unwrap().on_reply(callback)));
}

fn everything_in(place: Place) {
    within(Duration::from_secs(120), move || {
        thread::scope(|scope| {
            for at_server in [true, false] {
                scope.spawn(move || {
                    for action in ACTIONS {
                        combination(place, action, at_server);
                    }
                });
            }
        });
    });
}

#[test]
fn a_push_handler_may_do_anything() {
    everything_in(Place::Push);
}

#[test]
fn a_call_handler_may_do_anything() {
    everything_in(Place::Call);
}

#[test]
fn the_connected_event_may_do_anything() {
    everything_in(Place::Connected);
}

#[test]
fn the_closed_event_may_do_anything() {
    everything_in(Place::Closed);
}

#[test]
fn a_callback_of_a_reply_may_do_anything() {
    everything_in(Place::Reply);
}

#[test]
fn a_callback_of_a_time_limit_may_do_anything() {
    everything_in(Place::ReplyTimedOut);
}

#[test]
fn the_error_event_may_do_anything() {
    everything_in(Place::Error);
}
