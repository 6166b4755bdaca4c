//! Both ends have the same powers: calls in both directions, made by handlers on the session
//! that they serve; and answers that are given later, by another thread.

#![allow(clippy::print_stdout)]

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use trunkline::{Body, Client, CloseReason, Context, Responder, Server, Status};

/// `n!`, for which each end asks the other for `(n - 1)!`.
const FACTORIAL: &str = "/factorial";
/// Signs what the caller sends, once it has asked the caller for its name.
const SIGN: &str = "/sign";
const NAME: &str = "/name";
/// A place at a table; the meal is served when the table is full.
const DINNER: &str = "/dinner";
const TABLE: usize = 3;

const LIMIT: Duration = Duration::from_secs(2);

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let (seat, seated) = mpsc::channel();
    let server = Server::builder()
        .on_call(FACTORIAL, |cx, n| factorial("server", cx, n))
        .on_call(SIGN, sign)
        .on_call(DINNER, move |cx, guest| {
            // The handler returns at once; whoever holds the responder answers. If nobody does,
            // dropping it answers status NO_REPLY, so that no caller waits in vain.
            let (responder, deferred) = cx.defer();
            drop(seat.send((responder, guest.to_vec())));
            deferred
        })
        .bind("127.0.0.1:0")?;
    let waiter = thread::spawn(move || serve_dinner(&seated));
    let client = Client::builder()
        .on_call(FACTORIAL, |cx, n| factorial("client", cx, n))
        .on_call(NAME, |_, _| "Ann")
        .connect(server.local_address())?;

    call_back(&client)?;
    call_each_other(&client)?;
    call_at_the_same_time(&server, &client)?;
    answer_later(&client)?;

    let report = client.shutdown(LIMIT)?;
    check("the end", report.reason, CloseReason::Clean)?;
    server.shutdown(LIMIT)?;
    // With the server its handlers go, and with them the channel to the waiter.
    drop(server);
    waiter.join().map_err(|_| "the waiter panicked")?;
    println!("all results are right");
    Ok(())
}

/// The client calls the server, whose handler calls the client before it answers.
fn call_back(client: &Client) -> Result<(), Failure> {
    let signed: String = client.call_as(SIGN, "a letter")?;
    println!("signed: {signed:?}");
    check("the letter", signed.as_str(), "a letter, signed Ann")
}

fn sign(cx: &Context<'_>, letter: Body<'_>) -> Result<String, Status> {
    // While the handler waits, another thread reads the connection for it.
    let name: String = cx.session().call_as(NAME, b"")?;
    let letter: &str = letter.decode()?;
    Ok(format!("{letter}, signed {name}"))
}

/// The client calls the server, which calls the client, which calls the server ...
fn call_each_other(client: &Client) -> Result<(), Failure> {
    let result: String = client.call_as(FACTORIAL, "5")?;
    println!("5! = {result}");
    check("5!", result.as_str(), "120")
}

/// The same handler serves both ends.
fn factorial(end: &str, cx: &Context<'_>, n: Body<'_>) -> Result<String, Status> {
    let not_a_number = |_| Status::new(Status::BAD_BODY, "a number is expected");
    let n: u64 = n.decode::<&str>()?.parse().map_err(not_a_number)?;
    if n <= 1 {
        return Ok("1".into());
    }
    if n <= 5 {
        println!("  the {end} needs {}! for {n}!", n - 1);
    }
    let smaller: String = cx.session().call_as(FACTORIAL, (n - 1).to_string())?;
    let smaller: u64 = smaller.parse().map_err(not_a_number)?;
    Ok((n * smaller).to_string())
}

/// The server begins such a chain of calls while the client begins one too.
fn call_at_the_same_time(server: &Server, client: &Client) -> Result<(), Failure> {
    let session = server.hub().session(client.id())?;
    // `start` sends a call and does not wait for its reply.
    let six = client.request(FACTORIAL).start("6")?;
    let seven = session.request(FACTORIAL).start("7")?;
    check("6!", six.wait()?.decode()?, "720")?;
    check("7!", seven.wait()?.decode()?, "5040")
}

/// Three calls are in flight at once; none is answered before all have come.
fn answer_later(client: &Client) -> Result<(), Failure> {
    let mut first = client.request(DINNER).start("Ann")?;
    let second = client.request(DINNER).start("Ben")?;
    check("meals served early", first.try_take().is_some(), false)?;
    // Instead of waiting one can be told: here by the thread that reads the connection.
    let (tell, told) = mpsc::channel();
    second.on_reply(move |meal| drop(tell.send(meal)));
    let third = client.call(DINNER, "Cleo")?;

    let meals = [first.wait()?, told.recv_timeout(LIMIT)??, third];
    for (meal, guest) in meals.iter().zip(["Ann", "Ben", "Cleo"]) {
        let text: &str = meal.decode()?;
        println!("{text}");
        check("the meal", text, format!("soup for {guest}").as_str())?;
    }
    Ok(())
}

/// A worker thread: it answers the calls that the handlers have left to it.
fn serve_dinner(seated: &Receiver<(Responder, Vec<u8>)>) {
    let mut table = Vec::new();
    for guest in seated {
        table.push(guest);
        if table.len() == TABLE {
            for (responder, guest) in table.drain(..) {
                responder.reply(format!("soup for {}", String::from_utf8_lossy(&guest)));
            }
        }
    }
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, is: T, should_be: T) -> Result<(), Failure> {
    match is == should_be {
        true => Ok(()),
        false => Err(format!("{what}: {is:?} instead of {should_be:?}").into()),
    }
}
