//! What comes or goes in pieces, with interruptions and time limits between them.

use std::collections::VecDeque;
use std::io::{self, Cursor, Read, Write};
use std::thread;

use trunkline::protocol::{Native, Protocol};
use trunkline::{ErrorKind, Framed, Kind, Limits, Route};

use super::{framed, next, pair, rich_messages};
use crate::framing::encode;
use crate::support::{LIMIT, frame, millis, within};

/// Gives what it is told to, one step a read; then nothing.
struct Steps(VecDeque<io::Result<Vec<u8>>>);

impl Read for Steps {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(step) = self.0.pop_front() else {
            return Ok(0);
        };
        Cursor::new(step?).read(buffer)
    }
}

#[test]
fn byte_by_byte_with_interruptions_and_time_limits_nothing_is_lost() {
    let messages = rich_messages();
    let bytes: Vec<u8> = messages
        .iter()
        .flat_map(|message| encode(&Native, &message.as_ref()))
        .collect();
    let steps = bytes.iter().flat_map(|byte| {
        [
            Err(io::ErrorKind::Interrupted.into()),
            Err(io::ErrorKind::WouldBlock.into()),
            Err(io::ErrorKind::TimedOut.into()),
            Ok(vec![*byte]),
        ]
    });
    let mut framed = framed(Steps(steps.collect()), Native);
    let mut came = Vec::new();
    let mut timeouts = 0;
    loop {
        match framed.read() {
            Ok(Some(message)) => came.push(message.to_message()),
            Ok(None) => break,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Timeout);
                timeouts += 1;
            }
        }
    }
    assert_eq!(came, messages);
    assert_eq!(timeouts, bytes.len() * 2);
}

#[test]
fn the_time_limit_of_a_stream_ends_one_read_and_the_next_goes_on() {
    within(LIMIT, || {
        let [here, mut there] = pair(Native);
        let mut here = here.into_inner();
        let bytes = frame(Kind::Push, 5, 0, b"late");
        let (first, rest) = bytes.split_at(bytes.len() - 2);
        here.write_all(first).unwrap();
        there.get_ref().set_read_timeout(Some(millis(20))).unwrap();
        for _ in 0..2 {
            let error = there.read().unwrap_err();
            assert!(error.is_timeout(), "{error:#}");
            assert_eq!(there.unread(), first);
        }
        here.write_all(rest).unwrap();
        there.get_ref().set_read_timeout(Some(LIMIT)).unwrap();
        let message = next(&mut there);
        assert_eq!(message.route.as_route(), Route::Number(5));
        assert_eq!(message.body, b"late");
    });
}

/// Takes as many bytes as there is room for, a few at a time.
#[derive(Default)]
struct Narrow {
    taken: Vec<u8>,
    room: usize,
    flushed: bool,
}

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let takes = bytes.len().min(self.room).min(3);
        if takes == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.room -= takes;
        self.taken.extend_from_slice(&bytes[..takes]);
        Ok(takes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushed = true;
        Ok(())
    }
}

/// The messages that a peer would read.
fn bodies(taken: &[u8], protocol: impl Protocol) -> Vec<Vec<u8>> {
    let mut reader = framed(taken, protocol);
    let mut bodies = Vec::new();
    while let Some(message) = reader.read().unwrap() {
        bodies.push(message.body.to_vec());
    }
    bodies
}

#[test]
fn what_a_stream_does_not_take_goes_first_the_next_time() {
    let mut framed = framed(Narrow::default(), Native);
    framed.get_mut().room = 5;
    let error = framed.push(1, "one").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.maybe_executed());
    assert_eq!(framed.unwritten().len(), 19 - 5);
    let error = framed.push(1, "two").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    framed.get_mut().room = 20;
    assert!(framed.flush().unwrap_err().is_timeout());
    assert!(!framed.get_ref().flushed);
    framed.get_mut().room = 1_000;
    framed.push(1, "three").unwrap();
    framed.flush().unwrap();
    assert!(framed.get_ref().flushed && framed.unwritten().is_empty());
    let all = bodies(&framed.into_inner().taken, Native);
    assert_eq!(all, [&b"one"[..], b"two", b"three"]);
}

#[test]
fn what_waits_to_be_written_is_bounded_and_the_limit_named() {
    let mut limits = Limits::default();
    limits.queued_bytes = 50;
    let mut framed = Framed::new(Narrow::default(), Native, limits);
    // A larger message is accepted when nothing waits.
    let long = "x".repeat(100);
    assert!(framed.push(1, &long).unwrap_err().is_timeout());
    let error = framed.push(1, "refused").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    assert!(error.to_string().contains("limits.queued_bytes is 50"));
    framed.get_mut().room = 1_000;
    framed.push(1, "after").unwrap();
    let all = bodies(&framed.into_inner().taken, Native);
    assert_eq!(all, [long.as_bytes(), b"after"]);
}

#[test]
fn a_large_message_that_a_slow_reader_takes_in_parts_arrives_whole() {
    within(LIMIT, || {
        let [mut here, mut there] = pair(Native);
        here.get_ref().set_write_timeout(Some(millis(20))).unwrap();
        let body: Vec<u8> = (0..4_000_000u32).map(|byte| byte as u8).collect();
        let error = here.push(1, &body).unwrap_err();
        assert!(error.is_timeout(), "{error:#}");
        assert!(!here.unwritten().is_empty());
        let reader = thread::spawn(move || (next(&mut there), next(&mut there)));
        while here.flush().is_err_and(|error| error.is_timeout()) {}
        here.push(1, "after").unwrap();
        let (large, after) = reader.join().unwrap();
        assert!(large.body == body, "{large}");
        assert_eq!(after.body, b"after");
    });
}
