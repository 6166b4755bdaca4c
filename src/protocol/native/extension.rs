//! The extension block of a native frame; its table is in the [parent](super).

use std::time::Duration;

use byteorder::{ByteOrder, LittleEndian};

use super::{NAMED, malformed};
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::message::{Items, MessageRef, MetadataRef, PAIR, Route, pair};
use crate::status::StatusRef;

const STATUS: u8 = 0x01;
const ROUTE_NAME: u8 = 0x84;
const TIME_LEFT: u8 = 0x05;
const PARENT: u8 = 0x06;
const MUST_UNDERSTAND: u8 = 0x80;
const ITEM_HEAD: usize = 3;

/// What decoding a block came to.
pub(super) enum Extension {
    Understood,
    /// An item of this type must be understood and is not.
    Unknown(u8),
}

/// The bytes of the block that `message` needs.
#[inline]
pub(super) fn encoded_len(message: &MessageRef<'_>) -> Result<u16, Error> {
    let mut length = message.metadata.encoded_len();
    if let Some(status) = &message.status {
        length += ITEM_HEAD + 6 + status.text.len() + status.cause.len();
    }
    if let Route::Name(name) = message.route {
        length += ITEM_HEAD + name.len();
    }
    if message.time_left.is_some() {
        length += ITEM_HEAD + 4;
    }
    if message.parent.is_some() {
        length += ITEM_HEAD + 4;
    }
    u16::try_from(length).map_err(|_| {
        Error::new(
            ErrorKind::TooLarge,
            format!(
                "status, metadata and route name take {length} bytes; a frame has room for 65,535"
            ),
        )
    })
}

/// Appends the block; [`encoded_len`] has said that it fits.
pub(super) fn encode(message: &MessageRef<'_>, out: &mut Vec<u8>) {
    if let Route::Name(name) = message.route {
        item(out, ROUTE_NAME, &[name.as_bytes()]);
    }
    if let Some(status) = &message.status {
        let mut head = [0; 6];
        LittleEndian::write_i32(&mut head[..4], status.code);
        LittleEndian::write_u16(&mut head[4..], status.text.len() as u16);
        item(
            out,
            STATUS,
            &[&head, status.text.as_bytes(), status.cause.as_bytes()],
        );
    }
    if let Some(time_left) = message.time_left {
        let milliseconds = u32::try_from(time_left.as_millis()).unwrap_or(u32::MAX);
        item(out, TIME_LEFT, &[&milliseconds.to_le_bytes()]);
    }
    if let Some(parent) = message.parent {
        item(out, PARENT, &[&parent.to_le_bytes()]);
    }
    for (key, value) in message.metadata.iter() {
        let key_length = (key.len() as u16).to_le_bytes();
        item(out, PAIR, &[&key_length, key.as_bytes(), value.as_bytes()]);
    }
}

fn item(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let [low, high] = (length as u16).to_le_bytes();
    out.extend_from_slice(&[kind, low, high]);
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Reads the block into `message`.
pub(super) fn decode<'a>(
    block: &'a [u8],
    message: &mut MessageRef<'a>,
    limits: &Limits,
) -> Result<Extension, Error> {
    let mut pairs = 0;
    let mut pair_bytes = 0;
    let mut unknown = None;
    let mut seen = 0;
    let mut items = Items::new(block);
    for (kind, payload) in items.by_ref() {
        if seen & single(kind) != 0 {
            return Err(malformed("an extension item comes twice"));
        }
        seen |= single(kind);
        match kind {
            STATUS => message.status = Some(status(payload)?),
            PAIR => {
                if pair(payload).is_none() {
                    return Err(malformed("a metadata pair is cut or not UTF-8"));
                }
                pairs += 1;
                pair_bytes += ITEM_HEAD + payload.len();
            }
            ROUTE_NAME if message.route != Route::Number(NAMED) => {
                return Err(malformed("a route has a number and a name"));
            }
            ROUTE_NAME => message.route = route_name(payload, limits)?,
            TIME_LEFT => {
                let milliseconds = integer(payload, "the time left")?;
                message.time_left = Some(match milliseconds {
                    u32::MAX => Duration::MAX,
                    milliseconds => Duration::from_millis(u64::from(milliseconds)),
                });
            }
            PARENT => message.parent = Some(integer(payload, "the parent")?),
            _ if kind & MUST_UNDERSTAND != 0 => unknown = Some(kind),
            _ => {}
        }
    }
    if !items.rest().is_empty() {
        return Err(malformed("an extension item is cut"));
    }
    if pairs > 0 {
        check_metadata(pairs, pair_bytes, limits)?;
        message.metadata = MetadataRef::from_items(block);
    }
    Ok(match unknown {
        Some(kind) => Extension::Unknown(kind),
        None => Extension::Understood,
    })
}

/// A bit for each item type that may come only once.
fn single(kind: u8) -> u8 {
    match kind {
        STATUS => 1,
        ROUTE_NAME => 2,
        TIME_LEFT => 4,
        PARENT => 8,
        _ => 0,
    }
}

fn check_metadata(pairs: usize, bytes: usize, limits: &Limits) -> Result<(), Error> {
    if pairs > limits.metadata_pairs as usize {
        return Err(Error::new(
            ErrorKind::Malformed,
            format!(
                "{pairs} metadata pairs pass limits.metadata_pairs = {}",
                limits.metadata_pairs
            ),
        ));
    }
    if bytes > limits.metadata_bytes as usize {
        return Err(Error::new(
            ErrorKind::Malformed,
            format!(
                "{bytes} bytes of metadata pass limits.metadata_bytes = {}",
                limits.metadata_bytes
            ),
        ));
    }
    Ok(())
}

fn status(payload: &[u8]) -> Result<StatusRef<'_>, Error> {
    let read = || {
        let (head, texts) = payload.split_first_chunk::<6>()?;
        let text_length = usize::from(LittleEndian::read_u16(&head[4..]));
        let (text, cause) = texts.split_at_checked(text_length)?;
        Some(StatusRef {
            code: LittleEndian::read_i32(&head[..4]),
            text: std::str::from_utf8(text).ok()?,
            cause: std::str::from_utf8(cause).ok()?,
        })
    };
    read().ok_or_else(|| malformed("a status is cut or not UTF-8"))
}

fn route_name<'a>(payload: &'a [u8], limits: &Limits) -> Result<Route<'a>, Error> {
    if payload.len() > limits.route_name_bytes as usize {
        return Err(Error::new(
            ErrorKind::Malformed,
            format!(
                "a route name of {} bytes passes limits.route_name_bytes = {}",
                payload.len(),
                limits.route_name_bytes
            ),
        ));
    }
    match std::str::from_utf8(payload) {
        Ok(name) if !name.is_empty() => Ok(Route::Name(name)),
        _ => Err(malformed("a route name is empty or not UTF-8")),
    }
}

fn integer(payload: &[u8], what: &str) -> Result<u32, Error> {
    match payload.try_into() {
        Ok(bytes) => Ok(u32::from_le_bytes(bytes)),
        Err(_) => Err(Error::new(
            ErrorKind::Malformed,
            format!("{what} is not 4 bytes long"),
        )),
    }
}
