//! Ends, limits, and bytes that no correct peer sends.

use std::io::{self, Read, Write};

use trunkline::message::MessageRef;
use trunkline::protocol::{LengthPrefixed, Native, Protocol};
use trunkline::{CodecId, ErrorKind, Framed, Kind, Limits, Metadata, Route, Status};

use super::{framed, next};
use crate::framing::raw;
use crate::support::frame;

#[test]
fn an_end_inside_a_message_is_told_from_one_between_two() {
    let mut bytes = frame(Kind::Push, 1, 0, b"whole");
    let whole = bytes.len();
    bytes.extend(frame(Kind::Push, 1, 0, b"cut"));
    for end in whole + 1..bytes.len() {
        let mut framed = framed(&bytes[..end], Native);
        assert_eq!(next(&mut framed).body, b"whole");
        for _ in 0..2 {
            let error = framed.read().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Disconnected);
            let says = format!("inside a message, of which {} bytes", end - whole);
            assert!(error.to_string().contains(&says), "{error}");
        }
    }
    let mut framed = framed(&bytes[..whole], Native);
    assert_eq!(next(&mut framed).body, b"whole");
    assert!(framed.read().unwrap().is_none());
}

/// After the good message every read fails with this kind, and says this.
#[track_caller]
fn out_of_step(protocol: impl Protocol, limits: &Limits, bad: &[u8], kind: ErrorKind, says: &str) {
    let mut bytes = Vec::new();
    let good = MessageRef::new(Kind::Push, Route::Number(0), 0, CodecId::BYTES, b"good");
    protocol.encode(&good, &mut bytes).unwrap();
    bytes.extend_from_slice(bad);
    protocol.encode(&good, &mut bytes).unwrap();
    let mut framed = Framed::new(&bytes[..], protocol, limits.clone());
    assert_eq!(next(&mut framed).body, b"good");
    for _ in 0..3 {
        let error = framed.read().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.is_peer_fault() && error.to_string().contains(says));
    }
}

#[test]
fn after_too_large_or_malformed_frames_every_read_fails() {
    let mut limits = Limits::default();
    limits.frame_bytes = 1_000;
    limits.body_bytes = 900;
    let huge = u32::MAX.to_le_bytes();
    let large = ErrorKind::FrameTooLarge;
    out_of_step(Native, &limits, &huge, large, "limits.frame_bytes is 1000");
    let announced = 2_000i32.to_le_bytes();
    out_of_step(LengthPrefixed, &limits, &announced, large, "frame_bytes");
    let announced = 950i32.to_le_bytes();
    out_of_step(LengthPrefixed, &limits, &announced, large, "body_bytes");
    let malformed = ErrorKind::Malformed;
    out_of_step(Native, &limits, &[0; 16], malformed, "shorter than");
    let negative = (-1i32).to_le_bytes();
    out_of_step(LengthPrefixed, &limits, &negative, malformed, "negative");
}

#[test]
fn unknown_kinds_are_skipped_and_counted() {
    let mut bytes = raw(15, 1, 0, b"", b"?");
    bytes.extend(frame(Kind::Push, 1, 0, b"known"));
    bytes.extend(raw(0, 1, 0, b"", b""));
    let mut framed = framed(&bytes[..], Native);
    assert_eq!(next(&mut framed).body, b"known");
    assert_eq!(framed.skipped(), 1);
    assert!(framed.read().unwrap().is_none());
    assert_eq!(framed.skipped(), 2);
}

#[test]
fn a_refused_message_gives_its_status_and_reading_goes_on() {
    let mut bytes = raw(2, 9, 1, &[0x85, 1, 0, 0], b"body");
    bytes.extend(frame(Kind::Push, 1, 0, b"after"));
    let mut framed = framed(&bytes[..], Native);
    let error = framed.read().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.status().unwrap().code(), Status::UNSUPPORTED);
    let text = error.to_string();
    assert!(text.contains("call #9") && text.contains("0x85"), "{text}");
    assert_eq!(next(&mut framed).body, b"after");
}

#[test]
fn what_passes_a_limit_is_refused_before_a_byte_is_written() {
    let mut limits = Limits::default();
    limits.frame_bytes = 200;
    limits.body_bytes = 150;
    limits.metadata_bytes = 60;
    limits.metadata_pairs = 2;
    limits.route_name_bytes = 10;
    let mut metadata = Metadata::new();
    let mut pairs = Metadata::new();
    metadata.push("key", &"x".repeat(60)).unwrap();
    for _ in 0..3 {
        pairs.push("k", "v").unwrap();
    }
    let push = |body| MessageRef::new(Kind::Push, Route::Number(1), 0, CodecId::BYTES, body);
    let long = Status::new(1, "x".repeat(100));
    let mut long_frame = push(&[7; 120]);
    long_frame.status = Some(long.as_ref());
    let mut long_metadata = push(&[]);
    long_metadata.metadata = metadata.as_ref();
    let mut many_pairs = push(&[]);
    many_pairs.metadata = pairs.as_ref();
    let mut long_name = push(&[]);
    long_name.route = Route::Name("/eleven/byt");
    let mut framed = Framed::new(Vec::new(), Native, limits);
    for (message, limit) in [
        (push(&[7; 151]), "limits.body_bytes = 150"),
        (long_frame, "limits.frame_bytes = 200"),
        (long_metadata, "limits.metadata_bytes = 60"),
        (many_pairs, "limits.metadata_pairs = 2"),
        (long_name, "limits.route_name_bytes = 10"),
    ] {
        let error = framed.write(&message).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains(limit), "{error}");
        assert!(framed.get_ref().is_empty() && framed.unwritten().is_empty());
    }
    framed.write(&push(&[7; 150])).unwrap();
    assert_eq!(framed.get_ref().len(), 16 + 150);
}

#[test]
fn what_a_protocol_cannot_say_is_unsupported_and_nothing_is_written() {
    let mut framed = framed(Vec::new(), LengthPrefixed);
    let error = framed.push("/named", "x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(framed.into_inner().is_empty());
}

/// A stream that is gone.
struct Gone;

impl Read for Gone {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[test]
fn errors_of_the_stream_keep_their_cause() {
    let mut framed = framed(Gone, Native);
    let error = framed.read().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Disconnected);
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(framed.flush().unwrap_err().kind(), ErrorKind::Io);
    let error = framed.push(1, "x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Disconnected);
}
