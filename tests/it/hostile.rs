//! Bytes that no honest peer sends: a typed error or more waiting, never a panic, and never a
//! message that was not sent.

use trunkline::config::Limits;
use trunkline::error::{Error, ErrorKind};
use trunkline::message::Kind;
use trunkline::protocol::native::HEADER;
use trunkline::protocol::native::handshake::{
    Hello, PeerLimits, PeerTimes, Welcome, choose_version, read_preface,
};
use trunkline::protocol::{Decoded, LengthPrefixed, Native, Protocol, Stream};
use trunkline::status::Status;

use crate::framing::{encode, message, raw, read};
use crate::support::PROMPT;

const LENGTHS: [u32; 9] = [
    0,
    1,
    HEADER as u32 - 5,
    HEADER as u32 - 4,
    HEADER as u32 - 1,
    i32::MAX as u32,
    1 << 31,
    u32::MAX - 1,
    u32::MAX,
];
/// The same for fields of 16 bits, and the edges of a payload of four bytes.
const SHORT_LENGTHS: [u16; 10] = [0, 1, 2, 3, 4, 5, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF];

fn with_frame_limit(frame_bytes: u32) -> Limits {
    let mut limits = Limits::default();
    limits.frame_bytes = frame_bytes;
    limits.body_bytes = frame_bytes;
    limits
}

#[track_caller]
fn malformed(bytes: &[u8], says: &str) {
    let error = read(&Native, &Limits::default(), &[bytes]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
    assert!(
        error.to_string().contains(says),
        "{says:?} is not in: {error}"
    );
}

/// An error that blames the peer, or nothing to say yet; in no case a message.
#[track_caller]
fn refused_or_waiting(result: Result<bool, Error>, what: &str) {
    match result {
        Ok(complete) => assert!(!complete, "{what} was believed"),
        Err(error) => assert!(error.is_peer_fault(), "{what}: {error:?}"),
    }
}

#[test]
fn a_hostile_frame_length_is_refused_or_waited_for() {
    for limits in [Limits::default(), with_frame_limit(u32::MAX)] {
        for length in LENGTHS {
            let mut bytes = length.to_le_bytes().to_vec();
            for more in [0, HEADER - 5, 4] {
                bytes.resize(bytes.len() + more, 0);
                let what = format!("length {length} with {} bytes", bytes.len());
                let decoded = Native.decode(&bytes, &limits);
                if length < HEADER as u32 - 4 {
                    assert_eq!(decoded.unwrap_err().kind(), ErrorKind::Malformed, "{what}");
                } else if u64::from(length) + 4 > u64::from(limits.frame_bytes) {
                    assert_eq!(
                        decoded.unwrap_err().kind(),
                        ErrorKind::FrameTooLarge,
                        "{what}"
                    );
                } else if bytes.len() < length as usize + 4 {
                    match decoded.unwrap() {
                        Decoded::Incomplete { needed } => {
                            assert_eq!(needed, Some(length as usize + 4), "{what}");
                        }
                        other => panic!("{what}: {other:?}"),
                    }
                } else {
                    // Kind 0: whole, and not known.
                    assert!(
                        matches!(decoded.unwrap(), Decoded::Skipped { .. }),
                        "{what}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_hostile_prefix_is_refused_or_waited_for() {
    for limits in [Limits::default(), with_frame_limit(u32::MAX)] {
        for length in LENGTHS {
            let bytes = length.to_le_bytes();
            let decoded = LengthPrefixed.decode(&bytes, &limits);
            if length == 0 {
                assert!(matches!(decoded.unwrap(), Decoded::Message { .. }));
            } else if i32::try_from(length).is_err() {
                let error = decoded.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Malformed);
                assert!(error.to_string().contains(&(length as i32).to_string()));
            } else if u64::from(length) + 4 > u64::from(limits.frame_bytes) {
                assert_eq!(decoded.unwrap_err().kind(), ErrorKind::FrameTooLarge);
            } else {
                let Decoded::Incomplete { needed } = decoded.unwrap() else {
                    panic!("length {length} was believed");
                };
                assert_eq!(needed, Some(length as usize + 4));
            }
        }
    }
}

#[test]
fn a_hostile_extension_length_is_refused() {
    for extension in SHORT_LENGTHS {
        let mut bytes = raw(1, 0, 0, b"", &[0x7F, 1, 0, 0]);
        bytes[6..8].copy_from_slice(&extension.to_le_bytes());
        let result = read(&Native, &Limits::default(), &[&bytes]);
        // No block at all, and a block of exactly the one item, are well-formed.
        match extension {
            0 | 4 => assert_eq!(result.unwrap().len(), 1),
            _ => assert_eq!(result.unwrap_err().kind(), ErrorKind::Malformed),
        }
    }
}

#[test]
fn a_hostile_item_length_is_refused() {
    for item in [0x01, 0x02, 0x84, 0x05, 0x06, 0x7F, 0x83] {
        for length in SHORT_LENGTHS {
            let [low, high] = length.to_le_bytes();
            // Four bytes of payload stand there, whatever the item says.
            let bytes = raw(2, 1, u32::MAX, &[item, low, high, 1, 0, 0, 0], b"body");
            let result = read(&Native, &Limits::default(), &[&bytes]);
            if length > 4 {
                assert_eq!(result.unwrap_err().kind(), ErrorKind::Malformed);
            } else if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::Malformed, "{item:#04x} {length}");
            }
        }
    }
}

#[test]
fn hostile_lengths_inside_items_are_refused() {
    for length in SHORT_LENGTHS {
        let [low, high] = length.to_le_bytes();
        let status = [0x01, 10, 0, 1, 0, 0, 0, low, high, b'a', b'b', b'c', b'd'];
        let pair = [0x02, 6, 0, low, high, b'a', b'b', b'c', b'd'];
        for block in [&status[..], &pair] {
            let bytes = raw(3, 1, 0, block, b"");
            let result = read(&Native, &Limits::default(), &[&bytes]);
            if length <= 4 {
                assert_eq!(result.unwrap().len(), 1);
            } else {
                assert_eq!(result.unwrap_err().kind(), ErrorKind::Malformed);
            }
        }
    }
}

#[test]
fn cut_and_overlong_items_are_refused() {
    malformed(&raw(1, 0, 0, &[0x02], b""), "item is cut");
    malformed(&raw(1, 0, 0, &[0x7F, 0, 0, 0x7F, 0], b""), "item is cut");
    malformed(&raw(3, 1, 0, &[0x01, 5, 0, 0, 0, 0, 0, 0], b""), "status");
    malformed(&raw(1, 0, 0, &[0x02, 1, 0, 0], b""), "pair");
    for length in [0, 3, 5, 8] {
        let payload = vec![0; length];
        for (item, says) in [(0x05, "time left"), (0x06, "parent")] {
            let block = [&[item, length as u8, 0][..], &payload].concat();
            malformed(&raw(2, 1, 0, &block, b""), says);
        }
    }
}

#[test]
fn texts_that_are_not_utf8_are_refused() {
    malformed(&raw(1, 0, u32::MAX, b"\x84\x02\0\xC3\x28", b""), "UTF-8");
    malformed(&raw(1, 0, 0, b"\x02\x04\0\x01\0\xFFv", b""), "UTF-8");
    malformed(&raw(1, 0, 0, b"\x02\x04\0\x01\0k\xFF", b""), "UTF-8");
    malformed(
        &raw(3, 1, 0, b"\x01\x07\0\x01\0\0\0\x01\0\xFF", b""),
        "UTF-8",
    );
    malformed(&raw(3, 1, 0, b"\x01\x07\0\x01\0\0\0\0\0\xFF", b""), "UTF-8");
}

#[test]
fn reserved_flags_are_refused() {
    for flag in [0x10, 0x20, 0x40, 0x80] {
        for kind in [1, 2, 3, 8, 9, 10, 11] {
            malformed(&raw(kind | flag, 1, 0, b"", b""), "flags");
        }
    }
}

#[test]
fn a_missing_or_empty_route_name_is_refused() {
    malformed(&raw(1, 0, u32::MAX, b"", b"x"), "name is missing");
    malformed(&raw(2, 1, u32::MAX, b"\x7F\0\0", b"x"), "name is missing");
    malformed(&raw(2, 1, u32::MAX, b"\x84\0\0", b"x"), "name is empty");
}

#[test]
fn a_route_name_over_the_limit_is_refused() {
    let mut limits = Limits::default();
    limits.route_name_bytes = 4;
    for (name, fits) in [("/abc", true), ("/abcd", false)] {
        let block = [&[0x84, name.len() as u8, 0], name.as_bytes()].concat();
        let bytes = raw(1, 0, u32::MAX, &block, b"");
        match read(&Native, &limits, &[&bytes]) {
            Ok(_) => assert!(fits),
            Err(error) => {
                assert!(!fits && error.is_peer_fault());
                let text = error.to_string();
                assert!(text.contains("limits.route_name_bytes = 4"), "{text}");
            }
        }
    }
}

#[test]
fn a_flood_of_empty_pairs_is_refused() {
    // No block has room for more than 13,107, so 65,536 come as five frames: one is enough.
    let block = [0x02, 2, 0, 0, 0].repeat(13_107);
    malformed(&raw(1, 0, 0, &block, b""), "limits.metadata_pairs = 64");

    let mut limits = Limits::default();
    limits.metadata_bytes = u32::MAX;
    for (pairs, fits) in [(64, true), (65, false)] {
        let bytes = raw(1, 0, 0, &[0x02, 2, 0, 0, 0].repeat(pairs), b"");
        assert_eq!(read(&Native, &limits, &[&bytes]).is_ok(), fits, "{pairs}");
    }
}

#[test]
fn metadata_over_the_byte_limit_is_refused() {
    let mut limits = Limits::default();
    limits.metadata_bytes = 100;
    for (value, fits) in [(95, true), (96, false)] {
        let length = (2 + value) as u8;
        let block = [&[0x02, length, 0, 0, 0][..], &vec![b'x'; value]].concat();
        match read(&Native, &limits, &[&raw(1, 0, 0, &block, b"")]) {
            Ok(_) => assert!(fits),
            Err(error) => {
                assert!(!fits && error.kind() == ErrorKind::Malformed);
                let text = error.to_string();
                assert!(text.contains("101 bytes"), "{text}");
                assert!(text.contains("limits.metadata_bytes = 100"), "{text}");
            }
        }
    }
}

fn limits() -> PeerLimits {
    PeerLimits::announced(&Limits::default())
}

fn hello() -> Vec<u8> {
    let hello = Hello {
        random: [9; 32],
        limits: limits(),
        times: PeerTimes::default(),
    };
    hello.encode()
}

fn refusal(text: &str) -> Vec<u8> {
    Welcome::refusal(&Limits::default(), Status::new(Status::OVERLOADED, text)).encode()
}

#[test]
fn a_handshake_is_waited_for_byte_by_byte() {
    for end in 0..hello().len() {
        assert!(Hello::decode(&hello()[..end]).unwrap().is_none());
    }
    let welcome = refusal("full");
    for end in 0..welcome.len() {
        assert!(Welcome::decode(&welcome[..end]).unwrap().is_none());
    }
    let preface = trunkline::protocol::native::handshake::preface();
    for end in 0..preface.len() {
        assert!(read_preface(&preface[..end]).unwrap().is_none());
    }
}

#[test]
fn hostile_lengths_in_a_handshake_are_refused_or_waited_for() {
    for length in LENGTHS {
        let mut bytes = hello();
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let what = format!("length {length}");
        refused_or_waiting(Hello::decode(&bytes).map(|hello| hello.is_some()), &what);
        let mut bytes = refusal("full");
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        refused_or_waiting(Welcome::decode(&bytes).map(|it| it.is_some()), &what);
    }
    for extension in SHORT_LENGTHS.into_iter().skip(1) {
        let mut bytes = hello();
        bytes[6..8].copy_from_slice(&extension.to_le_bytes());
        let what = format!("extension length {extension}");
        refused_or_waiting(Hello::decode(&bytes).map(|hello| hello.is_some()), &what);
    }
}

#[test]
fn a_handshake_of_over_16_kib_is_refused_by_its_length_alone() {
    for (length, fits) in [((16 << 10) - 4, true), ((16 << 10) - 3, false)] {
        let bytes = u32::to_le_bytes(length);
        for result in [
            Hello::decode(&bytes).map(|hello| hello.is_none()),
            Welcome::decode(&bytes).map(|welcome| welcome.is_none()),
        ] {
            match result {
                Ok(waits) => assert!(fits && waits),
                Err(error) => {
                    assert!(!fits && error.kind() == ErrorKind::FrameTooLarge);
                    assert!(error.to_string().contains("16385"), "{error}");
                    assert!(error.to_string().contains("16384"), "{error}");
                }
            }
        }
    }
}

#[test]
fn another_frame_in_place_of_the_handshake_is_refused() {
    let push = encode(&Native, &message(Kind::Push, 0, &[0; 80]));
    for error in [
        Hello::decode(&push).unwrap_err(),
        Hello::decode(&refusal("full")).unwrap_err(),
        Welcome::decode(&push).unwrap_err(),
        Welcome::decode(&hello()).unwrap_err(),
        Hello::decode(&raw(4, 0, 0, b"", &[0; 31])).unwrap_err(),
        Hello::decode(&raw(4, 0, 0, b"", &[0; 32])).unwrap_err(),
        Welcome::decode(&raw(5, 0, 0, b"", &[0; 63])).unwrap_err(),
        Welcome::decode(&raw(5, 0, 0, b"", &[0; 64])).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
    }
}

#[test]
fn what_else_is_on_the_port_is_named() {
    for (bytes, looks_like) in [
        (&b"GET / HTTP/1.1\r\n"[..], "HTTP request"),
        (b"POST", "HTTP request"),
        (b"PRI * HTTP/2.0\r\n", "HTTP request"),
        (b"HTTP/1.1 200 OK\r\n", "HTTP server"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03", "TLS"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
        (b"TRLX\x01\x01\0\0", "another protocol"),
        (b"\0\0\0\0\0\0\0\0", "another protocol"),
    ] {
        let error = read_preface(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongProtocol);
        let text = error.to_string();
        assert!(text.contains(looks_like), "{looks_like} is not in: {text}");
        // Fewer than the bytes that the guess needs are waited for.
        assert!(read_preface(&bytes[..3]).unwrap().is_none());
    }
}

#[test]
fn the_highest_common_version_is_chosen() {
    for ((lowest, highest), chosen) in [
        ((1, 1), Some(1)),
        ((0, 1), Some(1)),
        ((1, 2), Some(1)),
        ((0, 255), Some(1)),
        ((0, 0), None),
        ((2, 2), None),
        ((2, 255), None),
        ((255, 255), None),
    ] {
        let preface = [b'T', b'R', b'L', b'K', lowest, highest, 0, 0];
        let range = read_preface(&preface).unwrap().unwrap();
        match choose_version(range) {
            Ok(version) => assert_eq!(Some(version), chosen, "{lowest} to {highest}"),
            Err(error) => {
                assert_eq!(chosen, None, "{lowest} to {highest}");
                assert_eq!(error.kind(), ErrorKind::Version);
                let status = error.status().unwrap();
                assert_eq!(status.code(), Status::VERSION);
                for range in ["1 to 1".to_owned(), format!("{lowest} to {highest}")] {
                    assert!(status.text().contains(&range), "{status}");
                }
            }
        }
    }
    let error = read_preface(b"TRLK\x02\x01\0\0").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
}

/// xorshift64*: enough for inputs, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 32) % bound
    }

    /// Up to 96 bytes; three of four inputs get a length, kind and items that lead further in.
    fn input(&mut self) -> Vec<u8> {
        let size = self.below(97) as usize;
        let mut bytes: Vec<u8> = (0..size).map(|_| self.next() as u8).collect();
        if size < HEADER || self.below(4) == 0 {
            return bytes;
        }
        let length = (size - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[4] = self.below(16) as u8;
        let payload = size - HEADER;
        let extension = self.below(payload as u64 + 1) as usize;
        bytes[6..8].copy_from_slice(&(extension as u16).to_le_bytes());
        let mut at = HEADER;
        while at + 3 <= HEADER + extension {
            let room = HEADER + extension - at - 3;
            let length = self.below(room as u64 + 2) as usize;
            bytes[at] = [0x01, 0x02, 0x84, 0x05, 0x06, 0x83, 0x7F][self.below(7) as usize];
            bytes[at + 1..at + 3].copy_from_slice(&(length as u16).to_le_bytes());
            at += 3 + length;
        }
        bytes
    }
}

#[test]
fn random_bytes_never_cause_a_panic() {
    const SEED: u64 = 0x7472_756E_6B6C_696E;
    println!("seed {SEED:#x}");
    let mut random = Random(SEED);
    let limits = [Limits::default(), Limits::embedded(), with_frame_limit(40)];
    let mut delivered = 0;
    for number in 0..100_000 {
        let input = random.input();
        let limits = &limits[number % limits.len()];
        for protocol in [&Native as &dyn Protocol, &LengthPrefixed, &Stream] {
            match read(protocol, limits, &[&input]) {
                Ok(seen) => delivered += seen.len(),
                Err(error) => assert!(error.is_peer_fault(), "{error:?} for {input:02x?}"),
            }
        }
        for error in [
            read_preface(&input).err(),
            Hello::decode(&input).err(),
            Welcome::decode(&input).err(),
        ]
        .into_iter()
        .flatten()
        {
            assert!(error.is_peer_fault(), "{error:?} for {input:02x?}");
        }
    }
    assert!(delivered > 100_000, "the inputs do not lead far enough");
}

/// Each byte lets the reader look again: what it has seen must not be parsed again each time.
#[test]
fn metadata_that_comes_byte_by_byte_costs_no_more_than_its_bytes() {
    let mut limits = Limits::default();
    limits.metadata_bytes = u32::MAX;
    limits.metadata_pairs = u32::MAX;
    let bytes = raw(1, 0, 0, &[0x02, 2, 0, 0, 0].repeat(13_107), b"");
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    let start = std::time::Instant::now();
    assert_eq!(read(&Native, &limits, &single).unwrap().len(), 1);
    let took = start.elapsed();
    // Quadratic, it would be some hundred million pairs.
    assert!(took < PROMPT, "{took:?}");
}
