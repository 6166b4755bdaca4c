//! The bytes of every frame, in both directions: what is written here is the format.

use std::time::Duration;

use trunkline::config::Limits;
use trunkline::message::{CodecId, Kind, MessageRef, Metadata, Route, SessionId};
use trunkline::protocol::native::handshake::{
    Hello, PeerLimits, PeerTimes, Welcome, choose_version, preface, read_preface,
};
use trunkline::protocol::{Decoded, LengthPrefixed, Native, Protocol, Stream};
use trunkline::status::{Status, StatusRef};

/// Bytes from rows of hexadecimal digits; spaces are free.
fn hex(rows: &[&str]) -> Vec<u8> {
    let digits: Vec<u8> = rows
        .concat()
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).expect("a hexadecimal digit") as u8)
        .collect();
    assert_eq!(digits.len() % 2, 0);
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn message<'a>(
    kind: Kind,
    route: impl Into<Route<'a>>,
    sequence: u32,
    body: &'a [u8],
) -> MessageRef<'a> {
    MessageRef::new(kind, route.into(), sequence, CodecId::BYTES, body)
}

/// `message` is written as these bytes, and these bytes are read as `message`.
#[track_caller]
fn check(protocol: &dyn Protocol, message: &MessageRef<'_>, rows: &[&str]) {
    let expected = hex(rows);
    let mut written = b"before".to_vec();
    protocol.encode(message, &mut written).unwrap();
    assert_eq!(written, [b"before", &expected[..]].concat(), "encode");

    match protocol.decode(&expected, &Limits::default()).unwrap() {
        Decoded::Message {
            message: read,
            size,
        } => {
            assert_eq!(read.to_message(), message.to_message(), "decode");
            assert_eq!(size, expected.len());
        }
        other => panic!("decoded as {other:?}"),
    }
}

#[test]
fn push_by_number() {
    let push = message(Kind::Push, 7, 0, b"hi");
    check(
        &Native,
        &push,
        &["0E000000 01 00 0000 07000000 00000000", "68 69"],
    );
}

#[test]
fn push_by_name() {
    let mut push = message(Kind::Push, "/log", 0, b"hi");
    push.codec = CodecId::TEXT;
    check(
        &Native,
        &push,
        &[
            "15000000 01 01 0700 FFFFFFFF 00000000",
            "84 0400 2F6C6F67",
            "68 69",
        ],
    );
}

#[test]
fn an_empty_push_is_a_bare_header() {
    let mut push = message(Kind::Push, u32::MAX - 1, 0, b"");
    push.codec = CodecId(255);
    check(&Native, &push, &["0C000000 01 FF 0000 FEFFFFFF 00000000"]);
}

#[test]
fn call_with_time_left_and_parent() {
    let mut call = message(Kind::Call, 0x0102_0304, 0x0A0B_0C0D, &[1]);
    call.time_left = Some(Duration::from_millis(1500));
    call.parent = Some(9);
    check(
        &Native,
        &call,
        &[
            "1B000000 02 00 0E00 04030201 0D0C0B0A",
            "05 0400 DC050000",
            "06 0400 09000000",
            "01",
        ],
    );
}

#[test]
fn call_with_every_item_has_them_in_this_order() {
    let mut metadata = Metadata::new();
    metadata.push("k", "v").unwrap();
    let mut call = message(Kind::Call, "f", 1, b"");
    call.time_left = Some(Duration::ZERO);
    call.parent = Some(u32::MAX);
    call.metadata = metadata.as_ref();
    check(
        &Native,
        &call,
        &[
            "25000000 02 00 1900 FFFFFFFF 01000000",
            "84 0100 66",
            "05 0400 00000000",
            "06 0400 FFFFFFFF",
            "02 0400 0100 6B 76",
        ],
    );
}

#[test]
fn reply_with_text_and_cause() {
    let mut reply = message(Kind::Reply, 0, 5, b"");
    reply.status = Some(StatusRef {
        code: Status::NO_ROUTE,
        text: "no",
        cause: "gone",
    });
    check(
        &Native,
        &reply,
        &[
            "1B000000 03 00 0F00 00000000 05000000",
            "01 0C00 94010000 0200 6E6F 676F6E65",
        ],
    );
}

#[test]
fn reply_with_a_negative_code() {
    let mut reply = message(Kind::Reply, 0, u32::MAX, b"");
    reply.status = Some(StatusRef {
        code: -2,
        text: "",
        cause: "",
    });
    check(
        &Native,
        &reply,
        &[
            "15000000 03 00 0900 00000000 FFFFFFFF",
            "01 0600 FEFFFFFF 0000",
        ],
    );
}

#[test]
fn reply_with_metadata() {
    let mut metadata = Metadata::new();
    metadata.push("a", "1").unwrap();
    metadata.push("b", "").unwrap();
    metadata.push("a", "\u{e9}").unwrap();
    let mut reply = message(Kind::Reply, 0, 6, b"ok");
    reply.metadata = metadata.as_ref();
    check(
        &Native,
        &reply,
        &[
            "23000000 03 00 1500 00000000 06000000",
            "02 0400 0100 61 31",
            "02 0300 0100 62",
            "02 0500 0100 61 C3A9",
            "6F 6B",
        ],
    );
}

#[test]
fn ping() {
    let ping = message(Kind::Ping, 0, 0, b"");
    check(&Native, &ping, &["0C000000 08 00 0000 00000000 00000000"]);
}

#[test]
fn pong_and_goodbye_carry_two_counts() {
    let counts = [&3u64.to_le_bytes()[..], &0x1_0000_0040u64.to_le_bytes()].concat();
    for (kind, number) in [(Kind::Pong, "09"), (Kind::Goodbye, "0A")] {
        check(
            &Native,
            &message(kind, 0, 0, &counts),
            &[
                "1C000000",
                number,
                "00 0000 00000000 00000000",
                "0300000000000000 4000000001000000",
            ],
        );
    }
}

#[test]
fn goodbye_with_a_reason() {
    let counts = [&3u64.to_le_bytes()[..], &64u64.to_le_bytes()].concat();
    let mut goodbye = message(Kind::Goodbye, 0, 0, &counts);
    goodbye.status = Some(StatusRef {
        code: Status::NAME_TAKEN,
        text: "no",
        cause: "gone",
    });
    check(
        &Native,
        &goodbye,
        &[
            "2B000000 0A 00 0F00 00000000 00000000",
            "01 0C00 99010000 0200 6E6F 676F6E65",
            "0300000000000000 4000000000000000",
        ],
    );
}

#[test]
fn cancel_has_the_sequence_of_its_call() {
    let cancel = message(Kind::Cancel, 0, 5, b"");
    check(&Native, &cancel, &["0C000000 0B 00 0000 00000000 05000000"]);
}

#[test]
fn the_preface() {
    let expected = hex(&["54524C4B 01 01 0000"]);
    assert_eq!(preface()[..], expected);
    assert_eq!(read_preface(&expected).unwrap(), Some((1, 1)));
    assert_eq!(choose_version((1, 1)).unwrap(), 1);
}

const LIMITS: PeerLimits = PeerLimits {
    frame_bytes: 0x0100_0000,
    body_bytes: 0x0080_0000,
    metadata_bytes: 0x2000,
    calls: 0x0001_0000,
    call_bytes: 0x0040_0000,
};
const LIMITS_ITEM: &str = "01 1400 00000001 00008000 00200000 00000100 00004000";

const TIMES: PeerTimes = PeerTimes {
    silence: 30_000,
    call: 3_000,
};
const TIMES_ITEM: &str = "03 0800 30750000 B80B0000";

/// 00, 01, .. 1F.
fn random() -> [u8; 32] {
    std::array::from_fn(|i| i as u8)
}
const RANDOM: &str = "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F";

#[test]
fn hello() {
    let hello = Hello {
        random: random(),
        limits: LIMITS,
        times: TIMES,
    };
    let expected = hex(&[
        "4E000000 04 00 0000 00000000 00000000",
        RANDOM,
        LIMITS_ITEM,
        TIMES_ITEM,
    ]);
    assert_eq!(hello.encode(), expected);
    let (read, size) = Hello::decode(&expected).unwrap().unwrap();
    assert_eq!((read, size), (hello, expected.len()));
}

#[test]
fn a_hello_of_a_later_version_is_understood() {
    // An item that this version does not know stands before and after the limits.
    let bytes = hex(&[
        "4A000000 04 00 0000 00000000 00000000",
        RANDOM,
        "7F 0100 AA",
        LIMITS_ITEM,
        "80 0000",
    ]);
    let (read, size) = Hello::decode(&bytes).unwrap().unwrap();
    assert_eq!((read.limits, read.times), (LIMITS, PeerTimes::default()));
    assert_eq!(size, bytes.len());
}

#[test]
fn welcome() {
    let welcome = Welcome {
        random: random(),
        session: SessionId(0x0807_0605_0403_0201),
        token: *b"0123456789abcdef",
        version: 1,
        versions: (1, 1),
        limits: LIMITS,
        times: TIMES,
        refusal: None,
    };
    let expected = hex(&[
        "6E000000 05 00 0000 00000000 00000000",
        RANDOM,
        "0102030405060708",
        "30313233343536373839616263646566",
        "01 01 01 00",
        "00000000",
        LIMITS_ITEM,
        TIMES_ITEM,
    ]);
    assert_eq!(welcome.encode(), expected);
    let (read, size) = Welcome::decode(&expected).unwrap().unwrap();
    assert_eq!((read, size), (welcome, expected.len()));
}

#[test]
fn refusal() {
    let mut limits = Limits::server();
    limits.frame_bytes = LIMITS.frame_bytes;
    limits.body_bytes = LIMITS.body_bytes;
    limits.metadata_bytes = LIMITS.metadata_bytes;
    limits.incoming_calls = LIMITS.calls;
    limits.incoming_call_bytes = LIMITS.call_bytes;
    let refusal = Welcome::refusal(&limits, Status::new(Status::OVERLOADED, "full"));
    let zeros = "00".repeat(32 + 8 + 16);
    let expected = hex(&[
        "75000000 05 00 0000 00000000 00000000",
        &zeros,
        "00 01 01 00",
        "AD010000",
        LIMITS_ITEM,
        "03 0800 00000000 00000000",
        "02 0400 66756C6C",
    ]);
    assert_eq!(refusal.encode(), expected);
    let (read, size) = Welcome::decode(&expected).unwrap().unwrap();
    assert_eq!((read, size), (refusal, expected.len()));
}

#[test]
fn length_prefixed() {
    check(
        &LengthPrefixed,
        &message(Kind::Push, 0, 0, b"hi"),
        &["02000000 68 69"],
    );
    check(
        &LengthPrefixed,
        &message(Kind::Push, 0, 0, b""),
        &["00000000"],
    );
}

#[test]
fn stream() {
    check(&Stream, &message(Kind::Push, 0, 0, b"hi"), &["68 69"]);
}
