//! A protocol of the user's own, and ones that are wrong.

use trunkline::message::MessageRef;
use trunkline::protocol::{Decoded, Protocol};
use trunkline::{CodecId, Error, ErrorKind, Framed, Kind, Limits, Route};

use super::{next, pair};
use crate::support::{LIMIT, within};

/// Lines of text, as many devices speak them.
#[derive(Clone, Copy, Debug)]
struct Lines;

impl Protocol for Lines {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn carries(&self, kind: Kind) -> bool {
        kind == Kind::Push
    }

    fn encode(&self, message: &MessageRef<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        if message.body.contains(&b'\n') {
            return Err(Error::invalid_input("a line has no line breaks"));
        }
        out.extend_from_slice(message.body);
        out.push(b'\n');
        Ok(())
    }

    fn decode<'a>(&self, input: &'a [u8], _: &Limits) -> Result<Decoded<'a>, Error> {
        let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
            return Ok(Decoded::Incomplete { needed: None });
        };
        let line = &input[..end];
        if line.contains(&0) {
            return Err(Error::malformed("a zero byte in a line"));
        }
        let message = MessageRef::new(Kind::Push, Route::Number(0), 0, CodecId::TEXT, line);
        let size = end + 1;
        Ok(Decoded::Message { message, size })
    }
}

#[test]
fn a_protocol_of_lines_is_read_and_written() {
    within(LIMIT, || {
        let [mut here, mut there] = pair(Lines);
        here.push(0, "AT+CSQ").unwrap();
        here.push(0, "").unwrap();
        assert_eq!(
            here.push(0, "two\nlines").unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        assert_eq!(next(&mut there).body, b"AT+CSQ");
        assert_eq!(next(&mut there).body, b"");
        drop(here);
        assert!(there.read().unwrap().is_none());
    });
}

#[test]
fn errors_of_the_protocol_are_final() {
    let mut framed = Framed::new(&b"\0\nfine\n"[..], Lines, Limits::default());
    for _ in 0..2 {
        assert_eq!(framed.read().unwrap_err().kind(), ErrorKind::Malformed);
    }
}

#[test]
fn a_line_without_end_does_not_grow_beyond_the_limit() {
    let mut limits = Limits::default();
    limits.frame_bytes = 10_000;
    let mut framed = Framed::new(std::io::repeat(b'x'), Lines, limits);
    let error = framed.read().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FrameTooLarge);
    assert!(error.to_string().contains("limits.frame_bytes is 10000"));
    assert!(framed.unread().len() < 40_000);
    assert!(framed.read().is_err());
}

/// Says of every frame that it has so many bytes.
#[derive(Debug)]
struct Wrong(usize);

impl Protocol for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn carries(&self, _: Kind) -> bool {
        true
    }

    fn encode(&self, _: &MessageRef<'_>, _: &mut Vec<u8>) -> Result<(), Error> {
        Ok(())
    }

    fn decode<'a>(&self, _: &'a [u8], _: &Limits) -> Result<Decoded<'a>, Error> {
        Ok(Decoded::Skipped { size: self.0 })
    }
}

#[test]
fn a_protocol_that_counts_wrongly_neither_hangs_nor_panics() {
    within(LIMIT, || {
        for size in [0, 6, usize::MAX] {
            let mut framed = Framed::new(&b"bytes"[..], Wrong(size), Limits::default());
            for _ in 0..2 {
                let error = framed.read().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                assert!(error.to_string().contains("wrong protocol"));
            }
        }
    });
}
