//! Whatever is wrong with a file is found when it is read, and named.

use trunkline::{ErrorKind, Settings};

#[track_caller]
fn refused(text: &str) -> String {
    let error = Settings::parse(text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}: {error}");
    error.to_string()
}

#[test]
fn a_value_that_cannot_be_is_refused_with_its_key_and_line() {
    for (table, key, values) in [
        (
            "limits",
            "frame_bytes",
            &[
                "-1",
                "4294967296",
                "99999999999999999999",
                "1.5",
                "true",
                "[]",
                "{}",
                "''",
                "'64 KB'",
                "'KiB'",
                "'-1 KiB'",
                "'4 GiB'",
                "'99999999999 GiB'",
                "63",
                "'63 B'",
            ][..],
        ),
        (
            "limits",
            "sessions",
            &["-1", "0", "'64'", "4294967296", "1.0"],
        ),
        ("limits", "body_bytes", &["15"]),
        ("limits", "control_frames_per_second", &["0", "15"]),
        (
            "timeouts",
            "call",
            &[
                "10",
                "-1",
                "'10'",
                "'-1s'",
                "'10 parsecs'",
                "''",
                "'off'",
                "'Never'",
                "true",
            ],
        ),
        ("timeouts", "lowest_rate", &["-1", "'16 KiB/s'"]),
        ("heartbeat", "interval", &["0", "'299ms'", "'off'"]),
        ("heartbeat", "limit", &["30", "'0s'", "'299ms'"]),
        ("socket", "nodelay", &["1", "'yes'"]),
        (
            "socket",
            "keepalive",
            &["'0s'", "'999ms'", "'never'", "60", "false", "'10h'"],
        ),
        ("socket", "keepalive_interval", &["'1ms'"]),
        ("socket", "keepalive_probes", &["0", "128", "'off'"]),
        ("socket", "user_timeout", &["'never'", "'0s'"]),
        ("socket", "send_buffer", &["-1", "'2 GiB'"]),
        ("socket", "receive_buffer", &["2147483648"]),
        ("socket", "read_buffer_least", &["63", "'65 KiB'"]),
        ("socket", "read_buffer_most", &["63", "'2 GiB'"]),
        ("socket", "local_address", &["1", "'127.0.0.1'", "'here:1'"]),
        ("socket", "v6_only", &["'off'"]),
        ("socket", "backlog", &["0", "-1"]),
        (
            "socket",
            "unix_mode",
            &["'rw'", "'0999'", "'1000'", "0o660", "660", "-1"],
        ),
        ("limits", "frame_byts", &["1"]),
        ("socket", "user", &["{ timeout = 1 }"]),
    ] {
        for value in values {
            let named = format!("line 3: {table}.{key}");
            for text in [
                format!("# one\n[{table}]\n{key} = {value}\n"),
                format!("\n\n{table}.{key} = {value}"),
                format!("\n\n{table} = {{ {key} = {value} }}"),
                format!("preset = 'embedded'\n\n{table}.{key} = {value}"),
            ] {
                let error = refused(&text);
                assert!(error.starts_with(&named), "{text}\n{error}");
                assert!(error.len() > named.len() + 4, "{error}");
            }
        }
    }
}

#[test]
fn what_is_wrong_at_the_top_is_refused_with_its_key_and_line() {
    for (text, says) in [
        (
            "\npreset = 'large'",
            "line 2: preset: unknown variant `large`",
        ),
        ("\npreset = 'large'", "`server` or `embedded`"),
        ("preset = 1", "line 1: preset: "),
        ("preset = { server = 1 }", "line 1: preset"),
        ("limit = 1", "line 1: limit: unknown field `limit`"),
        (
            "[limits]\n[timeout]\ncall = '1s'",
            "line 2: timeout: unknown field",
        ),
        ("\nlimits = 1", "line 2: limits: invalid type"),
        ("[[limits]]\nsessions = 1", "line 1: limits: invalid type"),
    ] {
        let error = refused(text);
        assert!(error.contains(says), "{text}\n{error}");
    }
}

#[test]
fn a_text_that_is_not_toml_is_refused_with_the_line() {
    for (text, says) in [
        (
            "[limits]\nsessions = 1\nsessions = 2",
            "line 3: `sessions = 2`: duplicate key",
        ),
        ("[limits]\nsessions 1", "line 2: `sessions 1`: "),
        ("\n[limits]\nsessions =", "line 3: `sessions =`: "),
        ("[limits\nsessions = 1", "line 1: `[limits`: "),
        ("[socket]\nunix_mode = 0660", "line 2: `unix_mode = 0660`: "),
        ("[timeouts]\ncall = '1s", "line 2: `call = '1s`: "),
    ] {
        let error = refused(text);
        assert!(error.starts_with(says), "{text}\n{error}");
    }
}

#[test]
fn a_value_that_conflicts_with_a_default_is_named_without_a_line() {
    let error = refused("socket.read_buffer_most = 1024");
    assert!(
        error.starts_with("socket.read_buffer_least = 4096: "),
        "{error}"
    );
}

#[test]
fn an_error_of_a_file_names_its_path() {
    let path = std::env::temp_dir().join(format!("trunkline-{}-bad.toml", std::process::id()));
    let name = path.to_str().unwrap();
    let error = Settings::read(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().starts_with(name), "{error}");

    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = Settings::read(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    let error = read(b"\nlimits.sessions = 0");
    let says = "line 2: limits.sessions = 0 is below 1";
    assert_eq!(error, format!("{name}, {says}"));
    let error = read(b"# \xff");
    assert!(error.starts_with(name), "{error}");
}
