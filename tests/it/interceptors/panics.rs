//! Interceptors that panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use trunkline::{
    Client, Context, Deferred, Direction, ErrorKind, Exchange, Interceptor, Outcome, Server, Status,
};

use super::{Log, connect};
use crate::support::{LIMIT, eventually, within};
use crate::threads::alone;

/// Panics where the metadata says.
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
fn a_panic_of_one_interceptor_keeps_the_end_from_no_other() {
    within(LIMIT, || {
        let (log, watch) = Log::new();
        let server = Server::builder()
            .intercept(watch("one"))
            .intercept(Panics)
            .on_call("/call", |_, _| "fine");
        let (_server, client) = connect(server, Client::builder());
        let call = |panic| client.request("/call").meta("panic", panic).call("");
        call("before").unwrap_err();
        log.expect(Direction::Incoming, "/call", Status::HANDLER_PANICKED);
        call("after").unwrap();
        log.expect(Direction::Incoming, "/call", Status::OK);
    });
}

#[test]
fn a_panic_at_an_outgoing_call_is_counted_and_does_not_reach_the_caller() {
    within(LIMIT, || {
        let server = Server::builder().on_call("/call", |_, _| "fine");
        let (server, client) = connect(server, Client::builder().intercept(Panics));
        let call = |panic| client.request("/call").meta("panic", panic).call("");
        let refused = call("before").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Intercepted);
        assert_eq!(refused.status().unwrap().code(), Status::HANDLER_PANICKED);
        assert_eq!(call("after").unwrap().body(), b"fine");
        assert_eq!(client.stats().panics, 2);
        assert_eq!(server.stats().calls_received, 1);
    });
}

#[test]
fn a_message_for_the_inbox_is_refused_by_a_panic() {
    within(LIMIT, || {
        let server = Server::builder().intercept(Panics).inbox(8);
        let (server, client) = connect(server, Client::builder());
        let call = client.request("/call").meta("panic", "before").call("");
        let error = call.unwrap_err();
        assert_eq!(error.status().unwrap().code(), Status::HANDLER_PANICKED);
        let push = client.request("/push").meta("panic", "before").push("");
        push.unwrap();
        assert!(eventually(LIMIT, || server.stats().dropped_pushes == 1));
        assert!(server.inbox().unwrap().is_empty());
        assert_eq!(server.stats().panics, 2);
    });
}

const UNWINDING: &str =
    "interceptors::panics::a_panic_of_an_interceptor_while_another_unwinds_aborts_nothing";

#[test]
fn a_panic_of_an_interceptor_while_another_unwinds_aborts_nothing() {
    alone(UNWINDING, LIMIT, || {
        let drops_its_responder = |cx: &Context<'_>, _: trunkline::Body<'_>| -> Deferred {
            let _responder = cx.defer();
            panic!("as asked");
        };
        let server = Server::builder()
            .intercept(Panics)
            .on_call("/drops", drops_its_responder)
            .on_call("/call", |_, _| ());
        let (_server, client) = connect(server, Client::builder().intercept(Panics));
        let request = |route: &'static str| client.request(route).meta("panic", "after");
        let error = request("/drops").call("").unwrap_err();
        assert_eq!(error.status().unwrap().code(), Status::NO_REPLY);
        let read = || request("/call").call_with("", |_| panic!("as asked"));
        assert!(catch_unwind(AssertUnwindSafe(read)).is_err());
        client.call("/call", "").unwrap();
    });
}
