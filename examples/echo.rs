//! Pushes, calls, a server push, a call from the server to a client; then two seconds of load.
//!
//! ```text
//! echo                  a server and four clients in this process
//! echo server [ADDR]    only the server, until it is killed
//! echo client [ADDR]    only a client; ADDR is 127.0.0.1:2500 unless given
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use trunkline::{Body, Client, CloseReason, Context, Error, Server, Status};

// What a message is about: a number, or a name.
const LOG: u32 = 1;
const NEWS: u32 = 2;
const ADD_ONE: u32 = 3;
const LOAD: u32 = 4;
const GREET: &str = "/greet";
const NAME: &str = "/name";

const DEFAULT_ADDRESS: &str = "127.0.0.1:2500";
const LIMIT: Duration = Duration::from_secs(2);
const LOAD_TIME: Duration = Duration::from_secs(1);
const CALLERS: usize = 8;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] => all_in_one(),
        ["server"] => only_server(DEFAULT_ADDRESS),
        ["server", address] => only_server(address),
        ["client"] => only_client(DEFAULT_ADDRESS),
        ["client", address] => only_client(address),
        _ => Err("usage: echo [server [ADDR] | client [ADDR]]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("echo: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn all_in_one() -> Result<(), Failure> {
    let counted = Arc::new(AtomicU64::new(0));
    let server = serve("127.0.0.1:0", counted.clone())?;
    let address = server.local_address().to_string();
    let visitors = [
        Visitor::arrive(&address, "Ann")?,
        Visitor::arrive(&address, "Ben")?,
        Visitor::arrive(&address, "Cleo")?,
        Visitor::arrive(&address, "Dan")?,
    ];

    // To all sessions at once; and a call in the other direction, from server to client.
    let sent = server.hub().broadcast(NEWS, "to all of you")?;
    check("sessions that the broadcast reached", sent.queued, 4)?;
    for visitor in &visitors {
        visitor.hear_news()?;
        let session = server.hub().session(visitor.client.id())?;
        let name: String = session.call_as(NAME, b"")?;
        println!("server: session {} is {name}", session.id());
    }

    let [ann, others @ ..] = visitors;
    let load = put_load_on(&ann.client)?;
    let handled = counted.load(Ordering::Relaxed);
    check("pushes that the server counted", handled, load.pushes)?;
    // Beside the load: a log, two calls and two answers to the question for the name.
    ann.leave(5 + load.pushes + load.calls)?;
    for visitor in others {
        visitor.leave(5)?;
    }
    server.shutdown(LIMIT)?;
    println!("\n{}", load.summary);
    Ok(())
}

fn only_server(address: &str) -> Result<(), Failure> {
    let server = serve(address, Arc::default())?;
    println!("server: listening on {}", server.local_address());
    server.wait();
    Ok(())
}

fn only_client(address: &str) -> Result<(), Failure> {
    let visitor = Visitor::arrive(address, "a visitor")?;
    let load = put_load_on(&visitor.client)?;
    visitor.leave(4 + load.pushes + load.calls)?;
    println!("\n{}", load.summary);
    Ok(())
}

/// A server that prints what happens; `counted` counts the pushes of the load.
fn serve(address: &str, counted: Arc<AtomicU64>) -> Result<Server, Error> {
    Server::builder()
        .on_connected(|session| println!("server: {} is here", session.peer_address()))
        .on_closed(|_, report| println!("server: {report}"))
        .on_error(|error| eprintln!("server: {error}"))
        .on_push(LOG, |cx, body| {
            let text = String::from_utf8_lossy(&body);
            println!("server: session {} logs {text:?}", cx.session().id());
        })
        .on_push(LOAD, move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .on_call(ADD_ONE, |_, body| add_one(body))
        .on_call(GREET, greet)
        .bind(address)
}

/// What a handler returns is the reply: here bytes, or an error status.
fn add_one(body: Body<'_>) -> Result<[u8; 4], Status> {
    let bytes = body.as_bytes().try_into();
    let bytes = bytes.map_err(|_| Status::new(Status::BAD_BODY, "not four bytes"))?;
    Ok((u32::from_le_bytes(bytes).wrapping_add(1)).to_le_bytes())
}

/// A handler may use the session that it serves: here it pushes to the caller, and calls it.
fn greet(cx: &Context<'_>, _: Body<'_>) -> Result<String, Status> {
    let session = cx.session();
    session.push(NEWS, "somebody is being greeted")?;
    let name: String = session.call_as(NAME, b"")?;
    Ok(format!("hello, {name}"))
}

/// A client and the news that it was sent.
struct Visitor {
    client: Client,
    name: &'static str,
    news: Receiver<String>,
}

impl Visitor {
    /// Connects, and does everything once.
    fn arrive(address: &str, name: &'static str) -> Result<Visitor, Failure> {
        let (sender, news) = mpsc::channel();
        let client = Client::builder()
            .on_push(NEWS, move |_, body| {
                // Nobody listens any more once the visitor has left.
                let _ = sender.send(String::from_utf8_lossy(&body).into_owned());
            })
            .on_call(NAME, move |_, _| name)
            .connect(address)?;
        let visitor = Visitor { client, name, news };

        visitor.client.push(LOG, format!("{name} has arrived"))?;
        let reply = visitor.client.call(ADD_ONE, 41u32.to_le_bytes())?;
        check("41 plus one", reply.body(), &42u32.to_le_bytes())?;
        println!("{name}: 41 plus one is 42");
        let greeting: String = visitor.client.call_as(GREET, b"")?;
        println!("{name}: the server says {greeting:?}");
        visitor.hear_news()?;
        Ok(visitor)
    }

    fn hear_news(&self) -> Result<(), Failure> {
        let news = self.news.recv_timeout(LIMIT)?;
        println!("{}: news {news:?}", self.name);
        Ok(())
    }

    /// Closes; the report says what became of the `sent` pushes, calls and replies.
    fn leave(self, sent: u64) -> Result<(), Failure> {
        let report = self.client.shutdown(LIMIT)?;
        check("the end", report.reason, CloseReason::Clean)?;
        check("confirmed messages", report.confirmed.messages, sent)
    }
}

/// What two seconds of load came to.
struct Load {
    pushes: u64,
    calls: u64,
    summary: String,
}

fn put_load_on(client: &Client) -> Result<Load, Failure> {
    let start = Instant::now();
    let mut pushes = 0;
    while start.elapsed() < LOAD_TIME {
        for _ in 0..64 {
            client.push(LOAD, [7; 64])?;
        }
        pushes += 64;
    }
    // Handlers run in order: when this call is answered, every push has been handled.
    client.call(ADD_ONE, [0; 4])?;
    let push_rate = pushes as f64 / start.elapsed().as_secs_f64();

    // Any number of threads share one client; their calls are combined into few writes.
    let start = Instant::now();
    let mut nanos = Histogram::new(3)?;
    thread::scope(|scope| -> Result<(), Failure> {
        let callers = [(); CALLERS].map(|()| scope.spawn(|| call_for_a_second(client)));
        for caller in callers {
            nanos += caller.join().map_err(|_| "a caller panicked")??;
        }
        Ok(())
    })?;
    let call_rate = nanos.len() as f64 / start.elapsed().as_secs_f64();
    let [p50, p99] = [0.50, 0.99].map(|part| nanos.value_at_quantile(part) as f64 / 1000.0);
    Ok(Load {
        pushes,
        calls: nanos.len() + 1,
        summary: format!(
            "one way {push_rate:>9.0} messages/s of 64 bytes, 1 thread, 1 connection\n\
             calls   {call_rate:>9.0} calls/s, {CALLERS} threads sharing 1 connection: \
             p50 {p50:.1} us, p99 {p99:.1} us"
        ),
    })
}

fn call_for_a_second(client: &Client) -> Result<Histogram<u64>, Failure> {
    let mut nanos = Histogram::new(3)?;
    let start = Instant::now();
    for number in 0u32.. {
        let called = Instant::now();
        // `call_with` lends the reply instead of copying it.
        let is_right = client.call_with(ADD_ONE, number.to_le_bytes(), |reply| {
            *reply == (number + 1).to_le_bytes()
        })?;
        nanos.record(called.elapsed().as_nanos() as u64)?;
        check("a right answer", is_right, true)?;
        if start.elapsed() > LOAD_TIME {
            break;
        }
    }
    Ok(nanos)
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, is: T, should_be: T) -> Result<(), Failure> {
    match is == should_be {
        true => Ok(()),
        false => Err(format!("{what}: {is:?} instead of {should_be:?}").into()),
    }
}
