//! Interceptors that panic: the others, and the threads that answer, notice nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trunkline::{Client, Exchange, Interceptor, Outcome, Server, Status};

use super::connect;
use crate::support::{LIMIT, within};

/// Counts what has begun and not ended.
#[derive(Clone, Default)]
struct Open(Arc<AtomicUsize>);

impl Interceptor for Open {
    fn before(&self, _: &Exchange<'_>) -> Result<(), Status> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn after(&self, _: &Exchange<'_>, _: &Outcome<'_>) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Open {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Panics at the routes `/before` and `/after`.
struct Panics;

impl Interceptor for Panics {
    fn before(&self, exchange: &Exchange<'_>) -> Result<(), Status> {
        assert_ne!(exchange.route.to_string(), "/before");
        Ok(())
    }

    fn after(&self, exchange: &Exchange<'_>, _: &Outcome<'_>) {
        assert_ne!(exchange.route.to_string(), "/after");
    }
}

#[test]
fn the_panic_of_one_interceptor_hides_no_end_from_the_others() {
    within(LIMIT, || {
        let (here, there) = (Open::default(), Open::default());
        let server = Server::builder()
            .intercept(there.clone())
            .intercept(Panics)
            .on_other_pushes(|_, _| ())
            .on_other_calls(|_, _| ());
        let client = Client::builder().intercept(here.clone()).intercept(Panics);
        let (server, client) = connect(server, client);
        for route in ["/before", "/after"] {
            client.push(route, "").unwrap();
            let outcome = catch_unwind(AssertUnwindSafe(|| client.call(route, "")));
            assert_eq!(outcome.is_err(), route == "/before", "{route}");
        }
        client.call("/last", "").unwrap();
        client.shutdown(LIMIT).unwrap();
        server.shutdown(LIMIT).unwrap();
        assert_eq!((here.count(), there.count()), (0, 0));
    });
}

#[test]
fn a_panic_after_an_answer_does_not_reach_the_thread_that_gives_it() {
    within(LIMIT, || {
        let server = Server::builder().intercept(Panics).inbox(8);
        let (server, client) = connect(server, Client::builder());
        let inbox = server.inbox().unwrap();
        let pending = client.request("/after").start("").unwrap();
        inbox.recv().unwrap().reply("fine").unwrap();
        assert_eq!(pending.wait().unwrap().body(), b"fine");
        // An answer that is dropped in a panic: another panic there would end the process.
        let pending = client.request("/after").start("").unwrap();
        let call = inbox.recv().unwrap();
        let worker = std::thread::spawn(move || {
            let _call = call;
            panic!("as asked");
        });
        assert!(worker.join().is_err());
        let status = pending.wait().unwrap_err().status().cloned().unwrap();
        assert_eq!(status.code(), Status::NO_REPLY);
        assert_eq!(server.stats().panics, 2);
    });
}
