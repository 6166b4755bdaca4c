//! Messages on any stream of bytes, without sessions: Unix streams, pipes, a plain socket.

mod edges;
mod own_protocol;
mod pieces;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use trunkline::message::{Message, MessageRef};
use trunkline::protocol::{LengthPrefixed, Native, Protocol, Stream};
use trunkline::{CodecId, Framed, Framing, Kind, Limits, Metadata, Route, Server, Status};

use crate::support::{LIMIT, STARTS_A_PROCESS, left_out_under_emulation, within};

fn framed<S, P>(stream: S, protocol: P) -> Framed<S, P> {
    Framed::new(stream, protocol, Limits::default())
}

fn pair<P: Protocol + Clone>(protocol: P) -> [Framed<UnixStream, P>; 2] {
    let (here, there) = UnixStream::pair().unwrap();
    [here, there].map(|stream| {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        framed(stream, protocol.clone())
    })
}

/// The next message, which must be there.
#[track_caller]
fn next<S: Read, P: Protocol>(framed: &mut Framed<S, P>) -> Message {
    framed.read().unwrap().expect("a message").to_message()
}

/// Everything that only the native protocol carries.
fn rich_messages() -> Vec<Message> {
    let mut metadata = Metadata::new();
    metadata.push("trace", "42").unwrap();
    let mut call = MessageRef::new(Kind::Call, Route::Name("/add"), 7, CodecId::TEXT, b"1 2");
    call.metadata = metadata.as_ref();
    call.parent = Some(3);
    let failure = Status::new(Status::NO_ROUTE, "nothing handles it");
    let mut reply = MessageRef::new(Kind::Reply, Route::Number(0), 7, CodecId::BYTES, b"");
    reply.status = Some(failure.as_ref());
    let ping = MessageRef::new(Kind::Ping, Route::Number(0), 0, CodecId::BYTES, b"");
    [call, reply, ping].map(|m| m.to_message()).to_vec()
}

#[test]
fn native_messages_of_all_kinds_go_both_ways_over_a_unix_stream() {
    within(LIMIT, || {
        let [mut here, mut there] = pair(Native);
        for message in rich_messages() {
            here.write(&message.as_ref()).unwrap();
            let came = next(&mut there);
            assert_eq!(came, message);
            there.write(&came.as_ref()).unwrap();
            assert_eq!(next(&mut here), message);
        }
        drop(here);
        assert!(there.read().unwrap().is_none());
        assert!(there.read().unwrap().is_none());
    });
}

#[test]
fn length_prefixed_messages_go_over_a_unix_stream() {
    within(LIMIT, || {
        let [mut here, mut there] = pair(LengthPrefixed);
        let writer = thread::spawn(move || {
            for size in 0..2_000 {
                here.push(0, vec![size as u8; size]).unwrap();
            }
        });
        for size in 0..2_000 {
            assert_eq!(next(&mut there).body, vec![size as u8; size]);
        }
        assert!(there.read().unwrap().is_none());
        writer.join().unwrap();
    });
}

#[test]
fn a_raw_stream_goes_over_a_unix_stream_to_its_last_byte() {
    within(LIMIT, || {
        let [mut here, mut there] = pair(Stream);
        let sent: Vec<u8> = (0..300_000u32).map(|byte| byte as u8).collect();
        let pushed = sent.clone();
        let writer = thread::spawn(move || {
            for piece in pushed.chunks(999) {
                here.push(0, piece).unwrap();
            }
        });
        let mut came = Vec::new();
        while let Some(message) = there.read().unwrap() {
            came.extend_from_slice(message.body);
        }
        writer.join().unwrap();
        assert!(came == sent, "{} of {} bytes", came.len(), sent.len());
    });
}

/// A program at the other end of two pipes that sends back what it gets.
struct Cat {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Read for Cat {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.output.read(buffer)
    }
}

impl Write for Cat {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.input.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.flush()
    }
}

#[test]
fn messages_go_through_the_pipes_of_another_program() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    within(LIMIT, || {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = child.stdout.take().unwrap();
        let mut cat = framed(
            Cat {
                child,
                input,
                output,
            },
            Native,
        );
        for message in rich_messages() {
            cat.write(&message.as_ref()).unwrap();
            cat.flush().unwrap();
            assert_eq!(next(&mut cat), message);
        }
        let Cat {
            mut child, input, ..
        } = cat.into_inner();
        drop(input);
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn a_server_of_length_prefixed_messages_understands_it() {
    within(LIMIT, || {
        let server = Server::builder()
            .framing(Framing::LengthPrefixed)
            .on_push(0, |cx, body| {
                cx.session().push(0, body.to_ascii_uppercase()).unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let stream = TcpStream::connect(server.local_address()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut client = framed(stream, LengthPrefixed);
        for (said, answer) in [("hello", "HELLO"), ("", ""), ("again", "AGAIN")] {
            client.push(0, said).unwrap();
            assert_eq!(next(&mut client).body, answer.as_bytes());
        }
    });
}
