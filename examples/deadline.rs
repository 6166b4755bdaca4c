//! A time limit goes with a call through two servers, and work for which nobody waits any more
//! stops.
//!
//!     cargo run --example deadline

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use trunkline::{Client, Context, Server, Status};

/// Works in steps of 20 ms, as long as somebody waits for the result.
fn work(cx: &Context<'_>) -> Result<u64, Status> {
    for step in 0..50 {
        if cx.cancelled() {
            println!("store: stops before step {step}, nobody waits any more");
            return Err(Status::new(Status::CANCELLED, "stopped"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(42)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (sender, stopped) = mpsc::channel();
    let store = Server::builder()
        .on_call("/find", move |cx, _| -> Result<[u8; 8], Status> {
            println!("store: {:.0?} left", cx.time_left().unwrap_or_default());
            let found = work(cx);
            let _ = sender.send(());
            Ok(found?.to_le_bytes())
        })
        .bind("127.0.0.1:0")?;
    let to_store = Client::connect(store.local_address())?;
    let front = Server::builder()
        .on_call("/ask", move |cx, _| -> Result<Vec<u8>, Status> {
            println!("front: {:.0?} left", cx.time_left().unwrap_or_default());
            thread::sleep(Duration::from_millis(50));
            // It waits no longer than the caller of this handler does.
            let reply = to_store.call("/find", ()).inspect_err(|error| {
                println!("front: {error}");
            })?;
            Ok(reply.into_body())
        })
        .bind("127.0.0.1:0")?;
    let client = Client::connect(front.local_address())?;

    println!("a call with 300 ms for work of a second:");
    let call = client.request("/ask").timeout(Duration::from_millis(300));
    if let Err(error) = call.call(()) {
        println!("client: {error}");
    }
    stopped.recv_timeout(Duration::from_secs(2))?;

    println!("a call that is dropped after 150 ms:");
    let pending = client.request("/ask").start(())?;
    thread::sleep(Duration::from_millis(150));
    drop(pending);
    stopped.recv_timeout(Duration::from_secs(2))?;

    client.shutdown(Duration::from_secs(1))?;
    front.shutdown(Duration::from_secs(1))?;
    store.shutdown(Duration::from_secs(1))?;
    Ok(())
}
