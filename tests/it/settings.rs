//! Settings from a file: what they set, how they are written, and what an error says.

mod errors;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use trunkline::{
    Backoff, Client, ErrorKind, Heartbeat, Hold, Limits, Server, Settings, SlowPeer, SocketOptions,
    Timeouts,
};

use crate::support::{LIMIT, millis, tcp_address, within};

const SAMPLE: &str = include_str!("../../src/config/settings.toml");

/// Settings of which none is the default.
fn unusual() -> Settings {
    let mut settings = Settings::default();
    settings.slow_peer = SlowPeer::Disconnect;
    settings.limits = Limits::embedded();
    settings.limits.frame_bytes = 1_000_001;
    settings.limits.metadata_bytes = 0;
    settings.timeouts.connect = Duration::MAX;
    settings.timeouts.handshake = Duration::ZERO;
    settings.timeouts.frame = Duration::new(86_461, 1_000_001);
    settings.timeouts.lowest_rate = u32::MAX;
    settings.timeouts.idle = millis(1_500);
    settings.heartbeat.interval = Duration::MAX;
    settings.heartbeat.limit = millis(300);
    settings.socket.nodelay = false;
    settings.socket.keepalive = None;
    settings.socket.keepalive_interval = Some(Duration::from_secs(5));
    settings.socket.keepalive_probes = Some(3);
    settings.socket.user_timeout = None;
    settings.socket.send_buffer = Some(100_000);
    settings.socket.receive_buffer = Some(1 << 20);
    settings.socket.local_address = Some("[::1]:0".parse().unwrap());
    settings.socket.reuse_port = true;
    settings.socket.v6_only = Some(true);
    settings.socket.unix_mode = Some(0o060);
    let mut backoff = Backoff::default();
    backoff.first = millis(5);
    backoff.attempts = 7;
    settings.backoff = Some(backoff);
    let mut hold = Hold::default();
    hold.bytes = 1001;
    hold.age = Duration::MAX;
    settings.hold = Some(hold);
    settings
}

#[test]
fn the_documented_sample_has_every_key_with_its_default() {
    assert_eq!(Settings::parse(SAMPLE).unwrap(), Settings::default());
    for table in ["limits", "timeouts", "heartbeat", "socket"] {
        let error = Settings::parse(&format!("[{table}]\nwrong = 1")).unwrap_err();
        let text = error.to_string();
        let (_, known) = text.split_once("expected ").unwrap();
        let known = known.trim_start_matches("one of ").replace(" or ", ", ");
        let (_, below) = SAMPLE.split_once(&format!("[{table}]\n")).unwrap();
        let shown = below.split("\n[").next().unwrap();
        for key in known.split(", ") {
            let key = key.trim_matches('`');
            let is_shown = |line: &str| line.trim_start_matches("# ").starts_with(key);
            assert!(shown.lines().any(is_shown), "{table}.{key}");
        }
    }
}

#[test]
fn what_the_sample_leaves_to_the_system_can_be_set_as_it_shows() {
    let set = SAMPLE.replace("# keep", "keep");
    let set = ["send_", "receive_", "local_", "v6_", "unix_"]
        .iter()
        .fold(set, |set, key| set.replace(&format!("# {key}"), key));
    let socket = Settings::parse(&set).unwrap().socket;
    let mut expected = SocketOptions::default();
    expected.keepalive_interval = Some(Duration::from_secs(75));
    expected.keepalive_probes = Some(9);
    expected.send_buffer = Some(256 << 10);
    expected.receive_buffer = Some(256 << 10);
    expected.local_address = Some("127.0.0.1:0".parse().unwrap());
    expected.v6_only = Some(true);
    expected.unix_mode = Some(0o660);
    assert_eq!(socket, expected);
}

#[test]
fn the_tables_that_the_sample_leaves_to_the_builder_have_every_key_with_its_default() {
    let (_, tables) = SAMPLE.split_once("# [backoff]").unwrap();
    let tables = format!("# [backoff]{tables}");
    let is_setting = |line: &&str| line.starts_with("# [") || line.contains(" = ");
    let lines = tables.lines().filter(is_setting);
    let set: Vec<_> = lines.map(|line| line.trim_start_matches("# ")).collect();
    let settings = Settings::parse(&set.join("\n")).unwrap();
    assert_eq!(settings.backoff, Some(Backoff::default()));
    assert_eq!(settings.hold, Some(Hold::default()));
    let written = toml::to_string(&settings).unwrap();
    for table in ["backoff", "hold"] {
        let (_, below) = written.split_once(&format!("[{table}]\n")).unwrap();
        for line in below.lines().take_while(|line| !line.is_empty()) {
            let key = line.split(' ').next().unwrap();
            assert!(set.iter().any(|set| set.starts_with(key)), "{table}.{key}");
        }
    }
}

#[test]
fn a_file_sets_how_a_client_reconnects_and_not_whether() {
    within(LIMIT, || {
        let settings = Settings::parse("[backoff]\nattempts = 1\n[hold]\nmessages = 1").unwrap();
        let server = Server::builder().bind("127.0.0.1:0").unwrap();
        let address = tcp_address(&server);
        let plain = Client::builder().settings(settings.clone());
        let plain = plain.connect(address).unwrap();
        assert!(plain.reconnect_now().is_err());
        server.shutdown(LIMIT).unwrap();
        let client = Client::builder()
            .reconnect(Backoff::default())
            .hold(Hold::default())
            .settings(settings)
            .connect_later(address)
            .unwrap();
        client.push(1, "").unwrap();
        let full = client.push(1, "").unwrap_err();
        assert!(
            full.is_closed() || full.to_string().contains("hold.messages 1"),
            "{full}"
        );
        // One attempt after the first, then it stops.
        assert!(client.wait_closed(LIMIT).is_some());
        let error = Settings::parse("[backoff]\nfactor = 0").unwrap_err();
        assert!(
            error.to_string().contains("line 2: backoff.factor"),
            "{error}"
        );
        let error = Settings::parse("[hold]\nmessages = 0").unwrap_err();
        assert!(
            error.to_string().contains("line 2: hold.messages"),
            "{error}"
        );
    });
}

#[test]
fn what_is_left_out_keeps_its_default() {
    assert_eq!(Settings::parse("").unwrap(), Settings::default());
    let settings = Settings::parse("timeouts.call = '2s'\n[limits]\nsessions = 7").unwrap();
    let mut expected = Settings::default();
    expected.timeouts.call = Duration::from_secs(2);
    expected.limits.sessions = 7;
    assert_eq!(settings, expected);
}

#[test]
fn the_policy_for_slow_peers_has_three_names_and_reaches_the_sessions() {
    for (name, policy) in [
        ("block", SlowPeer::Block),
        ("drop-newest", SlowPeer::DropNewest),
        ("disconnect", SlowPeer::Disconnect),
    ] {
        let settings = Settings::parse(&format!("slow_peer = '{name}'")).unwrap();
        assert_eq!(settings.slow_peer, policy);
        within(LIMIT, move || {
            let server = Server::builder().bind("127.0.0.1:0").unwrap();
            let client = Client::builder().settings(settings);
            let client = client.connect(server.local_address()).unwrap();
            assert_eq!(client.session().slow_peer(), policy);
        });
    }
    let error = Settings::parse("\nslow_peer = 'drop'")
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("line 2: slow_peer: "), "{error}");
    assert!(error.contains("drop-newest"), "{error}");
}

#[test]
fn the_preset_chooses_the_defaults_of_the_limits() {
    let limits = |text: &str| Settings::parse(text).unwrap().limits;
    assert_eq!(limits("preset = 'server'"), Limits::server());
    assert_eq!(limits("preset = 'embedded'\n[limits]"), Limits::embedded());
    assert_eq!(limits("preset = 'embedded'"), Limits::embedded());
    let mut expected = Limits::embedded();
    expected.sessions = 3;
    let set = "limits = { sessions = 3 }\npreset = 'embedded'";
    assert_eq!(limits(set), expected);
}

#[test]
fn sizes_times_and_modes_have_several_spellings() {
    let frame = |text: &str| {
        let settings = Settings::parse(&format!("limits.frame_bytes = {text}"));
        settings.unwrap().limits.frame_bytes
    };
    for text in ["65536", "0x1_0000", "'65536 B'", "'64 KiB'", "'64KiB'"] {
        assert_eq!(frame(text), 65_536, "{text}");
    }
    // The caps on memory must have room for it.
    let caps = "limits = { session_bytes = '2 GiB', total_bytes = '8 GiB', frame_bytes = '1 GiB' }";
    let limits = Settings::parse(caps).unwrap().limits;
    assert_eq!(
        (limits.frame_bytes, limits.session_bytes),
        (1 << 30, 2 << 30)
    );
    assert_eq!(limits.total_bytes, 8 << 30);
    let call = |text: &str| {
        let settings = Settings::parse(&format!("timeouts.call = {text}"));
        settings.unwrap().timeouts.call
    };
    assert_eq!(call("'250ms'"), millis(250));
    assert_eq!(call("'0s'"), Duration::ZERO);
    assert_eq!(call("'5min'"), Duration::from_secs(300));
    assert_eq!(call("'1m 30s'"), Duration::from_secs(90));
    assert_eq!(call("'never'"), Duration::MAX);
    for text in ["'0660'", "'660'"] {
        let settings = Settings::parse(&format!("socket.unix_mode = {text}"));
        assert_eq!(settings.unwrap().socket.unix_mode, Some(0o660), "{text}");
    }
    let settings = Settings::parse("socket = { keepalive = 'off', user_timeout = 'off' }");
    let socket = settings.unwrap().socket;
    assert_eq!((socket.keepalive, socket.user_timeout), (None, None));
}

#[test]
fn written_settings_read_back_as_they_were() {
    for settings in [Settings::default(), unusual()] {
        let text = toml::to_string(&settings).unwrap();
        assert_eq!(Settings::parse(&text).unwrap(), settings, "{text}");
        assert_eq!(toml::from_str::<Settings>(&text).unwrap(), settings);
    }
    let text = toml::to_string(&unusual()).unwrap();
    for line in [
        "frame_bytes = \"1000001 B\"",
        "body_bytes = \"1 MiB\"",
        "connect = \"never\"",
        "idle = \"1s 500ms\"",
        "keepalive = \"off\"",
        "local_address = \"[::1]:0\"",
        "unix_mode = \"0060\"",
    ] {
        assert!(
            text.lines().any(|written| written == line),
            "{line}\n{text}"
        );
    }
}

#[test]
fn the_tables_fit_into_structures_of_ones_own() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Own {
        name: String,
        limits: Limits,
        timeouts: Timeouts,
        heartbeat: Heartbeat,
        socket: SocketOptions,
    }
    let own = Own {
        name: "a program".to_owned(),
        limits: unusual().limits,
        timeouts: unusual().timeouts,
        heartbeat: unusual().heartbeat,
        socket: unusual().socket,
    };
    let text = toml::to_string(&own).unwrap();
    assert_eq!(toml::from_str::<Own>(&text).unwrap(), own, "{text}");
    let text = "name = ''\nlimits.frame_byts = 1\n[timeouts]\n[heartbeat]\n[socket]";
    let error = toml::from_str::<Own>(text).unwrap_err();
    assert!(error.message().contains("frame_byts"), "{error}");
}

#[test]
fn a_server_and_a_client_keep_to_the_settings_of_their_file() {
    within(LIMIT, || {
        let path = std::env::temp_dir().join(format!("trunkline-{}.toml", std::process::id()));
        std::fs::write(
            &path,
            "[limits]\nbody_bytes = '1 KiB'\n[timeouts]\ncall = '50ms'\n[socket]\nnodelay = false",
        )
        .unwrap();
        let settings = Settings::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let server = Server::builder()
            .settings(settings.clone())
            .on_call(1, |_, body| body.to_vec())
            .on_call(2, |cx, _| {
                let (responder, deferred) = cx.defer();
                std::mem::forget(responder);
                deferred
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let plain = Client::connect(tcp_address(&server)).unwrap();
        plain.call(1, [0; 1_024]).unwrap();
        let error = plain.call(1, [0; 1_025]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("limits.body_bytes = 1024"));

        let client = Client::builder()
            .settings(settings)
            .connect(tcp_address(&server))
            .unwrap();
        let error = client.call(2, "").unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        assert!(error.to_string().contains("timeouts.call"), "{error}");
    });
}
