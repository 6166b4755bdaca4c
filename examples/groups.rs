//! Names, groups, and a guest who is shown the door: all in one process, and it ends by itself.

#![allow(clippy::print_stdout)]

use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use trunkline::{Client, Duplicate, Error, Sent, Server, Session, Status};

/// A call to the server: the name that a guest wants, then the groups that it joins.
const ENTER: &str = "/enter";
/// A push to guests: a line.
const LINE: &str = "/line";
/// The application's own status, with which guests are removed.
const RUDE: i32 = 1001;

const LIMIT: Duration = Duration::from_secs(5);

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let server = Server::builder()
        .on_call(ENTER, |cx, words| -> Result<(), Status> {
            let (Some(hub), guest) = (cx.hub(), cx.session()) else {
                return Err(Status::new(
                    Status::HANDLER_FAILED,
                    "only a server has a hub",
                ));
            };
            let mut words = words.decode::<&str>()?.split(' ');
            // A name that somebody has is not given away: the caller gets the status.
            let name = words.next().unwrap_or_default();
            hub.set_name(guest, name, Duplicate::Refuse)?;
            for group in words {
                hub.join(guest, group)?;
            }
            Ok(())
        })
        .bind("127.0.0.1:0")?;
    let hub = server.hub();
    let address = server.local_address().to_string();

    let ann = Guest::enter(&address, "Ann tea")?;
    let ben = Guest::enter(&address, "Ben tea chess")?;
    let cleo = Guest::enter(&address, "Cleo chess")?;
    match Guest::enter(&address, "Ann") {
        Ok(_) => return Err("there are two of the name".into()),
        Err(error) => println!("a second Ann: {error}"),
    }

    // Each is encoded once, and waits for nobody; the counts add up to the sessions it is for.
    let sent = hub.push_to_group("tea", LINE, "the kettle is on")?;
    check("for tea", sent, 2)?;
    check("for chess", hub.push_to_group("chess", LINE, "e4")?, 2)?;
    // Whoever got no name may still be on the way out.
    let others = |guest: &Session| guest.name().is_some_and(|name| &*name != "Ann");
    let sent = hub.broadcast_if(LINE, "a surprise for Ann", others)?;
    check("for all but Ann", sent, 2)?;
    ann.hears(&["the kettle is on"])?;
    ben.hears(&["the kettle is on", "e4", "a surprise for Ann"])?;
    cleo.hears(&["e4", "a surprise for Ann"])?;

    for line in hub.snapshot() {
        println!("{line}");
    }

    // Whoever is removed learns why; groups and names go with the session.
    let rude = hub.named("Ben")?;
    hub.remove(
        rude.id(),
        Status::new(RUDE, "one does not tip over the board"),
    )?;
    let report = ben.client.wait_closed(LIMIT).ok_or("Ben is still there")?;
    let farewell = report.farewell.ok_or("Ben does not know why")?;
    println!("Ben was told {farewell}");
    if let Err(error) = ben.client.push(LINE, "sorry") {
        println!("Ben says sorry: {error}");
    }
    rude.wait_closed(LIMIT).ok_or("the server still has Ben")?;
    check(
        "for tea, later",
        hub.push_to_group("tea", LINE, "more?")?,
        1,
    )?;
    ann.hears(&["more?"])?;

    ann.client.shutdown(LIMIT)?;
    cleo.client.shutdown(LIMIT)?;
    println!("{}", server.shutdown(LIMIT)?);
    Ok(())
}

struct Guest {
    client: Client,
    heard: Receiver<String>,
}

impl Guest {
    fn enter(address: &str, words: &str) -> Result<Guest, Error> {
        let (hear, heard) = mpsc::channel();
        let client = Client::builder()
            .on_push(LINE, move |_, line| {
                // Nobody listens any more when the guest has gone.
                let _ = hear.send(String::from_utf8_lossy(&line).into_owned());
            })
            .connect(address)?;
        client.call(ENTER, words)?;
        Ok(Guest { client, heard })
    }

    fn hears(&self, lines: &[&str]) -> Result<(), Failure> {
        for line in lines {
            let heard = self.heard.recv_timeout(LIMIT)?;
            if heard != *line {
                return Err(format!("heard {heard:?} instead of {line:?}").into());
            }
        }
        Ok(())
    }
}

fn check(what: &str, sent: Sent, expected: usize) -> Result<(), Failure> {
    println!("{what}: {sent:?}");
    match sent.queued == expected && sent.full + sent.closed == 0 {
        true => Ok(()),
        false => Err(format!("{expected} were expected {what}").into()),
    }
}
