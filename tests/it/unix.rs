//! Unix sockets: names, files, peers.

use std::time::Duration;

use trunkline::{Client, Server};

use crate::support::{LIMIT, within};

#[test]
fn a_server_on_an_abstract_name_is_reached_and_stops() {
    within(LIMIT, || {
        let name = format!("unix:@trunkline-{}", std::process::id());
        let server = Server::builder()
            .on_call("/who", |cx, _| cx.peer_address().to_string())
            .bind(&name)
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();
        let who: String = client.call_as("/who", ()).unwrap();
        assert!(
            who.contains(&format!("pid {}", std::process::id())),
            "{who}"
        );
        client.shutdown(LIMIT).unwrap();
        server.shutdown(Duration::from_secs(1)).unwrap();
        Client::connect(&name).unwrap_err();
    });
}
