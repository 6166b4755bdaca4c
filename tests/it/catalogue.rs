//! `catalogue.md` names every way in which such software failed, and what keeps it away here:
//! no row is missing, and every test that it names exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{STARTS_A_PROCESS, left_out_under_emulation};

const TEXT: &str = include_str!("catalogue.md");

/// The keys of all rows, without their F.
#[rustfmt::skip]
const ROWS: [u16; 115] = [
    1, 2, 4, 5, 7, 8, 9, 11, 12, 13, 15, 17, 19, 20, 22, 24, 25, 28, 29, 30, 31, 34, 35,
    37, 38, 39, 41, 42, 43, 44, 45, 47, 49, 52, 53, 54, 55, 57, 58, 59, 61, 63, 65, 66,
    67, 68, 69, 71, 72, 74, 76, 78, 80, 81, 82, 84, 86, 87, 88, 89, 90, 92, 93, 94, 95,
    96, 98, 99, 100, 101, 102, 105, 106, 108, 110, 111, 113, 115, 116, 118, 120, 121,
    122, 124, 125, 126, 129, 131, 132, 133, 134, 136, 137, 138, 139, 140, 142, 144, 145,
    147, 148, 150, 151, 153, 155, 156, 158, 160, 161, 162, 165, 167, 169, 170, 171,
];
const ISSUES: [&str; 8] = ["B", "C", "D", "E", "F", "G", "H", "I"];
/// The first name of a unit test's path.
const UNIT: &str = "crate::";

struct Row<'t> {
    key: &'t str,
    behaviour: &'t str,
    tests: Vec<&'t str>,
    /// Issues, or a reason why the fault cannot occur.
    rest: &'t str,
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let lines = text.lines().filter(|line| line.starts_with("| F"));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, key, behaviour, tests, rest, _] = cells[..] else {
                panic!("not four cells: {line}");
            };
            Row {
                key,
                behaviour,
                tests: tests.split('`').skip(1).step_by(2).collect(),
                rest,
            }
        })
        .collect()
}

/// Whether it begins with issues: one letter, or some with commas between them.
fn names_issues(rest: &str) -> bool {
    let (issues, _) = rest.split_once(':').unwrap_or((rest, ""));
    issues.split(", ").all(|issue| ISSUES.contains(&issue))
}

/// Whether a module of `src` has this test.
fn is_unit_test(path: &str) -> bool {
    let Some((module, test)) = path.rsplit_once("::") else {
        return false;
    };
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let module = module.replace("::", "/");
    let within = module.strip_suffix("/tests").unwrap_or(&module);
    let head = format!("fn {test}(");
    [within, &module].iter().any(|file| {
        let text = fs::read_to_string(src.join(format!("{file}.rs"))).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines
            .windows(2)
            .any(|pair| pair[0] == "#[test]" && pair[1].starts_with(&head))
    })
}

/// What is wrong with a catalogue, a sentence each.
fn faults(text: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let rows = rows(text);
    for number in ROWS {
        let key = format!("F{number:03}");
        match rows.iter().filter(|row| row.key == key).count() {
            1 => {}
            count => found.push(format!("{key} has {count} rows")),
        }
    }
    for row in rows {
        let key = row.key;
        let number = key.strip_prefix('F').and_then(|number| number.parse().ok());
        if !number.is_some_and(|number| ROWS.contains(&number)) {
            found.push(format!("{key} is no row that this test knows"));
        }
        if row.behaviour.split(' ').count() < 2 {
            found.push(format!("{key} does not say what goes wrong"));
        }
        for test in &row.tests {
            let exists = match test.strip_prefix(UNIT) {
                Some(path) => is_unit_test(path),
                None => tests.contains(*test),
            };
            if !exists {
                found.push(format!("{key}: there is no test {test}"));
            }
        }
        let is_explained = match row.rest {
            "" => !row.tests.is_empty(),
            rest => names_issues(rest) || rest.split(' ').count() > 4,
        };
        if !is_explained {
            found.push(format!("{key} has no test, no issue and no reason"));
        }
    }
    found
}

/// The tests of this binary.
fn tests() -> BTreeSet<String> {
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).arg("--list").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = String::from_utf8(output.stdout).unwrap();
    let tests = output
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    tests.map(str::to_owned).collect()
}

#[test]
fn every_row_has_a_test_an_issue_or_a_reason() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    let found = faults(TEXT, &tests());
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_fault_of_the_catalogue_is_found() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    let tests = tests();
    let with = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        faults(&TEXT.replacen(from, to, 1), &tests).join("\n")
    };
    let found = with("| F004 |", "| F005 |");
    assert!(found.contains("F004 has 0 rows") && found.contains("F005 has 2 rows"));
    assert_eq!(with("| F171 |", "| gone |"), "F171 has 0 rows");
    let found = with("| F171 |", "| F172 |");
    assert!(found.contains("F171 has 0 rows") && found.contains("F172 is no row"));
    let found = with("calls::empty_calls_and", "calls::gone");
    assert!(found.starts_with("F004: there is no test"), "{found}");
    let found = with(
        "crate::stats::rates::tests::rates_are",
        "crate::stats::rates::tests::gone",
    );
    assert!(found.starts_with("F086: there is no test"), "{found}");
    for rest in ["", "A", "J", "B, A", "later"] {
        let found = with("|  | G |", &format!("|  | {rest} |"));
        assert!(found.ends_with("has no test, no issue and no reason"));
    }
    for rest in [
        "B",
        "C, H",
        "C: the rest",
        "It cannot be, as none is there.",
    ] {
        assert_eq!(with("|  | G |", &format!("|  | {rest} |")), "");
    }
}
