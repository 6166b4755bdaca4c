//! Code around handlers and outgoing calls.

mod panics;

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use trunkline::{
    Client, ClientBuilder, Direction, ErrorKind, Exchange, Interceptor, Outcome, Server,
    ServerBuilder, Status,
};

use crate::support::{LIMIT, millis, within};

/// What an interceptor saw at the end.
#[derive(Debug, PartialEq)]
struct Seen {
    direction: Direction,
    route: String,
    status: i32,
    duration: Duration,
}

/// Reports what it sees, and refuses what carries metadata `refuse`.
struct Watch {
    name: &'static str,
    begun: Sender<&'static str>,
    ended: Sender<(&'static str, Seen)>,
}

impl Interceptor for Watch {
    fn before(&self, exchange: &Exchange<'_>) -> Result<(), Status> {
        self.begun.send(self.name).unwrap();
        match exchange.metadata.get("refuse") {
            Some(who) if who == self.name => Err(Status::new(1403, "not this one")),
            _ => Ok(()),
        }
    }

    fn after(&self, exchange: &Exchange<'_>, outcome: &Outcome<'_>) {
        let seen = Seen {
            direction: exchange.direction,
            route: exchange.route.to_string(),
            status: outcome.status,
            duration: outcome.duration,
        };
        self.ended.send((self.name, seen)).unwrap();
    }
}

struct Log {
    begun: Receiver<&'static str>,
    ended: Receiver<(&'static str, Seen)>,
}

impl Log {
    fn new() -> (Log, impl Fn(&'static str) -> Watch) {
        let (begun_sender, begun) = mpsc::channel();
        let (ended_sender, ended) = mpsc::channel();
        let watch = move |name| Watch {
            name,
            begun: begun_sender.clone(),
            ended: ended_sender.clone(),
        };
        (Log { begun, ended }, watch)
    }

    fn next(&self) -> Seen {
        self.ended.recv_timeout(LIMIT / 2).unwrap().1
    }

    /// The next one, which is of this route and status.
    #[track_caller]
    fn expect(&self, direction: Direction, route: &str, status: i32) -> Duration {
        let seen = self.next();
        assert_eq!(
            (seen.direction, seen.route.as_str(), seen.status),
            (direction, route, status)
        );
        seen.duration
    }
}

fn connect(server: ServerBuilder, client: ClientBuilder) -> (Server, Client) {
    let server = server.bind("127.0.0.1:0").unwrap();
    let client = client.connect(server.local_address()).unwrap();
    (server, client)
}

#[test]
fn handlers_are_seen_with_their_route_status_and_duration() {
    within(LIMIT, || {
        let (log, watch) = Log::new();
        let server = Server::builder()
            .intercept(watch("one"))
            .on_call("/good", |_, _| std::thread::sleep(millis(20)))
            .on_call("/bad", |_, _| -> Result<(), Status> {
                Err(Status::new(1001, "no"))
            })
            .on_call("/panic", |_, _| -> () { panic!("as asked") })
            .on_call("/large", |_, _| vec![0; 20 << 20])
            .on_push("/push", |_, _| ());
        let (_server, client) = connect(server, Client::builder());
        client.call("/good", "").unwrap();
        assert!(log.expect(Direction::Incoming, "/good", 0) >= millis(20));
        client.call("/bad", "").unwrap_err();
        log.expect(Direction::Incoming, "/bad", 1001);
        client.call("/panic", "").unwrap_err();
        log.expect(Direction::Incoming, "/panic", Status::HANDLER_PANICKED);
        client.call("/large", "").unwrap_err();
        log.expect(Direction::Incoming, "/large", Status::TOO_LARGE);
        client.push("/push", "").unwrap();
        log.expect(Direction::Incoming, "/push", 0);
    });
}

#[test]
fn a_deferred_answer_is_seen_when_it_is_given() {
    within(LIMIT, || {
        let (log, watch) = Log::new();
        let (sender, responders) = mpsc::channel();
        let server = Server::builder()
            .intercept(watch("one"))
            .on_call("/later", move |cx, _| {
                let (responder, deferred) = cx.defer();
                sender.send(responder).unwrap();
                deferred
            });
        let (_server, client) = connect(server, Client::builder());
        for answer in 0..3 {
            let pending = client.request("/later").start("").unwrap();
            let responder = responders.recv_timeout(LIMIT).unwrap();
            assert!(log.ended.try_recv().is_err());
            let status = match answer {
                0 => {
                    responder.reply("now");
                    0
                }
                1 => {
                    responder.fail(Status::new(1002, "never"));
                    1002
                }
                _ => {
                    drop(responder);
                    Status::NO_REPLY
                }
            };
            log.expect(Direction::Incoming, "/later", status);
            assert_eq!(pending.wait().is_ok(), status == 0);
        }
    });
}

#[test]
fn a_call_of_this_side_is_seen_once_however_it_ends() {
    within(LIMIT, || {
        let (log, watch) = Log::new();
        let server = Server::builder()
            .on_call("/echo", |_, body| body.to_vec())
            .on_call("/bad", |_, _| -> Result<(), Status> {
                Err(Status::new(1001, "no"))
            })
            .on_call("/never", |cx, _| {
                let (responder, deferred) = cx.defer();
                std::mem::forget(responder);
                deferred
            });
        let (_server, client) = connect(server, Client::builder().intercept(watch("one")));
        let out = Direction::Outgoing;

        client.call("/echo", "a").unwrap();
        log.expect(out, "/echo", 0);
        client.call_with("/echo", "a", |_| ()).unwrap();
        log.expect(out, "/echo", 0);
        client.call("/bad", "a").unwrap_err();
        log.expect(out, "/bad", 1001);

        let limited = client.request("/never").timeout(millis(20)).call("");
        assert!(limited.unwrap_err().is_timeout());
        log.expect(out, "/never", Status::DEADLINE_EXCEEDED);
        drop(client.request("/never").start("").unwrap());
        log.expect(out, "/never", Status::CANCELLED);

        let (sender, replies) = mpsc::channel();
        let other = sender.clone();
        let pending = client.request("/echo").start("b").unwrap();
        pending.on_reply(move |reply| sender.send(reply.is_ok()).unwrap());
        log.expect(out, "/echo", 0);
        let told = move |reply: Result<_, _>| other.send(reply.is_ok()).unwrap();
        let request = client.request("/never").timeout(millis(20));
        request
            .call_then("", move |reply| told(reply.map(|_| ())))
            .unwrap();
        log.expect(out, "/never", Status::DEADLINE_EXCEEDED);
        assert!(replies.recv_timeout(LIMIT).unwrap());
        assert!(!replies.recv_timeout(LIMIT).unwrap());

        let too_large = client.call("/echo", vec![0; 20 << 20]).unwrap_err();
        assert_eq!(too_large.kind(), ErrorKind::TooLarge);
        log.expect(out, "/echo", Status::TOO_LARGE);
        assert!(log.ended.try_recv().is_err());
    });
}

#[test]
fn a_refusal_reaches_the_caller_and_those_asked_before() {
    within(LIMIT, || {
        let (log, watch) = Log::new();
        let (sender, handled) = mpsc::channel();
        let server = Server::builder()
            .intercept(watch("one"))
            .intercept(watch("two"))
            .intercept(watch("three"))
            .on_call("/call", |_, _| ())
            .on_push("/push", move |_, body| sender.send(body.to_vec()).unwrap());
        let (server, client) = connect(server, Client::builder());
        let refused = client.request("/call").meta("refuse", "two").call("");
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Status);
        assert_eq!(error.status().unwrap().code(), 1403);
        assert_eq!(log.begun.iter().take(2).collect::<Vec<_>>(), ["one", "two"]);
        let (name, seen) = log.ended.recv_timeout(LIMIT).unwrap();
        assert_eq!((name, seen.status), ("one", 1403));

        client
            .request("/push")
            .meta("refuse", "three")
            .push("a")
            .unwrap();
        client.push("/push", "b").unwrap();
        assert_eq!(handled.recv_timeout(LIMIT).unwrap(), b"b");
        assert_eq!(server.stats().dropped_pushes, 1);
        let order: Vec<_> = log.ended.iter().take(5).map(|(name, _)| name).collect();
        assert_eq!(order, ["two", "one", "three", "two", "one"]);
    });
}

#[test]
fn a_refused_call_of_this_side_is_not_sent() {
    within(LIMIT, || {
        let (_log, watch) = Log::new();
        let server = Server::builder().on_call("/call", |_, _| ());
        let (server, client) = connect(server, Client::builder().intercept(watch("one")));
        let refused = client.request("/call").meta("refuse", "one").call("");
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Intercepted);
        assert_eq!(error.status().unwrap().text(), "not this one");
        assert!(!error.is_retryable() && !error.maybe_executed());
        client.call("/call", "").unwrap();
        assert_eq!(server.stats().calls_received, 1);
    });
}

/// Panics where it is told to.
struct Panics;

impl Interceptor for Panics {
    fn before(&self, exchange: &Exchange<'_>) -> Result<(), Status> {
        assert_ne!(exchange.metadata.get("panic"), Some("before"));
        Ok(())
    }

    fn after(&self, exchange: &Exchange<'_>, _: &Outcome<'_>) {
        assert_ne!(exchange.metadata.get("panic"), Some("after"));
    }
}

#[test]
fn a_panic_of_an_interceptor_does_not_end_the_session() {
    within(LIMIT, || {
        let server = Server::builder()
            .intercept(Panics)
            .on_call("/call", |_, _| "fine");
        let (server, client) = connect(server, Client::builder());
        let before = client.request("/call").meta("panic", "before").call("");
        let status = before.unwrap_err().status().cloned().unwrap();
        assert_eq!(status.code(), Status::HANDLER_PANICKED);
        let after = client.request("/call").meta("panic", "after").call("");
        assert_eq!(after.unwrap().body(), b"fine");
        assert_eq!(client.call("/call", "").unwrap().body(), b"fine");
        assert_eq!(server.stats().panics, 2);
    });
}

#[test]
fn messages_for_the_inbox_are_seen_and_may_be_refused() {
    within(LIMIT, || {
        let (log, watch) = Log::new();
        let server = Server::builder().intercept(watch("one")).inbox(8);
        let (server, client) = connect(server, Client::builder());
        let inbox = server.inbox().unwrap();
        client.push("/push", "").unwrap();
        log.expect(Direction::Incoming, "/push", 0);
        let pending = client.request("/call").start("").unwrap();
        assert_eq!(inbox.recv().unwrap().kind(), trunkline::Kind::Push);
        let call = inbox.recv().unwrap();
        assert!(log.ended.try_recv().is_err());
        call.fail(Status::new(1003, "no")).unwrap();
        log.expect(Direction::Incoming, "/call", 1003);
        pending.wait().unwrap_err();

        let refused = client.request("/call").meta("refuse", "one").call("");
        assert_eq!(refused.unwrap_err().status().unwrap().code(), 1403);
        client
            .request("/push")
            .meta("refuse", "one")
            .push("")
            .unwrap();
        client.push("/last", "").unwrap();
        let last = inbox.recv().unwrap();
        assert_eq!(last.route().to_string(), "/last");
        assert_eq!(server.stats().dropped_pushes, 1);
    });
}
