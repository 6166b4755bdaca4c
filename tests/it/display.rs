//! How messages look in logs: one line, of bounded length, whatever a peer has sent.

use std::time::Duration;

use trunkline::message::{Message, MessageRef};
use trunkline::{Client, CodecId, Error, ErrorKind, Kind, Metadata, Route, Server, Status};

use crate::support::{LIMIT, within};

/// What a peer would write to forge a line of a log, or to move the cursor.
const HOSTILE: &str = "x\r\n2026-01-01 ERROR \x1b[2J\u{9b}31m\u{202e}";

fn message<'a>(kind: Kind, route: impl Into<Route<'a>>, body: &'a [u8]) -> MessageRef<'a> {
    let sequence = if kind == Kind::Push { 0 } else { 7 };
    MessageRef::new(kind, route.into(), sequence, CodecId::BYTES, body)
}

/// One line without signs that a terminal would act on.
#[track_caller]
fn is_harmless(text: &str) {
    let harmful = |sign: char| sign.is_control() || sign == '\u{202e}';
    assert!(!text.contains(harmful), "{text:?}");
}

#[test]
fn a_message_is_shown_on_one_line() {
    let mut call = message(Kind::Call, "/math/add", b"hello");
    call.codec = CodecId::TEXT;
    let line = r#"call /math/add #7, text, 5 bytes: "hello""#;
    assert_eq!(call.to_string(), line);
    assert_eq!(call.to_message().to_string(), line);

    let mut metadata = Metadata::new();
    metadata.push("trace", "42").unwrap();
    call.metadata = metadata.as_ref();
    call.parent = Some(3);
    call.time_left = Some(Duration::from_millis(250));
    call.codec = CodecId(130);
    call.body = b"";
    assert_eq!(
        call.to_string(),
        r#"call /math/add #7, parent #3, 250ms left, metadata {"trace": "42"}, codec 130, 0 bytes"#
    );

    let push = message(Kind::Push, 3, &[0, 1, 0xFE]);
    assert_eq!(push.to_string(), "push #3, 3 bytes: 00 01 fe");

    let failure = Status::new(Status::NO_ROUTE, "nothing handles it").with_cause("no \"x\"");
    let mut reply = message(Kind::Reply, 0, b"");
    reply.status = Some(failure.as_ref());
    assert_eq!(
        reply.to_string(),
        r#"reply #7, status 404: nothing handles it (no "x")"#
    );
    assert_eq!(message(Kind::Cancel, 0, b"").to_string(), "cancel #7");
}

#[test]
fn of_a_body_at_most_64_bytes_are_shown() {
    let long = "x".repeat(1 << 20);
    let push = message(Kind::Push, 3, long.as_bytes());
    let line = format!("push #3, 1048576 bytes: {:?}…", "x".repeat(64));
    assert_eq!(push.to_string(), line);
    assert!(format!("{push:?}").len() < 250);
    assert!(format!("{:?}", push.to_message()).contains("1048576 bytes"));

    // A character that the cut would split is left out.
    let umlauts = "x".to_owned() + &"ö".repeat(100);
    let line = message(Kind::Push, 3, umlauts.as_bytes()).to_string();
    assert!(line.ends_with("öö\"…"), "{line}");

    let bytes = [0xFF; 65];
    let line = message(Kind::Push, 3, &bytes).to_string();
    assert_eq!(
        line,
        format!("push #3, 65 bytes:{} …", " ff".repeat(64)),
        "{line}"
    );
    assert!(
        message(Kind::Push, 3, &bytes[1..])
            .to_string()
            .ends_with("ff")
    );
}

#[test]
fn metadata_names_and_statuses_are_capped_in_all() {
    let long = "y".repeat(30_000);
    let mut metadata = Metadata::new();
    metadata.push("first", "1").unwrap();
    for _ in 0..3 {
        metadata.push(&long[..100], &long[..200]).unwrap();
    }
    let shown = format!("{metadata:?}");
    assert!(shown.starts_with(r#"{"first": "1", "yyy"#), "{shown}");
    assert!(shown.ends_with(r#"y"…, … 2 more}"#), "{shown}");
    assert_eq!(shown, format!("{:?}", metadata.as_ref()));
    assert_eq!(shown, format!("{:?}", metadata.iter()));

    let mut empty = Metadata::new();
    for _ in 0..10_000 {
        empty.push("", "").unwrap();
    }
    let failure = Status::new(1, &long[..]).with_cause(&long[..]);
    let mut reply = message(Kind::Call, &long[..], long.as_bytes());
    reply.status = Some(failure.as_ref());
    for metadata in [&metadata, &empty] {
        reply.metadata = metadata.as_ref();
        assert!(reply.to_string().len() < 3_500);
    }
    assert!(format!("{metadata:#?}{empty:#?}").len() < 3_500);
}

/// A message all of whose texts are hostile.
fn hostile() -> Message {
    let mut metadata = Metadata::new();
    metadata.push(HOSTILE, HOSTILE).unwrap();
    let failure = Status::new(1, HOSTILE).with_cause(HOSTILE);
    let mut call = message(Kind::Call, HOSTILE, HOSTILE.as_bytes());
    call.codec = CodecId::TEXT;
    call.status = Some(failure.as_ref());
    call.metadata = metadata.as_ref();
    call.to_message()
}

#[test]
fn no_text_of_a_peer_brings_a_line_break_or_a_terminal_escape() {
    let hostile = hostile();
    let status = hostile.status.clone().unwrap();
    for text in [
        hostile.to_string(),
        hostile.as_ref().to_string(),
        format!("{hostile:?}"),
        format!("{:?}", hostile.as_ref()),
        hostile.route.to_string(),
        hostile.route.as_route().to_string(),
        format!("{:?}", hostile.route),
        status.to_string(),
        format!("{status:?}"),
    ] {
        is_harmless(&text);
        assert!(text.contains(r"x\r\n2026-01-01 ERROR \u{1b}[2J"), "{text}");
    }
    // The texts themselves are as they came.
    assert_eq!(status.text(), HOSTILE);
    assert_eq!(hostile.route.as_route(), Route::Name(HOSTILE));
    // Bytes that nobody has called text are not shown as such.
    is_harmless(&message(Kind::Push, 1, HOSTILE.as_bytes()).to_string());
}

#[test]
fn errors_bodies_and_replies_of_a_hostile_peer_are_harmless_too() {
    within(LIMIT, || {
        let server = Server::builder()
            .on_call(1, |_, body| -> Result<String, Status> {
                let shown = format!("{body} {body:?}");
                is_harmless(&shown);
                assert!(shown.starts_with("text, "), "{shown}");
                Err(Status::new(1000, body.decode::<&str>()?).with_cause(HOSTILE))
            })
            .on_call(2, |_, _| HOSTILE.repeat(1_000))
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::connect(server.local_address()).unwrap();

        let check = |error: Error, kind| {
            assert_eq!(error.kind(), kind);
            is_harmless(&format!("{error} {error:#} {error:?}"));
        };
        let error = client.call(1, HOSTILE).unwrap_err();
        assert_eq!(error.status().unwrap().text(), HOSTILE);
        check(error, ErrorKind::Status);
        check(client.call(HOSTILE, "").unwrap_err(), ErrorKind::Status);

        let reply = client.call(2, "").unwrap();
        let size = format!("{} bytes: ", HOSTILE.len() * 1_000);
        for shown in [reply.to_string(), format!("{reply:?}")] {
            is_harmless(&shown);
            assert!(shown.contains(&size) && shown.len() < 500, "{shown}");
        }
        assert!(reply.to_string().starts_with("reply, text, "));
    });
}
