//! Preface, hello and welcome, all three from the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline::protocol::native::handshake::{Hello, Welcome, choose_version, read_preface};

fuzz_target!(|data: &[u8]| {
    if let Ok(Some(range)) = read_preface(data) {
        let _ = choose_version(range);
    }
    if let Ok(Some((hello, size))) = Hello::decode(data) {
        assert!(size <= data.len());
        let again = hello.encode();
        let (second, size) = Hello::decode(&again)
            .expect("a hello of this side")
            .expect("a whole hello");
        assert_eq!((second, size), (hello, again.len()));
    }
    if let Ok(Some((welcome, size))) = Welcome::decode(data) {
        assert!(size <= data.len());
        // A long text is shortened when it is written, and then stays as it is.
        let first = welcome.encode();
        let (second, size) = Welcome::decode(&first)
            .expect("a welcome of this side")
            .expect("a whole welcome");
        assert_eq!(size, first.len());
        assert_eq!(second.limits, welcome.limits);
        assert_eq!(second.session, welcome.session);
        assert_eq!(second.token, welcome.token);
        assert_eq!(second.version, welcome.version);
        assert_eq!(
            second.refusal.map(|status| status.code()),
            welcome.refusal.map(|status| status.code())
        );
    }
});
