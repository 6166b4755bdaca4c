//! A large write of which the peer has taken a part.

use std::net::TcpListener;
use std::thread;

use socket2::SockRef;
use trunkline::Client;

use super::{NOTE, small_buffers};
use crate::support::{LIMIT, RawPeer, millis, within};

/// Small messages are written in pieces of this size when many wait.
const PIECE: u64 = 256 << 10;

#[test]
fn what_the_peer_has_of_a_large_write_makes_room_before_it_has_the_rest() {
    within(3 * LIMIT, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // So that the system does not take a whole piece at once.
        let socket = SockRef::from(&listener);
        socket.set_recv_buffer_size(32 << 10).unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || RawPeer::accept(&listener));
        let client = Client::builder()
            .socket_options(small_buffers())
            .connect(address)
            .unwrap();
        let mut peer = accepting.join().unwrap();
        // The kernel takes the last of what it takes some time later.
        while client.push_timeout(NOTE, [7; 1000], millis(700)).is_ok() {}
        let full = client.stats().queued_bytes;
        assert!(full > 3 * PIECE, "{full}");
        let mut queued = full;
        while queued > full / 4 {
            peer.next().unwrap();
            let now = client.stats().queued_bytes;
            let step = queued.saturating_sub(now);
            assert!(step < PIECE * 3 / 4, "{step} bytes at once");
            queued = now;
        }
    });
}
