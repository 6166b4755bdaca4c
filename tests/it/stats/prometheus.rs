//! The text for Prometheus, read back by a small parser of the format.

use std::collections::{BTreeMap, BTreeSet};

use trunkline::{Client, Server};

use crate::support::{LIMIT, within};

/// All samples that share a TYPE line.
#[derive(Debug, Default)]
struct Family {
    help: String,
    kind: String,
    /// By name and labels.
    samples: BTreeMap<String, f64>,
}

fn is_name(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// Whether a sample may stand below the TYPE line of a family.
fn belongs(sample: &str, family: &str, kind: &str) -> bool {
    let Some(rest) = sample.strip_prefix(family) else {
        return false;
    };
    match kind {
        "summary" => {
            let quantile = rest.strip_prefix("{quantile=\"");
            let quantile = quantile.and_then(|rest| rest.strip_suffix("\"}"));
            ["_sum", "_count"].contains(&rest)
                || quantile.is_some_and(|quantile| quantile.parse::<f64>().is_ok())
        }
        "counter" => rest.is_empty() && family.ends_with("_total"),
        "gauge" => rest.is_empty() && !family.ends_with("_total"),
        _ => false,
    }
}

/// The families by name, if the text is in the format.
fn parse(text: &str) -> Result<BTreeMap<String, Family>, String> {
    if !text.ends_with('\n') {
        return Err("the last line does not end".to_owned());
    }
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        let wrong = || format!("not in the format: {line:?}");
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or_else(wrong)?;
            if !is_name(name) || families.contains_key(name) || help.contains('\\') {
                return Err(wrong());
            }
            current = name.to_owned();
            families.entry(current.clone()).or_default().help = help.to_owned();
            continue;
        }
        let family = families.get_mut(&current).ok_or_else(wrong)?;
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or_else(wrong)?;
            if name != current || !family.kind.is_empty() {
                return Err(wrong());
            }
            family.kind = kind.to_owned();
            continue;
        }
        let (sample, value) = line.split_once(' ').ok_or_else(wrong)?;
        let value: f64 = value.parse().map_err(|_| wrong())?;
        if !belongs(sample, &current, &family.kind)
            || family.samples.insert(sample.to_owned(), value).is_some()
        {
            return Err(wrong());
        }
    }
    Ok(families)
}

fn server() -> Server {
    Server::builder()
        .on_call("/echo", |_, body| body.to_vec())
        .on_call("/metrics", |cx, _| {
            cx.hub().unwrap().stats().prometheus("trunkline")
        })
        .bind("127.0.0.1:0")
        .unwrap()
}

#[test]
fn the_metrics_of_a_server_are_in_the_text_format() {
    within(LIMIT, || {
        let server = server();
        let client = Client::connect(server.local_address()).unwrap();
        for _ in 0..5 {
            client.call("/echo", b"abc").unwrap();
        }
        let text: String = client.call_as("/metrics", ()).unwrap();
        let families = parse(&text).unwrap();
        for (name, family) in &families {
            assert!(name.starts_with("trunkline_"));
            assert!(family.help.len() > 10, "{name}: {}", family.help);
            assert!(!family.samples.is_empty(), "{name}");
        }
        let value = |family: &str, sample: &str| {
            let family = &families[&format!("trunkline_{family}")];
            family.samples[&format!("trunkline_{sample}")]
        };
        for (name, expected) in [
            ("sessions", 1.0),
            ("sessions_peak", 1.0),
            ("queue_fill", 0.0),
            ("calls_received_total", 6.0),
            ("calls_answered_total", 5.0),
            ("connections_accepted_total", 1.0),
        ] {
            assert_eq!(value(name, name), expected, "{name}");
        }
        let time = "handler_time_seconds";
        assert_eq!(value(time, &format!("{time}_count")), 5.0);
        let sum = value(time, &format!("{time}_sum"));
        let p99 = value(time, &format!("{time}{{quantile=\"0.99\"}}"));
        let peak = value("handler_time_peak_seconds", "handler_time_peak_seconds");
        assert!(p99 > 0.0 && p99 <= peak && peak <= sum && sum < 10.0);
    });
}

#[test]
fn every_figure_is_in_the_text() {
    within(LIMIT, || {
        let server = server();
        let stats = server.stats();
        let families = parse(&stats.prometheus("")).unwrap();
        let printed = stats.to_string();
        let printed: BTreeSet<&str> = printed
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert!(printed.len() > 30);
        for figure in printed {
            let names = ["", "_total", "_seconds"].map(|end| format!("{figure}{end}"));
            assert!(names.iter().any(|name| families.contains_key(name)));
        }
        let count = &families["handler_time_seconds"].samples;
        assert_eq!(count.len(), 2, "no quantile of no samples: {count:?}");
        parse(&stats.prometheus("2 bad-prefixes\n")).unwrap();
    });
}

#[test]
fn text_that_is_not_in_the_format_is_found() {
    let good = "# HELP a_total Some.\n# TYPE a_total counter\na_total 1\n";
    parse(good).unwrap();
    for (from, to) in [
        ("a_total 1\n", "a_total 1"),
        ("a_total 1", "a_total one"),
        ("a_total 1", "b_total 1"),
        ("a_total 1", "a_total 1\na_total 2"),
        ("# TYPE a_total counter\n", ""),
        ("# HELP a_total Some.\n", ""),
        ("counter", "gauge"),
        ("a_total", "a"),
        ("a_total", "2_total"),
    ] {
        parse(&good.replace(from, to)).unwrap_err();
    }
}
