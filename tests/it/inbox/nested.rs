//! Calls that are made to answer a call out of the inbox.

use trunkline::{Client, Error, ErrorKind, Received, Server};

use super::ASK;
use crate::support::{LIMIT, millis, within};

const WORK: u32 = 10;
const NAME: u32 = 11;

/// A server whose handler waits for the client's inbox, where `work` answers by calling the
/// server; what became of that call.
fn nested(work: impl FnOnce(&Received) -> Result<String, Error>) -> Result<String, Error> {
    let server = Server::builder()
        .on_call(ASK, |cx, _| {
            cx.session().call_as::<String>(WORK, ()).unwrap()
        })
        .on_call(NAME, |_, _| "Ann")
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Client::builder()
        .inbox(4)
        .connect(server.local_address())
        .unwrap();
    let pending = client.request(ASK).start(()).unwrap();
    let call = client.inbox().unwrap().recv().unwrap();
    let result = work(&call);
    call.reply("done").unwrap();
    assert_eq!(pending.wait().unwrap().body(), b"done");
    result
}

#[test]
fn a_call_for_a_received_call_is_served_though_the_handler_of_the_peer_waits() {
    within(LIMIT, || {
        let name = nested(|call| call.request(NAME).call(())?.decode());
        assert_eq!(name.unwrap(), "Ann");
    });
}

#[test]
fn a_call_that_is_not_for_the_received_call_waits_for_the_handler_of_the_peer() {
    within(LIMIT, || {
        let name = nested(|call| {
            let request = call.session().request(NAME).timeout(millis(200));
            request.call(())?.decode()
        });
        assert_eq!(name.unwrap_err().kind(), ErrorKind::Timeout);
    });
}
