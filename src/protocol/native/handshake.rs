//! Preface, hello and welcome: what both sides say before messages flow.
//!
//! *Preface*, each side, 8 bytes: `54 52 4C 4B` ("TRLK"), lowest version, highest version, two
//! zero bytes.
//!
//! *Hello*, client, a frame of kind 4 whose body never changes its layout: 32 random bytes,
//! then items (type `u8`, length `u16`, bytes), unknown types skipped.
//!
//! *Welcome*, server, a frame of kind 5, or a refusal: a welcome whose status is not 0:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 32 | random bytes |
//! | 32 | 8 | session id |
//! | 40 | 16 | session token, secret |
//! | 56 | 3 | chosen version (0 in a refusal), lowest, highest version of the server |
//! | 59 | 1 | 0 |
//! | 60 | 4 | status code `i32` |
//! | 64 | | items |
//!
//! | item | name | bytes |
//! |---|---|---|
//! | 1 | limits | frame, body, metadata, calls in flight, bytes of calls in flight: 5 x `u32` |
//! | 2 | status text | UTF-8 |
//! | 3 | times | milliseconds of silence after which this side takes its peer for lost, 0 = never; milliseconds that its calls wait for a reply unless they say otherwise, 0 = not told: 2 x `u32` |

use byteorder::{ByteOrder, LittleEndian};

use super::{Header, malformed};
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::message::{Items, SessionId};
use crate::status::Status;

/// The first bytes of every connection.
pub const MAGIC: [u8; 4] = *b"TRLK";
/// Bytes of a preface.
pub const PREFACE: usize = 8;
/// The lowest version spoken here.
pub const LOWEST: u8 = 1;
/// The highest version spoken here.
pub const HIGHEST: u8 = 1;
/// Bytes of a hello or welcome frame at most.
pub(crate) const FRAME_LIMIT: usize = 16 << 10;

const HELLO: u8 = 4;
const WELCOME: u8 = 5;
const LIMITS_ITEM: u8 = 1;
const TEXT_ITEM: u8 = 2;
const TIMES_ITEM: u8 = 3;
const WELCOME_HEAD: usize = 64;

/// This side's preface.
pub fn preface() -> [u8; PREFACE] {
    let [a, b, c, d] = MAGIC;
    [a, b, c, d, LOWEST, HIGHEST, 0, 0]
}

/// Reads the peer's preface as far as it has come: `None` means more bytes are needed.
///
/// # Errors
/// `WrongProtocol` once four bytes are not the magic, with a guess at what they are.
pub fn read_preface(input: &[u8]) -> Result<Option<(u8, u8)>, Error> {
    let seen = input.len().min(MAGIC.len());
    if input.get(..seen) != MAGIC.get(..seen) {
        // The guess needs the four bytes; a peer that has sent fewer is not judged yet.
        return match input.first_chunk::<4>() {
            Some(start) => Err(wrong_protocol(start)),
            None => Ok(None),
        };
    }
    let Some(&[_, _, _, _, lowest, highest, _, _]) = input.first_chunk::<PREFACE>() else {
        return Ok(None);
    };
    if lowest > highest {
        return Err(malformed("the lowest version is above the highest"));
    }
    Ok(Some((lowest, highest)))
}

fn wrong_protocol(start: &[u8; 4]) -> Error {
    let guess = match start {
        b"GET " | b"POST" | b"PUT " | b"HEAD" | b"OPTI" | b"DELE" | b"PATC" | b"CONN" | b"PRI " => {
            "an HTTP request"
        }
        b"HTTP" => "an HTTP server's answer",
        b"SSH-" => "an SSH peer",
        [0x14..=0x17, 0x03, ..] => "TLS",
        _ => "another protocol",
    };
    Error::new(
        ErrorKind::WrongProtocol,
        format!(
            "the peer does not speak Trunkline: {:02x} {:02x} {:02x} {:02x} looks like {guess}",
            start[0], start[1], start[2], start[3]
        ),
    )
}

/// The version to speak with a peer, or the refusal that tells both ranges.
///
/// # Errors
/// `Version` with a status that names both ranges.
pub fn choose_version((lowest, highest): (u8, u8)) -> Result<u8, Error> {
    let version = highest.min(HIGHEST);
    if version >= lowest.max(LOWEST) {
        return Ok(version);
    }
    Err(Error::from_status(
        ErrorKind::Version,
        Status::new(
            Status::VERSION,
            format!("this side speaks {LOWEST} to {HIGHEST}, the peer {lowest} to {highest}"),
        ),
    ))
}

/// What one side lets the other send, as announced in hello and welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerLimits {
    /// Bytes of one frame.
    pub frame_bytes: u32,
    /// Bytes of one decoded body.
    pub body_bytes: u32,
    /// Bytes of all metadata of one message.
    pub metadata_bytes: u32,
    /// Calls in flight.
    pub calls: u32,
    /// Bytes of the bodies of calls in flight.
    pub call_bytes: u32,
}

impl PeerLimits {
    /// What this side announces.
    pub fn announced(limits: &Limits) -> Self {
        PeerLimits {
            frame_bytes: limits.frame_bytes,
            body_bytes: limits.body_bytes,
            metadata_bytes: limits.metadata_bytes,
            calls: limits.incoming_calls,
            call_bytes: limits.incoming_call_bytes,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[LIMITS_ITEM, 20, 0]);
        for value in [
            self.frame_bytes,
            self.body_bytes,
            self.metadata_bytes,
            self.calls,
            self.call_bytes,
        ] {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn decode(payload: &[u8]) -> Option<Self> {
        let fields = payload.first_chunk::<20>()?;
        Some(PeerLimits {
            frame_bytes: LittleEndian::read_u32(&fields[0..4]),
            body_bytes: LittleEndian::read_u32(&fields[4..8]),
            metadata_bytes: LittleEndian::read_u32(&fields[8..12]),
            calls: LittleEndian::read_u32(&fields[12..16]),
            call_bytes: LittleEndian::read_u32(&fields[16..20]),
        })
    }
}

/// The time limits of one side that the other takes part in, as announced in hello and welcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerTimes {
    /// Milliseconds of silence after which this side takes its peer for lost; 0 for never.
    pub silence: u32,
    /// Milliseconds that a call of this side waits for its reply, unless it says otherwise; 0 if
    /// that is not told.
    pub call: u32,
}

impl PeerTimes {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[TIMES_ITEM, 8, 0]);
        out.extend_from_slice(&self.silence.to_le_bytes());
        out.extend_from_slice(&self.call.to_le_bytes());
    }

    /// Those among the items; without them nothing is told.
    fn find(items: &[u8]) -> Self {
        let item = Items::new(items).find(|(kind, _)| *kind == TIMES_ITEM);
        let fields = item.and_then(|(_, payload)| payload.first_chunk::<8>());
        fields.map_or_else(PeerTimes::default, |fields| PeerTimes {
            silence: LittleEndian::read_u32(&fields[0..4]),
            call: LittleEndian::read_u32(&fields[4..8]),
        })
    }
}

/// What the client says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Fresh random bytes.
    pub random: [u8; 32],
    /// What the client accepts.
    pub limits: PeerLimits,
    /// How long the client waits.
    pub times: PeerTimes,
}

impl Hello {
    /// The whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = self.random.to_vec();
        self.limits.encode(&mut body);
        self.times.encode(&mut body);
        frame(HELLO, &body)
    }

    /// Reads the frame at the front of `input`: `None` means more bytes are needed.
    ///
    /// # Errors
    /// `FrameTooLarge` over 16 KiB, `Malformed` if it is no hello.
    pub fn decode(input: &[u8]) -> Result<Option<(Hello, usize)>, Error> {
        let Some((body, size)) = unframe(input, HELLO, "a hello")? else {
            return Ok(None);
        };
        let Some((random, items)) = body.split_first_chunk::<32>() else {
            return Err(malformed("a hello is shorter than its random bytes"));
        };
        let Some(limits) = limits_item(items) else {
            return Err(malformed("a hello without limits"));
        };
        let hello = Hello {
            random: *random,
            limits,
            times: PeerTimes::find(items),
        };
        Ok(Some((hello, size)))
    }
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Fresh random bytes.
    pub random: [u8; 32],
    /// The session's number; 0 in a refusal.
    pub session: SessionId,
    /// The session's secret; zero in a refusal.
    pub token: [u8; 16],
    /// The version to speak; 0 in a refusal.
    pub version: u8,
    /// The versions that the server speaks.
    pub versions: (u8, u8),
    /// What the server accepts.
    pub limits: PeerLimits,
    /// How long the server waits.
    pub times: PeerTimes,
    /// Why the connection is refused; `None` if it is not.
    pub refusal: Option<Status>,
}

impl Welcome {
    /// A refusal with a status.
    pub fn refusal(limits: &Limits, status: Status) -> Self {
        Welcome {
            random: [0; 32],
            session: SessionId(0),
            token: [0; 16],
            version: 0,
            versions: (LOWEST, HIGHEST),
            limits: PeerLimits::announced(limits),
            times: PeerTimes::default(),
            refusal: Some(status),
        }
    }

    /// The whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(128);
        body.extend_from_slice(&self.random);
        body.extend_from_slice(&self.session.0.to_le_bytes());
        body.extend_from_slice(&self.token);
        body.extend_from_slice(&[self.version, self.versions.0, self.versions.1, 0]);
        let code = self.refusal.as_ref().map_or(0, Status::code);
        body.extend_from_slice(&code.to_le_bytes());
        self.limits.encode(&mut body);
        self.times.encode(&mut body);
        if let Some(status) = &self.refusal {
            let text: String = status.text().chars().take(512).collect();
            body.push(TEXT_ITEM);
            body.extend_from_slice(&(text.len() as u16).to_le_bytes());
            body.extend_from_slice(text.as_bytes());
        }
        frame(WELCOME, &body)
    }

    /// Reads the frame at the front of `input`: `None` means more bytes are needed.
    ///
    /// # Errors
    /// `FrameTooLarge` over 16 KiB, `Malformed` if it is no welcome.
    pub fn decode(input: &[u8]) -> Result<Option<(Welcome, usize)>, Error> {
        let Some((body, size)) = unframe(input, WELCOME, "a welcome")? else {
            return Ok(None);
        };
        let Some((head, items)) = body.split_first_chunk::<WELCOME_HEAD>() else {
            return Err(malformed("a welcome is cut"));
        };
        let Some(limits) = limits_item(items) else {
            return Err(malformed("a welcome without limits"));
        };
        let mut random = [0; 32];
        random.copy_from_slice(&head[..32]);
        let mut token = [0; 16];
        token.copy_from_slice(&head[40..56]);
        let code = LittleEndian::read_i32(&head[60..64]);
        let refusal = (code != Status::OK).then(|| {
            let text = Items::new(items).find(|(kind, _)| *kind == TEXT_ITEM);
            let text = text.map_or(&[][..], |(_, text)| text);
            Status::new(code, String::from_utf8_lossy(text))
        });
        let welcome = Welcome {
            random,
            session: SessionId(LittleEndian::read_u64(&head[32..40])),
            token,
            version: head[56],
            versions: (head[57], head[58]),
            limits,
            times: PeerTimes::find(items),
            refusal,
        };
        Ok(Some((welcome, size)))
    }
}

fn limits_item(items: &[u8]) -> Option<PeerLimits> {
    let (_, payload) = Items::new(items).find(|(kind, _)| *kind == LIMITS_ITEM)?;
    PeerLimits::decode(payload)
}

/// A frame of a handshake kind around a body of this module's making.
fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut header = [0; super::HEADER];
    LittleEndian::write_u32(&mut header[0..4], (super::HEADER - 4 + body.len()) as u32);
    header[4] = kind;
    [&header, body].concat()
}

/// The body of the frame at the front of `input`, if it is whole and of this kind.
fn unframe<'a>(input: &'a [u8], kind: u8, what: &str) -> Result<Option<(&'a [u8], usize)>, Error> {
    let Some(header) = Header::read(input)? else {
        return Ok(None);
    };
    if header.size > FRAME_LIMIT as u64 {
        return Err(Error::new(
            ErrorKind::FrameTooLarge,
            format!("{what} of {} bytes passes {FRAME_LIMIT}", header.size),
        ));
    }
    if input.get(4).is_some_and(|byte| *byte != kind) {
        return Err(Error::new(
            ErrorKind::Malformed,
            format!("the peer did not begin with {what}"),
        ));
    }
    let size = header.size as usize;
    let Some(payload) = input.get(super::HEADER..size) else {
        return Ok(None);
    };
    let body = payload.get(usize::from(header.extension)..);
    let body = body.ok_or_else(|| malformed("the extension block is longer than its frame"))?;
    Ok(Some((body, size)))
}
