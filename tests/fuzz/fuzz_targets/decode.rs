//! Frames of every protocol: the first byte chooses the protocol, the second the limits, the
//! rest is the input.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline::config::Limits;
use trunkline::protocol::{Decoded, LengthPrefixed, Native, Protocol, Stream};

fuzz_target!(|data: &[u8]| {
    let &[protocol, limits, ref input @ ..] = data else {
        return;
    };
    let protocol: &dyn Protocol = match protocol % 3 {
        0 => &Native,
        1 => &LengthPrefixed,
        _ => &Stream,
    };
    let limits = match limits % 3 {
        0 => Limits::server(),
        1 => Limits::embedded(),
        _ => {
            let mut limits = Limits::embedded();
            limits.frame_bytes = 64;
            limits.body_bytes = 16;
            limits.metadata_bytes = 32;
            limits.metadata_pairs = 2;
            limits.route_name_bytes = 8;
            limits
        }
    };
    let mut rest = input;
    while let Ok(decoded) = protocol.decode(rest, &limits) {
        let size = match decoded {
            Decoded::Message { message, size } => {
                assert!(message.body.len() <= limits.body_bytes as usize);
                let message = message.to_message();
                let mut again = Vec::new();
                protocol
                    .encode(&message.as_ref(), &mut again)
                    .expect("what was decoded can be encoded");
                match protocol.decode(&again, &limits) {
                    Ok(Decoded::Message {
                        message: second,
                        size,
                    }) => {
                        assert_eq!(second.to_message(), message);
                        assert_eq!(size, again.len());
                    }
                    other => panic!("{message:?} was decoded again as {other:?}"),
                }
                size
            }
            Decoded::Refused { size, .. } | Decoded::Skipped { size } => size,
            Decoded::Incomplete { needed } => {
                assert!(needed.is_none_or(|needed| needed > rest.len()));
                break;
            }
            other => panic!("unknown {other:?}"),
        };
        assert!(size > 0 && size <= rest.len());
        rest = &rest[size..];
    }
});
