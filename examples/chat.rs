//! A chat room: what one guest says, the server sends to all.
//!
//! ```text
//! chat                      a server and three clients in this process
//! chat server ADDR          only the room, until it is killed
//! chat client ADDR NAME     says the lines of standard input, prints what is said
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use trunkline::{Client, CloseReason, CloseReport, Error, Server, Status};

/// A call to the server: a name that wants to come in.
const ENTER: &str = "/chat/enter";
/// A push to the server: a line. The metadata pair "name" tells who says it.
const SAY: &str = "/chat/say";
/// A push to every client: a name and a line.
const SAID: &str = "/chat/said";

const LIMIT: Duration = Duration::from_secs(2);

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] => all_in_one(),
        ["server", address] => only_server(address),
        ["client", address, name] => only_client(address, name),
        _ => Err("usage: chat [server ADDR | client ADDR NAME]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("chat: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn all_in_one() -> Result<(), Failure> {
    let room = Room::open("127.0.0.1:0")?;
    let address = room.server.local_address().to_string();
    let (hear, heard) = mpsc::channel();
    let enter = |name: &'static str| {
        let hear = hear.clone();
        // Nobody listens any more when the program ends early.
        Guest::enter(&address, name, move |line| drop(hear.send((name, line))))
    };
    let guests = [enter("Ann")?, enter("Ben")?, enter("Cleo")?];
    let refused = enter("").err().map(|error| error.to_string());
    println!("without a name: {}", refused.ok_or("not refused")?);

    let script = ["hello", "has anybody seen the tea?", "goodbye"];
    for line in script {
        for guest in &guests {
            guest.say(line)?;
        }
    }
    let said = script.len() * guests.len();
    for _ in 0..said * guests.len() {
        let (name, line) = heard.recv_timeout(LIMIT)?;
        println!("{name:<4} hears  {line}");
    }

    for guest in guests {
        let report = guest.leave()?;
        check("the end", report.reason, CloseReason::Clean)?;
        // The call with which it came in, and its lines.
        let sent = 1 + script.len() as u64;
        check("what arrived", report.confirmed.messages, sent)?;
    }
    check("lines sent on", room.close()?, said)?;
    check("lines heard beyond that", heard.try_iter().count(), 0)?;
    println!("{said} lines were said, and each was heard by all three");
    Ok(())
}

fn only_server(address: &str) -> Result<(), Failure> {
    let room = Room::open(address)?;
    println!("the room is open at {}", room.server.local_address());
    room.server.wait();
    Ok(())
}

fn only_client(address: &str, name: &str) -> Result<(), Failure> {
    let guest = Guest::enter(address, name, |line| println!("{line}"))?;
    for line in std::io::stdin().lines() {
        guest.say(&line?)?;
    }
    guest.leave()?;
    Ok(())
}

/// The server, and the thread that sends to all what one says.
struct Room {
    server: Server,
    /// Its result: how many lines it has sent on.
    speaker: JoinHandle<usize>,
}

impl Room {
    fn open(address: &str) -> Result<Room, Error> {
        // Handlers are set before there is a server, so they hand the lines to a thread.
        let (say, said) = mpsc::channel();
        let server = Server::builder()
            .on_call(ENTER, |cx, name| {
                if name.is_empty() {
                    // From here on the guest hears nothing; the answer still reaches it.
                    cx.session().close();
                    return Err(Status::new(1000, "a guest needs a name"));
                }
                Ok("welcome")
            })
            .on_push(SAY, move |cx, line| {
                let name = cx.metadata().get("name").unwrap_or("somebody");
                let line = String::from_utf8_lossy(&line);
                // The speaker lives as long as this handler.
                let _ = say.send(format!("{name}: {line}"));
            })
            .bind(address)?;
        let hub = server.hub().clone();
        let speaker = thread::spawn(move || {
            let mut lines = 0;
            for line in said {
                // Encoded once, and put into every session's queue; it waits for nobody.
                match hub.broadcast(SAID, &line) {
                    Ok(sent) if sent.full > 0 => eprintln!("{} guests are too slow", sent.full),
                    Ok(_) => lines += 1,
                    Err(error) => eprintln!("{line:?} was not sent: {error}"),
                }
            }
            lines
        });
        Ok(Room { server, speaker })
    }

    /// Ends when all sessions have ended; the answer is how many lines were sent on.
    fn close(self) -> Result<usize, Failure> {
        self.server.shutdown(LIMIT)?;
        // With the server its handlers go, and with them the channel to the speaker.
        drop(self.server);
        let lines = self.speaker.join();
        lines.map_err(|_| "the speaker panicked".into())
    }
}

struct Guest {
    client: Client,
    name: String,
}

impl Guest {
    /// Comes in; `hear` is given every line that is said.
    fn enter(
        address: &str,
        name: &str,
        hear: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<Guest, Error> {
        let client = Client::builder()
            .on_push(SAID, move |_, line| {
                hear(String::from_utf8_lossy(&line).into_owned());
            })
            .on_closed(|_, report| {
                if report.reason != CloseReason::Clean {
                    eprintln!("chat: {report}");
                }
            })
            .connect(address)?;
        client.call(ENTER, name)?;
        let name = name.to_owned();
        Ok(Guest { client, name })
    }

    fn say(&self, line: &str) -> Result<(), Error> {
        self.client.request(SAY).meta("name", &self.name).push(line)
    }

    fn leave(self) -> Result<CloseReport, Error> {
        self.client.shutdown(LIMIT)
    }
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, is: T, should_be: T) -> Result<(), Failure> {
    match is == should_be {
        true => Ok(()),
        false => Err(format!("{what}: {is:?} instead of {should_be:?}").into()),
    }
}
