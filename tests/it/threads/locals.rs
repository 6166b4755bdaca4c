//! Values of the application that live as long as their thread.

use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;

use trunkline::{Client, Server};

use super::alone;
use crate::support::LIMIT;

/// Says goodbye when its thread ends.
struct Leaves(Client);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.push("/left", "pushed").unwrap();
        let reply = self.0.call("/leave", "called").unwrap();
        assert_eq!(reply.body(), b"bye");
        assert!(self.0.inbox().unwrap().try_recv().unwrap().is_none());
    }
}

thread_local! {
    static LEAVES: RefCell<Option<Leaves>> = const { RefCell::new(None) };
}

const LAST: &str = "threads::locals::what_a_thread_keeps_may_push_and_call_at_its_end";

#[test]
fn what_a_thread_keeps_may_push_and_call_at_its_end() {
    alone(LAST, LIMIT, || {
        let (sender, left) = mpsc::channel();
        let server = Server::builder()
            .on_push("/left", move |_, body| sender.send(body.to_vec()).unwrap())
            .on_call("/leave", |_, _| "bye")
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .inbox(4)
            .connect(server.local_address())
            .unwrap();
        let thread = thread::spawn(move || {
            LEAVES.set(Some(Leaves(client.clone())));
            // What the library keeps for this thread is made later, and gone earlier.
            client.call("/leave", "").unwrap();
            client.inbox().unwrap().try_recv().unwrap();
        });
        thread.join().unwrap();
        assert_eq!(left.recv_timeout(LIMIT).unwrap(), b"pushed");
    });
}
