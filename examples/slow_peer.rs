//! One peer of three stops reading, under each policy for slow peers: what becomes of the pushes
//! to it, and that the others get theirs. It ends by itself.

#![allow(clippy::print_stdout)]

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use trunkline::{Client, Error, ErrorKind, Limits, Server, SlowPeer, SocketOptions, Timeouts};

/// A push to all: its number, and bytes that fill a queue.
const TICK: &str = "/tick";
const TICKS: u32 = 100;
const SIZE: usize = 16 << 10;

const LIMIT: Duration = Duration::from_secs(5);

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    publish(SlowPeer::Block)?;
    publish(SlowPeer::DropNewest)?;
    publish(SlowPeer::Disconnect)
}

/// Pushes the ticks to each session, whether it reads or not.
fn publish(policy: SlowPeer) -> Result<(), Failure> {
    let server = server(policy)?;
    let address = server.local_address().to_string();
    let (wake, stalled) = stalled(&address)?;
    let others = [listener(&address)?, listener(&address)?];
    let slow = server.hub().session(stalled.id())?;

    let (mut accepted, mut gave_up, mut ended) = (0, 0, None);
    for tick in 0..TICKS {
        let mut body = tick.to_le_bytes().to_vec();
        body.resize(SIZE, 0);
        if ended.is_none() {
            match slow.push(TICK, &body[..]) {
                Ok(()) => accepted += 1,
                Err(error) if error.kind() == ErrorKind::Timeout => gave_up += 1,
                Err(error) => ended = Some(error),
            }
        }
        for (client, heard) in &others {
            server.hub().session(client.id())?.push(TICK, &body[..])?;
            // In step with those who read, so that they are never too slow.
            if heard.recv_timeout(LIMIT)? != tick {
                return Err("a peer that reads missed something".into());
            }
        }
    }

    let dropped = slow.stats().slow_peer_drops;
    println!("{policy:?}: the others got all {TICKS}; of those to the stalled peer");
    println!("  {} were queued", accepted - dropped);
    println!("  {dropped} were dropped");
    println!("  {gave_up} found no room within timeouts.push");
    if let Some(error) = &ended {
        println!("  the next ended the session: {error:#}");
    }
    if ended.is_some() != (policy == SlowPeer::Disconnect) {
        return Err("the policy did not hold".into());
    }
    // It reads again: what is queued still comes.
    drop(wake);
    println!("  {}", server.shutdown(LIMIT)?);
    Ok(())
}

fn server(policy: SlowPeer) -> Result<Server, Error> {
    let mut limits = Limits::default();
    limits.queued_bytes = 512 << 10;
    let mut timeouts = Timeouts::default();
    timeouts.push = Duration::from_millis(10);
    // Little in the system's buffers, so that the queue is soon full.
    let mut socket = SocketOptions::default();
    socket.send_buffer = Some(32 << 10);
    Server::builder()
        .slow_peer(policy)
        .limits(limits)
        .timeouts(timeouts)
        .socket_options(socket)
        .bind("127.0.0.1:0")
}

/// A client whose handler waits, and so keeps it from reading, until the sender is dropped.
fn stalled(address: &str) -> Result<(Sender<()>, Client), Error> {
    let (wake, asleep) = mpsc::channel();
    let asleep = std::sync::Mutex::new(asleep);
    let mut socket = SocketOptions::default();
    socket.receive_buffer = Some(32 << 10);
    let client = Client::builder()
        .on_push(TICK, move |_, _| {
            if let Ok(asleep) = asleep.lock() {
                let _ = asleep.recv();
            }
        })
        .socket_options(socket)
        .connect(address)?;
    Ok((wake, client))
}

/// A client that reads, and the numbers of what it gets.
fn listener(address: &str) -> Result<(Client, Receiver<u32>), Error> {
    let (hear, heard) = mpsc::channel();
    let client = Client::builder()
        .on_push(TICK, move |_, body| {
            let number = body
                .first_chunk()
                .map_or(0, |number| u32::from_le_bytes(*number));
            let _ = hear.send(number);
        })
        .connect(address)?;
    Ok((client, heard))
}
