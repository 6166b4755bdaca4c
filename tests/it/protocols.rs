//! The protocols without a handshake, on real sockets.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use trunkline::{Client, CloseReason, ErrorKind, Framing, Server};

use crate::support::{
    LIMIT, STARTS_A_PROCESS, child, child_role, left_out_under_emulation, millis, processor_time,
    within,
};

fn echo(framing: Framing) -> Server {
    Server::builder()
        .framing(framing)
        .on_push(0, |cx, body| {
            cx.session().push(0, body).unwrap();
        })
        .bind("127.0.0.1:0")
        .unwrap()
}

#[test]
fn length_prefixed_messages_come_back_whole_and_in_order() {
    within(Duration::from_secs(30), || {
        let server = echo(Framing::LengthPrefixed);
        let (sender, back) = mpsc::channel();
        let client = Client::builder()
            .framing(Framing::LengthPrefixed)
            .on_push(0, move |_, body| sender.send(body.to_vec()).unwrap())
            .connect(server.local_address())
            .unwrap();
        let bodies: Vec<Vec<u8>> = (0..1_000).map(|size| vec![size as u8; size * 7]).collect();
        for body in &bodies {
            client.push(0, body).unwrap();
        }
        for body in &bodies {
            assert_eq!(back.recv_timeout(LIMIT).unwrap(), *body);
        }
        assert_eq!(
            client.call(0, b"").unwrap_err().kind(),
            ErrorKind::Unsupported
        );
        assert_eq!(
            client.push(1, b"").unwrap_err().kind(),
            ErrorKind::Unsupported
        );
        let report = client.shutdown(LIMIT).unwrap();
        assert_eq!(report.reason, CloseReason::Clean, "{report}");
        assert_eq!(report.received.messages, 1_000);
    });
}

#[test]
fn a_raw_stream_comes_back_to_its_last_byte_after_a_half_close() {
    within(Duration::from_secs(30), || {
        let server = echo(Framing::Stream);
        let mut peer = TcpStream::connect(server.local_address()).unwrap();
        let sent: Vec<u8> = (0..1_000_000u32).map(|byte| byte as u8).collect();
        let mut writing = peer.try_clone().unwrap();
        let whole = sent.clone();
        let writer = std::thread::spawn(move || {
            writing.write_all(&whole).unwrap();
            writing.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        peer.read_to_end(&mut back).unwrap();
        writer.join().unwrap();
        assert!(back == sent, "{} of {} bytes", back.len(), sent.len());
    });
}

#[test]
fn an_empty_push_on_a_raw_stream_is_nothing_at_all() {
    within(Duration::from_secs(30), || {
        let server = echo(Framing::Stream);
        let (sender, back) = mpsc::channel();
        let client = Client::builder()
            .framing(Framing::Stream)
            .on_push(0, move |_, body| sender.send(body.to_vec()).unwrap())
            .connect(server.local_address())
            .unwrap();
        client.push(0, b"").unwrap();
        client.push(0, b"after").unwrap();
        assert_eq!(back.recv_timeout(LIMIT).unwrap(), b"after");
        client.shutdown(LIMIT).unwrap();
    });
}

/// In a process of its own, so that nothing else uses the processor.
#[test]
fn an_idle_session_of_any_protocol_uses_no_processor_time() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    const NAME: &str = "protocols::an_idle_session_of_any_protocol_uses_no_processor_time";
    if child_role().is_none() {
        let output = within(Duration::from_secs(60), || {
            child(NAME, "run").output().unwrap()
        });
        assert!(output.status.success(), "{output:?}");
        return;
    }
    within(Duration::from_secs(30), || {
        let framings = [Framing::Native, Framing::LengthPrefixed, Framing::Stream];
        let sessions: Vec<_> = framings
            .into_iter()
            .map(|framing| {
                let server = echo(framing);
                let client = Client::builder()
                    .framing(framing)
                    .connect(server.local_address())
                    .unwrap();
                client.push(0, b"one").unwrap();
                client.flush(LIMIT).unwrap();
                (server, client)
            })
            .collect();
        std::thread::sleep(millis(200));
        let before = processor_time();
        std::thread::sleep(millis(1_000));
        let used = processor_time() - before;
        assert!(used < millis(50), "{used:?} in a second");
        drop(sessions);
    });
}
