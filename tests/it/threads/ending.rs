//! Threads of the application that end, and send from the `drop` of a value that they kept.

use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use trunkline::{Client, Server, Session};

use crate::support::{LIMIT, within};

/// Sends what is left when its thread ends, as a buffer of records does.
struct LastWords(RefCell<Option<Session>>);

impl Drop for LastWords {
    fn drop(&mut self) {
        if let Some(session) = self.0.take() {
            session.push(1, "last").unwrap();
            session.call(2, "words").unwrap();
            session.flush(LIMIT).unwrap();
        }
    }
}

thread_local! {
    static KEPT: LastWords = const { LastWords(RefCell::new(None)) };
}

#[test]
fn a_thread_that_ends_may_send_from_the_drop_of_what_it_kept() {
    within(Duration::from_secs(30), || {
        let (sender, pushed) = mpsc::channel();
        let server = Server::builder()
            .on_push(1, move |_, body| sender.send(body.to_vec()).unwrap())
            .on_call(2, |_, _| ())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let session = client.session();
        let thread = thread::spawn(move || {
            KEPT.with(|kept| kept.0.replace(Some(session.clone())));
            // What this crate keeps for the thread is younger, and so it is dropped first.
            session.push(1, "first").unwrap();
            session.call(2, "").unwrap();
        });
        thread.join().unwrap();
        for expected in [b"first".as_slice(), b"last"] {
            assert_eq!(pushed.recv_timeout(LIMIT).unwrap(), expected);
        }
    });
}
