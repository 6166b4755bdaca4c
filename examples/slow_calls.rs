//! Interceptors: one logs the calls that took long, on either side; one lets only those in who
//! carry a key.
//!
//!     cargo run --example slow_calls

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::thread;
use std::time::Duration;

use trunkline::{Client, Direction, Exchange, Interceptor, Outcome, Server, Status};

/// Prints what took longer than its limit.
struct LogSlowCalls {
    side: &'static str,
    limit: Duration,
}

impl Interceptor for LogSlowCalls {
    fn after(&self, exchange: &Exchange<'_>, outcome: &Outcome<'_>) {
        if outcome.duration < self.limit {
            return;
        }
        let what = match exchange.direction {
            Direction::Incoming => "handled",
            Direction::Outgoing => "called",
        };
        println!(
            "{}: {what} {} for session {} in {:.0?}, status {}",
            self.side,
            exchange.route,
            exchange.session.id(),
            outcome.duration,
            outcome.status
        );
    }
}

/// Refuses calls without the right key.
struct AskForKey;

impl Interceptor for AskForKey {
    fn before(&self, exchange: &Exchange<'_>) -> Result<(), Status> {
        match exchange.metadata.get("key") {
            Some("sesame") => Ok(()),
            _ => Err(Status::new(Status::FORBIDDEN, "no key, no answer")),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder()
        .intercept(LogSlowCalls {
            side: "server",
            limit: Duration::from_millis(50),
        })
        .intercept(AskForKey)
        .on_call("/work", |_, body| -> Result<(), Status> {
            let millis: u8 = u8::from_le_bytes(body.decode()?);
            thread::sleep(Duration::from_millis(millis.into()));
            Ok(())
        })
        .bind("127.0.0.1:0")?;
    let client = Client::builder()
        .intercept(LogSlowCalls {
            side: "client",
            limit: Duration::from_millis(50),
        })
        .connect(server.local_address())?;

    for millis in [1, 80, 2, 120] {
        client
            .request("/work")
            .meta("key", "sesame")
            .call([millis])?;
    }
    // A time limit shows as well.
    let limit = Duration::from_millis(60);
    let hurried = client.request("/work").meta("key", "sesame").timeout(limit);
    if let Err(error) = hurried.call([200]) {
        println!("hurried: {error}");
    }
    if let Err(error) = client.call("/work", [1]) {
        println!("refused: {error}");
    }
    client.shutdown(Duration::from_secs(1))?;
    server.shutdown(Duration::from_secs(1))?;
    Ok(())
}
