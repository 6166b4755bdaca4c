//! Frames arrive in pieces, at their limits and next to frames that are not known: what a
//! reader of the public [`Protocol`] sees then.

use std::time::Duration;

use trunkline::config::Limits;
use trunkline::error::{Error, ErrorKind};
use trunkline::message::{CodecId, Kind, Message, MessageRef, Metadata, Route};
use trunkline::protocol::native::HEADER;
use trunkline::protocol::{Decoded, LengthPrefixed, Native, Protocol, Stream};
use trunkline::status::{Status, StatusRef};

/// What a reader was given, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Message(Box<Message>),
    Refused(Kind, u32, i32),
    Skipped,
}

/// Reads the pieces as a connection would: appends each, then takes every whole frame.
pub(crate) fn read(
    protocol: &dyn Protocol,
    limits: &Limits,
    pieces: &[&[u8]],
) -> Result<Vec<Seen>, Error> {
    let mut buffer = Vec::new();
    let mut seen = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let (next, size) = match protocol.decode(&buffer, limits)? {
                Decoded::Message { message, size } => {
                    (Seen::Message(Box::new(message.to_message())), size)
                }
                Decoded::Refused {
                    kind,
                    sequence,
                    status,
                    size,
                } => (Seen::Refused(kind, sequence, status.code()), size),
                Decoded::Skipped { size } => (Seen::Skipped, size),
                Decoded::Incomplete { needed } => {
                    assert!(needed.is_none_or(|needed| needed > buffer.len()));
                    break;
                }
                other => panic!("unknown {other:?}"),
            };
            assert!(size > 0 && size <= buffer.len(), "{next:?} takes {size}");
            buffer.drain(..size);
            seen.push(next);
        }
    }
    Ok(seen)
}

pub(crate) fn message(kind: Kind, sequence: u32, body: &[u8]) -> MessageRef<'_> {
    MessageRef::new(kind, Route::Number(0), sequence, CodecId::BYTES, body)
}

pub(crate) fn encode(protocol: &dyn Protocol, message: &MessageRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    protocol.encode(message, &mut out).unwrap();
    out
}

fn seen(message: &MessageRef<'_>) -> Seen {
    Seen::Message(Box::new(message.to_message()))
}

/// A native frame of any kind number, flags and extension block.
pub(crate) fn raw(kind: u8, sequence: u32, route: u32, block: &[u8], body: &[u8]) -> Vec<u8> {
    let length = (HEADER - 4 + block.len() + body.len()) as u32;
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend_from_slice(&[kind, 0]);
    frame.extend_from_slice(&(block.len() as u16).to_le_bytes());
    frame.extend_from_slice(&route.to_le_bytes());
    frame.extend_from_slice(&sequence.to_le_bytes());
    frame.extend_from_slice(block);
    frame.extend_from_slice(body);
    frame
}

/// Every way to cut `bytes` into two or three pieces, byte by byte, and whole.
#[track_caller]
fn at_every_split(protocol: &dyn Protocol, bytes: &[u8], check: impl Fn(Vec<Seen>)) {
    let limits = Limits::default();
    for first in 0..=bytes.len() {
        for second in first..=bytes.len() {
            let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            match read(protocol, &limits, &pieces) {
                Ok(seen) => check(seen),
                Err(error) => panic!("cut at {first} and {second}: {error}"),
            }
        }
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    check(read(protocol, &limits, &single).unwrap());
    check(read(protocol, &limits, &[bytes]).unwrap());
}

#[test]
fn native_frames_are_the_same_at_every_split() {
    let mut metadata = Metadata::new();
    metadata.push("trace", "42").unwrap();
    let push = message(Kind::Push, 0, b"one");
    let mut call = message(Kind::Call, 7, b"two");
    call.route = Route::Name("/math/add");
    call.time_left = Some(Duration::from_secs(1));
    call.parent = Some(3);
    call.metadata = metadata.as_ref();
    let mut reply = message(Kind::Reply, 8, b"");
    reply.status = Some(StatusRef {
        code: Status::NO_ROUTE,
        text: "text",
        cause: "cause",
    });
    let messages = [push, call, reply];
    let bytes: Vec<u8> = messages.iter().flat_map(|m| encode(&Native, m)).collect();
    let expected: Vec<Seen> = messages.iter().map(seen).collect();
    at_every_split(&Native, &bytes, |seen| assert_eq!(seen, expected));
}

#[test]
fn length_prefixed_frames_are_the_same_at_every_split() {
    let messages = [&b"one"[..], b"", b"three"].map(|body| message(Kind::Push, 0, body));
    let bytes: Vec<u8> = messages
        .iter()
        .flat_map(|m| encode(&LengthPrefixed, m))
        .collect();
    let expected: Vec<Seen> = messages.iter().map(seen).collect();
    at_every_split(&LengthPrefixed, &bytes, |seen| assert_eq!(seen, expected));
}

#[test]
fn stream_bytes_are_the_same_at_every_split() {
    let bytes: Vec<u8> = [&b"one"[..], b"two", b"three"]
        .iter()
        .flat_map(|body| encode(&Stream, &message(Kind::Push, 0, body)))
        .collect();
    at_every_split(&Stream, &bytes, |seen| {
        let mut joined = Vec::new();
        for one in seen {
            match one {
                Seen::Message(message) => joined.extend_from_slice(&message.body),
                other => panic!("{other:?} in a stream"),
            }
        }
        assert_eq!(joined, bytes);
    });
}

#[test]
fn empty_bodies_are_delivered() {
    for protocol in [&Native as &dyn Protocol, &LengthPrefixed] {
        let empty = message(Kind::Push, 0, b"");
        let bytes = encode(protocol, &empty).repeat(3);
        let all = read(protocol, &Limits::default(), &[&bytes]).unwrap();
        assert_eq!(all, vec![seen(&empty); 3], "{}", protocol.name());
    }
    assert!(encode(&Stream, &message(Kind::Push, 0, b"")).is_empty());
    assert_eq!(read(&Stream, &Limits::default(), &[b""]).unwrap(), []);
}

#[test]
fn a_frame_of_exactly_the_limit_is_delivered_and_one_more_byte_is_refused() {
    for protocol in [&Native as &dyn Protocol, &LengthPrefixed] {
        let body = [7; 100];
        let frame = encode(protocol, &message(Kind::Push, 0, &body));
        let mut limits = Limits::default();
        limits.frame_bytes = frame.len() as u32;
        assert_eq!(read(protocol, &limits, &[&frame]).unwrap().len(), 1);

        limits.frame_bytes -= 1;
        // The length alone must do: not a byte of the body has come.
        let error = read(protocol, &limits, &[&frame[..4]]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FrameTooLarge);
        assert!(error.is_peer_fault());
        let text = error.to_string();
        for part in [
            frame.len().to_string(),
            limits.frame_bytes.to_string(),
            "limits.frame_bytes".to_owned(),
        ] {
            assert!(text.contains(&part), "{part} is not in: {text}");
        }
    }
}

#[test]
fn a_body_of_exactly_the_limit_is_delivered_and_one_more_byte_is_refused() {
    for protocol in [&Native as &dyn Protocol, &LengthPrefixed] {
        let frame = encode(protocol, &message(Kind::Push, 0, &[7; 100]));
        let mut limits = Limits::default();
        limits.body_bytes = 100;
        assert_eq!(read(protocol, &limits, &[&frame]).unwrap().len(), 1);

        limits.body_bytes = 99;
        let error = read(protocol, &limits, &[&frame]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FrameTooLarge);
        let text = error.to_string();
        for part in ["100 bytes", "limits.body_bytes is 99"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }
}

#[test]
fn a_stream_is_cut_into_bodies_of_the_limit() {
    let mut limits = Limits::default();
    limits.body_bytes = 4;
    let sizes: Vec<usize> = read(&Stream, &limits, &[b"0123456789"])
        .unwrap()
        .into_iter()
        .map(|seen| match seen {
            Seen::Message(message) => message.body.len(),
            other => panic!("{other:?} in a stream"),
        })
        .collect();
    assert_eq!(sizes, [4, 4, 2]);
}

#[test]
fn unknown_kinds_are_skipped_and_their_neighbours_delivered() {
    let before = message(Kind::Push, 0, b"before");
    let after = message(Kind::Push, 0, b"after");
    for kind in [0, 4, 5, 6, 7, 12, 13, 14, 15] {
        // Not even flags, or an extension block that is none, are looked at.
        for flags in [0, 0xF0] {
            let mut bytes = encode(&Native, &before);
            bytes.extend(raw(kind | flags, 1, u32::MAX, b"\xFF\xFF\xFF", b"?"));
            bytes.extend(encode(&Native, &after));
            let all = read(&Native, &Limits::default(), &[&bytes]).unwrap();
            assert_eq!(all, [seen(&before), Seen::Skipped, seen(&after)], "{kind}");
        }
    }
}

#[test]
fn an_item_that_must_be_understood_refuses_its_frame_alone() {
    for item in [0x80, 0x83, 0x85, 0xFF] {
        let mut bytes = raw(2, 9, 1, &[item, 1, 0, 0], b"body");
        let after = message(Kind::Push, 0, b"after");
        bytes.extend(encode(&Native, &after));
        let all = read(&Native, &Limits::default(), &[&bytes]).unwrap();
        let refused = Seen::Refused(Kind::Call, 9, Status::UNSUPPORTED);
        assert_eq!(all, [refused, seen(&after)], "{item:#04x}");
    }
}

#[test]
fn other_unknown_items_are_passed_over() {
    let mut block = vec![0x7F, 2, 0, 1, 2];
    block.extend_from_slice(&[0x06, 4, 0, 5, 0, 0, 0]);
    block.extend_from_slice(&[0x00, 0, 0]);
    block.extend_from_slice(&[0x04, 1, 0, b'x']);
    let mut call = message(Kind::Call, 9, b"body");
    call.parent = Some(5);
    let bytes = raw(2, 9, 0, &block, b"body");
    let all = read(&Native, &Limits::default(), &[&bytes]).unwrap();
    assert_eq!(all, [seen(&call)]);
}

/// Encoding fails with this kind and writes nothing.
#[track_caller]
fn refused(protocol: &dyn Protocol, message: &MessageRef<'_>, kind: ErrorKind) {
    let mut out = b"before".to_vec();
    let error = protocol.encode(message, &mut out).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(out, b"before");
}

#[test]
fn the_reserved_route_number_and_the_empty_name_are_not_sent() {
    for route in [Route::Number(u32::MAX), Route::Name("")] {
        let mut push = message(Kind::Push, 0, b"");
        push.route = route;
        refused(&Native, &push, ErrorKind::InvalidInput);
    }
}

#[test]
fn an_extension_block_over_64_kib_is_not_sent() {
    let long = "x".repeat(65_533);
    let mut push = message(Kind::Push, 0, b"");
    push.route = Route::Name(&long);
    refused(&Native, &push, ErrorKind::TooLarge);

    let mut metadata = Metadata::new();
    for _ in 0..2 {
        metadata.push("key", &long[..40_000]).unwrap();
    }
    let mut push = message(Kind::Push, 0, b"");
    push.metadata = metadata.as_ref();
    refused(&Native, &push, ErrorKind::TooLarge);

    let mut reply = message(Kind::Reply, 1, b"");
    reply.status = Some(StatusRef {
        code: 1,
        text: &long[..40_000],
        cause: &long[..40_000],
    });
    refused(&Native, &reply, ErrorKind::TooLarge);
}

#[test]
fn what_a_bare_protocol_cannot_carry_is_unsupported_and_nothing_is_written() {
    let mut metadata = Metadata::new();
    metadata.push("a", "1").unwrap();
    for protocol in [&LengthPrefixed as &dyn Protocol, &Stream] {
        for kind in [
            Kind::Call,
            Kind::Reply,
            Kind::Ping,
            Kind::Pong,
            Kind::Goodbye,
            Kind::Cancel,
        ] {
            assert!(!protocol.carries(kind) && Native.carries(kind));
            refused(protocol, &message(kind, 0, b"x"), ErrorKind::Unsupported);
        }
        assert!(protocol.carries(Kind::Push));
        for route in [Route::Number(1), Route::Name("/a")] {
            let mut push = message(Kind::Push, 0, b"x");
            push.route = route;
            refused(protocol, &push, ErrorKind::Unsupported);
        }
        let mut push = message(Kind::Push, 0, b"x");
        push.metadata = metadata.as_ref();
        refused(protocol, &push, ErrorKind::Unsupported);
    }
}

#[test]
fn optional_items_of_later_versions_collide_with_none_of_this_one() {
    let mut push = MessageRef::new(Kind::Push, Route::Name("r"), 0, CodecId::BYTES, b"body");
    push.parent = Some(7);
    let mut plain = Vec::new();
    Native.encode(&push, &mut plain).unwrap();
    for unknown in (0x01..0x80).filter(|item| ![0x01, 0x02, 0x05, 0x06].contains(item)) {
        // The item goes before all others.
        let mut frame = plain.clone();
        frame.splice(16..16, [unknown, 1, 0, 9]);
        let length = u32::from_le_bytes(frame[0..4].try_into().unwrap()) + 4;
        frame[0..4].copy_from_slice(&length.to_le_bytes());
        let extension = u16::from_le_bytes(frame[6..8].try_into().unwrap()) + 4;
        frame[6..8].copy_from_slice(&extension.to_le_bytes());
        let decoded = Native.decode(&frame, &Limits::default()).unwrap();
        let Decoded::Message { message, .. } = decoded else {
            panic!("item {unknown:#04x}: {decoded:?}");
        };
        assert_eq!(message.route, Route::Name("r"));
        assert_eq!(message.parent, Some(7));
    }
}
