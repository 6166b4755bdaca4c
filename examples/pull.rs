//! Pull instead of handlers: messages wait in an inbox until a thread of your own takes them.
//!
//! The server's inbox is worked by two threads; the client's by its main thread, which gets
//! pushes and answers calls of the server.

#![allow(clippy::print_stdout)]

use std::thread;
use std::time::Duration;

use trunkline::{Client, Error, Inbox, Kind, Received, Server, Status};

/// A call of the client: a number to be squared, slowly.
const SQUARE: &str = "/square";
/// A push of the server: how far the work is.
const PROGRESS: &str = "/progress";
/// A call of the server: the unit of the result.
const UNIT: &str = "/unit";

const LIMIT: Duration = Duration::from_secs(5);
const JOBS: u32 = 6;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    // Room for so many pushes. A push that finds none waits, and in time its sender does.
    let server = Server::builder().inbox(1024).bind("127.0.0.1:0")?;
    let workers = ["first", "second"].map(|name| {
        let inbox = server.inbox();
        thread::spawn(move || work(name, inbox?))
    });
    let client = Client::builder()
        .inbox(64)
        .connect(server.local_address())?;

    for job in 1..=JOBS {
        // `call_then` sends the call and goes on; the reply is printed when it comes.
        let request = client.request(SQUARE).timeout(LIMIT);
        request.call_then(job.to_string(), move |reply| match reply {
            Ok(square) => println!("{job} squared is {}", String::from_utf8_lossy(&square)),
            Err(error) => println!("{job} has no square: {error}"),
        })?;
    }
    let nonsense = client.request(SQUARE).start("seven")?;
    read_news(&client)?;
    match nonsense.wait() {
        Ok(_) => return Err("the square of nonsense".into()),
        Err(error) => println!("the server says: {error}"),
    }

    println!("{}", client.shutdown(LIMIT)?);
    server.shutdown(LIMIT)?;
    for worker in workers {
        // The inbox has ended with the server, and with it the loop.
        let done = worker.join().map_err(|_| "a worker panicked")??;
        println!("a worker did {done} jobs");
    }
    Ok(())
}

/// The life of a worker; how many jobs it did.
fn work(name: &str, inbox: Inbox) -> Result<u32, Error> {
    let mut done = 0;
    for job in inbox {
        match job.decode::<&str>()?.parse::<u64>() {
            Ok(number) => {
                let result = square(name, number, &job)?;
                job.reply(result)?;
                done += 1;
            }
            // Dropping the job would answer it, too: with status NO_REPLY.
            Err(error) => job.fail(Status::new(Status::BAD_BODY, error.to_string()))?,
        }
    }
    Ok(done)
}

fn square(name: &str, number: u64, job: &Received) -> Result<String, Error> {
    job.session()
        .push(PROGRESS, format!("the {name} worker takes {number}"))?;
    thread::sleep(Duration::from_millis(20));
    // A call for the sake of a call: it would be served even by a peer whose handler waits.
    let unit: String = job.request(UNIT).call(())?.decode()?;
    Ok(format!("{} {unit}", number * number))
}

/// Receives until all jobs are done: a push and a call for each.
fn read_news(client: &Client) -> Result<(), Failure> {
    let inbox = client.inbox()?;
    for _ in 0..2 * JOBS {
        let Some(message) = inbox.recv_timeout(LIMIT)? else {
            return Err("the server is silent".into());
        };
        match message.kind() {
            Kind::Call => message.reply("square metres")?,
            _ => println!("{}: {}", message.route(), message.decode::<&str>()?),
        }
    }
    Ok(())
}
