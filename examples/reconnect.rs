//! A server that is killed and restarted twice, and a client that comes back each time and loses
//! nothing unawares: all in one process, and it ends by itself.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use trunkline::{Backoff, Client, Error, Hold, Server};

/// A call with which the client introduces itself.
const LOGIN: &str = "/login";
/// A push: a reading.
const READING: &str = "/reading";

const LIMIT: Duration = Duration::from_secs(5);
/// How long the server runs, and how long it is away.
const UP: Duration = Duration::from_millis(700);
const DOWN: Duration = Duration::from_millis(500);

fn main() -> Result<(), Error> {
    let received = Arc::new(AtomicU32::new(0));
    let mut server = start("127.0.0.1:0", &received)?;
    let address = server.local_address().clone();

    let mut backoff = Backoff::default();
    backoff.most = Duration::from_millis(200);
    let client = Client::builder()
        .reconnect(backoff)
        .hold(Hold::default())
        .on_login(|session| session.call(LOGIN, "sensor 7").map(drop))
        .on_state(|change| println!("client: {change}"))
        .connect(&address)?;

    let (server, sent, refused) = thread::scope(|scope| -> Result<_, Error> {
        let pusher = scope.spawn(|| push_readings(&client));
        for _ in 0..2 {
            thread::sleep(UP);
            kill(server);
            thread::sleep(DOWN);
            server = start(&address.to_string(), &received)?;
        }
        client.wait_connected(LIMIT)?;
        let (sent, refused) = pusher.join().unwrap_or_default();
        Ok((server, sent, refused))
    })?;

    client.shutdown(LIMIT)?;
    let report = server.shutdown(LIMIT)?;
    println!("server: {report}");
    let totals = client.totals();
    println!("sent: {sent}, refused: {refused}");
    println!("received: {}", received.load(Ordering::Relaxed));
    println!("not written: {}", totals.not_written);
    println!("unconfirmed: {}", totals.unconfirmed);
    // The logins are among them.
    println!("confirmed: {}, logins included", totals.confirmed);
    Ok(())
}

fn start(address: &str, received: &Arc<AtomicU32>) -> Result<Server, Error> {
    let received = received.clone();
    let server = Server::builder()
        .on_call(LOGIN, |cx, who| {
            println!("server: session {} is {who}", cx.session().id())
        })
        .on_push(READING, move |_, _| {
            received.fetch_add(1, Ordering::Relaxed);
        })
        .bind(address)?;
    println!("server: listens on {}", server.local_address());
    Ok(server)
}

/// As a crash does it: no goodbye.
fn kill(server: Server) {
    println!("server: is killed");
    for session in server.hub().sessions() {
        session.abort();
    }
}

/// Pushes all the time; how many were accepted, and how many not.
fn push_readings(client: &Client) -> (u32, u32) {
    let (mut sent, mut refused) = (0, 0);
    for reading in 0..3000_u32 {
        match client.push(READING, reading.to_le_bytes()) {
            Ok(()) => sent += 1,
            Err(_) => refused += 1,
        }
        thread::sleep(Duration::from_millis(1));
    }
    (sent, refused)
}
