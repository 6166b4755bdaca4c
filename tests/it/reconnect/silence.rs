//! A line that carries nothing any more: heartbeats find it, and the client dials again.

use std::time::Duration;

use trunkline::{Client, ClientState, ErrorKind, Heartbeat};

use super::{Changes, echo, quick};
use crate::support::proxy::{Flow, Proxy, Rules};
use crate::support::{LIMIT, millis, tcp_address, within};

#[test]
fn a_peer_that_falls_silent_is_found_and_dialled_again() {
    within(Duration::from_secs(30), || {
        let server = echo().bind(super::ANY).unwrap();
        let proxy = Proxy::start(tcp_address(&server));
        let mut heartbeat = Heartbeat::default();
        heartbeat.limit = millis(600);
        let builder = Client::builder().heartbeat(heartbeat).reconnect(quick());
        let (builder, changes) = Changes::of(builder);
        let client = builder.connect(proxy.address()).unwrap();
        let first = client.id();
        proxy.set_both(&Rules {
            flow: Flow::Swallow,
            ..Rules::default()
        });
        let lost = changes.until(ClientState::Waiting);
        let reason = lost.reason.unwrap();
        assert_eq!(reason.kind(), ErrorKind::Disconnected, "{reason:#}");
        assert!(
            format!("{reason:#}").contains("heartbeat.limit"),
            "{reason:#}"
        );
        proxy.set_both(&Rules::default());
        let session = client.wait_connected(LIMIT).unwrap();
        assert_ne!(session.id(), first);
        assert_eq!(client.call(1, "again").unwrap().body(), b"again");
    });
}
