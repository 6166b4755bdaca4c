//! The house rules, read off `src/`: who may import whom, and where sockets, threads, clocks
//! and unsafe code may live.
//!
//! The checker works on tokens, so comments and texts never count. It knows paths as they are
//! written, not as the compiler resolves them: renaming what a rule watches is itself refused.

mod source;

use std::fs;
use std::path::Path;

use self::source::{Source, Token};

/// The layers, top first; modules of one layer may import each other.
const LAYERS: [&[&str]; 7] = [
    &["client", "cable", "server", "udp", "guide"],
    &["session", "router", "hub"],
    &["connection"],
    &["timer", "link", "security", "queue"],
    &["codec", "filter", "protocol"],
    &["message"],
    &[
        "error", "status", "config", "stats", "address", "escape", "records", "memory",
    ],
];
const SOCKETS: [&str; 4] = ["connection", "client", "server", "udp"];
const THREADS: [&str; 7] = [
    "connection",
    "client",
    "server",
    "udp",
    "router",
    "cable",
    "timer",
];
const CLOCKS: [&str; 10] = [
    "connection",
    "client",
    "server",
    "udp",
    "router",
    "cable",
    "timer",
    "session",
    "hub",
    "queue",
];
const UNSAFE: [&str; 1] = ["queue"];
const MOST_LINES: usize = 400;

/// Paths of which any part makes a file one that touches sockets, threads or the clock.
const SOCKET_PATHS: [&[&str]; 9] = [
    &["TcpStream"],
    &["TcpListener"],
    &["UdpSocket"],
    &["UnixStream"],
    &["UnixListener"],
    &["UnixDatagram"],
    &["socket2"],
    &["rustix", "net"],
    &["net", "*"],
];
const THREAD_PATHS: [&[&str]; 4] = [
    &["thread", "spawn"],
    &["thread", "Builder"],
    &["thread", "scope"],
    &["thread", "*"],
];
const CLOCK_PATHS: [&[&str]; 1] = [&["Instant", "now"]];
/// What must keep its name, so that the rules see it.
const KEEP_THEIR_NAMES: [&str; 5] = ["thread", "Instant", "std", "net", "rustix"];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// What breaks the rules in one file, a sentence each. `root` is what `lib.rs` re-exports.
fn violations(path: &str, text: &str, root: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |what: String| found.push(format!("src/{path}: {what}"));

    let lines = text.lines().count();
    if lines > MOST_LINES {
        say(format!("{lines} lines; split it by reason to change"));
    }

    let source = Source::new(path, text);
    let module = source.module.as_str();
    let own_layer = layer(module);
    if module != "lib" {
        match own_layer {
            None => say(format!("module {module} has no layer in tests/it/house.rs")),
            Some(own) => {
                for name in source.crate_imports() {
                    if let Some(wrong) = wrong_import(own, &name, root) {
                        say(wrong);
                    }
                }
            }
        }
    }
    if !UNSAFE.contains(&module) && source.has_word("unsafe") {
        say("unsafe code outside queue".to_owned());
    }

    let source = source.without_tests();
    for path in source.paths() {
        let written = path.names.join("::");
        let touches = |rules: &[&[&str]]| {
            let names: Vec<&str> = path.names.iter().map(String::as_str).collect();
            rules
                .iter()
                .any(|rule| names.windows(rule.len()).any(|part| part == *rule))
        };
        if touches(&SOCKET_PATHS) && !SOCKETS.contains(&module) {
            say(format!(
                "{written}: a socket outside connection and the roles"
            ));
        }
        if touches(&THREAD_PATHS) && !THREADS.contains(&module) {
            say(format!(
                "{written}: a thread outside connection, roles, router and timer"
            ));
        }
        if touches(&CLOCK_PATHS) && !CLOCKS.contains(&module) {
            say(format!(
                "{written}: the clock is read in a layer that is given the time"
            ));
        }
        if path.renamed && KEEP_THEIR_NAMES.contains(&path.names.last().unwrap().as_str()) {
            say(format!(
                "{written} is renamed, so that these rules cannot see it"
            ));
        }
    }
    if !CLOCKS.contains(&module) && source.has_call("elapsed") {
        say("elapsed(): the clock is read in a layer that is given the time".to_owned());
    }
    // A step of the wall clock must not end or prolong anything.
    if source.has_word("SystemTime") {
        say("SystemTime: only time that never jumps is measured with".to_owned());
    }
    // Not every machine has them; crossbeam's `AtomicCell` does without.
    for atomic in ["AtomicU64", "AtomicI64"] {
        if source.has_word(atomic) {
            say(format!("{atomic}: 64 bits are for AtomicCell"));
        }
    }
    for call in ["unwrap", "expect"] {
        if source.has_call(call) {
            say(format!("{call}() outside tests"));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn wrong_import(own: usize, name: &str, root: &[(String, String)]) -> Option<String> {
    let module = match root.iter().find(|(export, _)| export == name) {
        Some((_, module)) => module,
        None => name,
    };
    match layer(module) {
        None => Some(format!(
            "crate::{name} is in no layer that these rules know"
        )),
        Some(theirs) if theirs < own => Some(format!("imports {module}, which is above it")),
        Some(_) => None,
    }
}

/// Every source file: its path below `src/`, and its text.
fn files(folder: &Path, below: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), &format!("{name}/"), found);
        } else if name.ends_with(".rs") {
            found.push((name, fs::read_to_string(entry.path()).unwrap()));
        }
    }
}

#[test]
fn the_sources_keep_the_house_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&folder, "", &mut found);
    found.sort();
    let (_, lib) = found.iter().find(|(path, _)| path == "lib.rs").unwrap();
    let root = Source::new("lib.rs", lib).re_exports();
    let broken: Vec<String> = found
        .iter()
        .flat_map(|(path, text)| violations(path, text, &root))
        .collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Exactly this rule is broken.
#[track_caller]
fn bites(path: &str, text: &str, says: &str) {
    let root = [("Client".to_owned(), "client".to_owned())];
    let found = violations(path, text, &root);
    assert!(
        found.len() == 1 && found[0].contains(says),
        "{says:?} expected of {text:?}, got {found:?}"
    );
}

#[track_caller]
fn passes(path: &str, text: &str) {
    let root = [("Limits".to_owned(), "config".to_owned())];
    assert_eq!(violations(path, text, &root), [""; 0], "{text}");
}

#[test]
fn an_import_from_above_is_found() {
    let above = "imports session, which is above it";
    bites("link.rs", "use crate::session::Session;", above);
    bites(
        "link/calls.rs",
        "use crate::{error::Error, session::Session};",
        above,
    );
    bites(
        "link.rs",
        "use crate::{error::{self, Error}, session};",
        above,
    );
    bites("link.rs", "pub(crate) use crate::session as s;", above);
    bites("link.rs", "fn f(s: &crate::session::Session) {}", above);
    bites("link.rs", "use super::session::Session;", above);
    bites(
        "link/calls.rs",
        "use super::super::session::Session;",
        above,
    );
    bites(
        "link.rs",
        "mod inner { use super::super::session::Session; }",
        above,
    );
    bites(
        "link.rs",
        "macro_rules! m { () => { $crate::session::f() } }",
        above,
    );
    bites("link.rs", "use crate :: /* so */ session::Session;", above);
    bites("link/tests.rs", "use crate::session::Session;", above);
    bites(
        "link.rs",
        "use crate::Client;",
        "imports client, which is above it",
    );
    bites(
        "link.rs",
        "use crate::Other;",
        "crate::Other is in no layer",
    );
    bites("link.rs", "use crate::*;", "crate::* is in no layer");
    bites("extra.rs", "", "module extra has no layer");
    bites("message/a/b.rs", "use crate::codec::Body;", "imports codec");
    bites("stats.rs", "use crate::message::Kind;", "imports message");
}

#[test]
fn imports_from_below_and_beside_pass() {
    passes(
        "link.rs",
        "use crate::{protocol::{self, Framing}, Limits, queue::SendQueue};",
    );
    passes(
        "link/calls.rs",
        "use super::super::queue::Bell; use super::session::Own;",
    );
    passes(
        "link.rs",
        "mod session; use self::session::Own; use link::crate_::session;",
    );
    passes(
        "link.rs",
        "// use crate::session;\n/* crate::session /* */ crate::hub */",
    );
    passes(
        "link.rs",
        "/// See [`crate::session`].\nconst A: &str = \"\\\"crate::session\";",
    );
    passes(
        "link.rs",
        "const A: &str = r#\"\" crate::session\"#; const B: char = '\"';",
    );
    passes(
        "link.rs",
        "fn f<'a>(a: &'a u8) {} const C: u8 = b'\\''; // crate::session",
    );
    passes(
        "lib.rs",
        "pub use crate::session::Session; pub mod session;",
    );
}

#[test]
fn a_socket_outside_its_rooms_is_found() {
    for (text, path) in [
        ("use std::net::TcpStream;", "std::net::TcpStream"),
        (
            "use std::net::{IpAddr, TcpListener as L};",
            "std::net::TcpListener",
        ),
        (
            "use std::{io, net::{SocketAddr, UdpSocket}};",
            "std::net::UdpSocket",
        ),
        ("fn f(s: std::os::unix::net::UnixStream) {}", "UnixStream"),
        ("use std::net::*;", "std::net::*"),
        ("use socket2::Socket;", "socket2::Socket"),
        ("fn f() { rustix::net::send() }", "rustix::net::send"),
        (
            "use rustix::{fd, net::SendFlags};",
            "rustix::net::SendFlags",
        ),
    ] {
        bites("link.rs", text, path);
        bites("session.rs", text, "socket");
        for room in ["connection/read.rs", "client.rs", "server.rs", "udp.rs"] {
            passes(room, text);
        }
    }
    passes("config.rs", "use std::net::{IpAddr, SocketAddr};");
    bites("link.rs", "use std::net as n;", "renamed");
}

#[test]
fn a_thread_outside_its_rooms_is_found() {
    for text in [
        "fn f() { std::thread::spawn(|| ()); }",
        "use std::thread::{self, Builder};",
        "fn f() { thread::scope(|_| ()); }",
    ] {
        bites("session.rs", text, "a thread outside");
        for room in ["connection.rs", "router/pool.rs", "cable.rs", "timer.rs"] {
            passes(room, text);
        }
        passes("queue/tests.rs", text);
        passes("queue/model.rs", text);
        passes("queue.rs", &format!("#[cfg(test)]\nmod tests {{ {text} }}"));
        passes(
            "queue.rs",
            &format!("#[cfg(all(test, loom))] #[a] mod m {{ {text} }}"),
        );
        bites(
            "queue.rs",
            &format!("#[cfg(not(test))] mod m {{ {text} }}"),
            "a thread",
        );
        bites(
            "queue.rs",
            &format!("#[cfg(test)] mod tests; mod m {{ {text} }}"),
            "a thread",
        );
        bites(
            "queue.rs",
            &format!("#[cfg(test)] fn a() {{}} mod m {{ {text} }}"),
            "a thread",
        );
    }
    passes(
        "session.rs",
        "fn f() { std::thread::yield_now(); std::thread::current(); }",
    );
    bites("session.rs", "use std::thread as t;", "renamed");
}

#[test]
fn a_clock_outside_its_rooms_is_found() {
    for text in [
        "fn f() { Instant::now(); }",
        "fn f() -> Instant { std::time::Instant::now() }",
        "fn f(then: Instant) -> Duration { then.elapsed() }",
        "const NOW: fn() -> Instant = Instant::now;",
    ] {
        bites("link.rs", text, "the clock");
        bites("protocol/native.rs", text, "the clock");
        for room in ["session.rs", "queue.rs", "connection.rs", "router.rs"] {
            passes(room, text);
        }
    }
    passes(
        "link.rs",
        "fn f(now: Instant, then: Instant) -> Duration { now - then }",
    );
    bites("link.rs", "use std::time::Instant as I;", "renamed");
}

#[test]
fn a_wall_clock_is_found() {
    for room in ["link.rs", "timer.rs", "connection.rs"] {
        bites(room, "use std::time::SystemTime;", "SystemTime");
        bites(
            room,
            "fn f() { std::time::SystemTime::now(); }",
            "SystemTime",
        );
        passes(room, "// SystemTime\nconst A: &str = \"SystemTime\";");
    }
}

#[test]
fn an_atomic_that_some_machines_lack_is_found() {
    for atomic in ["AtomicU64", "AtomicI64"] {
        let text = format!("use std::sync::atomic::{{AtomicUsize, {atomic}}};");
        bites("queue/room.rs", &text, atomic);
        bites(
            "stats.rs",
            &format!("fn f(a: &std::sync::atomic::{atomic}) {{}}"),
            atomic,
        );
        passes(
            "queue/sync.rs",
            &format!("#[cfg(loom)] mod m {{ {text} }} // {atomic}"),
        );
    }
    passes("stats.rs", "use crossbeam::atomic::AtomicCell;");
}

#[test]
fn unsafe_code_outside_queue_is_found() {
    let text = "fn f() { unsafe { g() } }";
    bites("link.rs", text, "unsafe");
    bites("link/tests.rs", text, "unsafe");
    bites(
        "link.rs",
        &format!("#[cfg(test)] mod tests {{ {text} }}"),
        "unsafe",
    );
    passes("queue/list.rs", text);
    passes(
        "link.rs",
        "#![allow(unsafe_code)] // unsafe\nconst A: &str = \"unsafe\";",
    );
}

#[test]
fn a_long_file_is_found() {
    passes("link.rs", &"\n".repeat(MOST_LINES));
    bites("link.rs", &"\n".repeat(MOST_LINES + 1), "401 lines");
}

#[test]
fn a_panic_in_waiting_is_found() {
    bites("link.rs", "fn f(a: Option<u8>) { a.unwrap(); }", "unwrap()");
    bites(
        "link.rs",
        "fn f(a: Option<u8>) { a\n  .expect(\"a\"); }",
        "expect()",
    );
    bites(
        "link.rs",
        "#[cfg(not(loom))] mod m { fn f() { a.unwrap() } }",
        "unwrap()",
    );
    passes(
        "link.rs",
        "fn f(a: Option<u8>) { a.unwrap_or(0); a.unwrap_or_default(); }",
    );
    passes("link.rs", "#[expect(dead_code)]\nfn f() {} // a.unwrap()");
    passes(
        "link.rs",
        "fn f() {}\n#[cfg(test)]\nmod tests { fn g() { a.unwrap(); } }",
    );
    passes(
        "queue/sync.rs",
        "#[cfg(loom)] mod m { fn f() { a.unwrap() } }",
    );
    passes("queue/tests.rs", "fn f() { a.unwrap() }");
}

#[test]
fn tokens_are_told_apart() {
    let words = |text: &str| -> Vec<String> {
        let tokens = source::tokens(text);
        tokens.iter().map(Token::to_string).collect()
    };
    assert_eq!(words("a::b /*c*/ // d\n e"), ["a", "::", "b", "e"]);
    assert_eq!(words("'a' 'b 'c : '\\'' d"), ["'b", "'c", ":", "d"]);
    assert_eq!(words("\"a\\\"b\" br##\"c\"#d\"## e r#type"), ["e", "type"]);
    assert_eq!(
        words("1.0_u8 x.y()"),
        ["1", ".", "0_u8", "x", ".", "y", "(", ")"]
    );
}
