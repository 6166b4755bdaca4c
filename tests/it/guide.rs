//! The pages of the guide say everything, and say it as it is.

mod values;

use std::fs;
use std::path::Path;

use trunkline::{Backoff, Heartbeat, Hold, Limits, Server, SocketOptions, Timeouts};

use self::values::{fields, shown};

fn page(name: &str) -> String {
    source(&format!("guide/{name}.rs"))
}

fn source(path: &str) -> String {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    fs::read_to_string(src.join(path)).unwrap()
}

/// The cells of the row of a table that begins with this name.
fn row<'p>(page: &'p str, name: &str) -> Option<Vec<&'p str>> {
    let head = format!("| `{name}` |");
    let line = page.lines().find(|line| line.contains(&head))?;
    let (_, cells) = line.split_once('|')?;
    Some(cells.split('|').map(str::trim).collect())
}

#[test]
fn the_page_of_limits_has_every_limit_with_its_presets() {
    let page = page("limits");
    let presets = fields(&Limits::default()).into_iter();
    for ((name, default), (_, embedded)) in presets.zip(fields(&Limits::embedded())) {
        let row = row(&page, &name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(row[1], shown(&name, &default), "{name}");
        assert_eq!(row[2], shown(&name, &embedded), "{name}, embedded");
    }
}

#[test]
fn the_page_of_limits_has_every_time_limit_and_option_with_its_default() {
    let page = page("limits");
    let timeouts = fields(&Timeouts::default());
    for (name, default) in timeouts
        .into_iter()
        .chain(fields(&Heartbeat::default()))
        .chain(fields(&SocketOptions::default()))
        .chain(fields(&Backoff::default()))
        .chain(fields(&Hold::default()))
    {
        let row = row(&page, &name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(row[1], shown(&name, &default), "{name}");
    }
}

#[test]
fn the_readme_has_the_limits_as_they_are() {
    let readme = include_str!("../../README.md");
    let (limits, embedded) = (fields(&Limits::default()), fields(&Limits::embedded()));
    let presets = limits.into_iter().zip(embedded);
    let mut found = 0;
    for ((name, default), (_, embedded)) in presets {
        if let Some(row) = row(readme, &name) {
            assert_eq!(row[1], shown(&name, &default), "{name}");
            assert_eq!(row[2], shown(&name, &embedded), "{name}, embedded");
            found += 1;
        }
    }
    assert!(found > 0, "the table of the limits is not found");
}

#[test]
fn the_page_of_errors_has_every_kind() {
    let page = page("errors");
    let errors = source("error.rs");
    let (_, kinds) = errors.split_once("pub enum ErrorKind {").unwrap();
    let (kinds, _) = kinds.split_once("\n}").unwrap();
    let kinds = kinds
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','));
    let kinds: Vec<&str> = kinds.filter(|line| !line.starts_with("///")).collect();
    assert!(kinds.contains(&"Io"), "{kinds:?}");
    for kind in kinds {
        assert!(page.contains(&format!("| [`{kind}`]")), "{kind} is missing");
    }
}

#[test]
fn the_page_of_statistics_has_every_figure() {
    let page = page("statistics");
    let server = Server::builder().start().unwrap();
    let text = server.stats().prometheus("");
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut found = 0;
    for name in names.filter_map(|line| line.split(' ').next()) {
        let name = name.strip_suffix("_total").unwrap_or(name);
        // The page has the handler time under the name that it has here.
        let name = match name.starts_with("handler_time") {
            true => "handler_time",
            false => name,
        };
        let quoted = format!("`{name}`");
        let mut rows = page.lines().filter(|line| line.starts_with("//! | "));
        assert!(rows.any(|row| row.contains(&quoted)), "{name} is missing");
        found += 1;
    }
    assert!(found > 30, "{text}");
}

#[test]
fn the_page_of_logging_has_the_table_of_the_records() {
    let page = page("logging");
    let records = source("records.rs");
    let places = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.starts_with("//! | `"));
        rows.map(|row| row.split('|').take(3).collect()).collect()
    };
    assert!(!places(&records).is_empty());
    assert_eq!(places(&page), places(&records));
}
