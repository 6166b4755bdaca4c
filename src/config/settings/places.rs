//! Where the keys of a file stand, so that an error names the key and its line.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::config::Mistake;
use crate::error::{Error, ErrorKind};

/// The keys of a file, those of a table before the table's own.
pub(super) struct Places<'t> {
    text: &'t str,
    keys: Vec<Place>,
}

struct Place {
    /// With its table: `limits.frame_bytes`.
    key: String,
    name: Range<usize>,
    value: Range<usize>,
}

impl<'t> Places<'t> {
    pub(super) fn new(text: &'t str, document: &DeTable<'_>) -> Self {
        let mut keys = Vec::new();
        collect(document, "", &mut keys);
        Places { text, keys }
    }

    /// The error of a value that cannot be what its key wants, or of an unknown key.
    pub(super) fn refused(&self, error: &toml::de::Error) -> Error {
        let what = error.message();
        let Some(span) = error.span() else {
            return invalid(what.to_owned());
        };
        let place = self
            .keys
            .iter()
            .find(|place| place.name.contains(&span.start) || place.value.contains(&span.start));
        match place {
            Some(Place { key, .. }) => self.at(span.start, &format!("{key}: {what}")),
            None => self.at(span.start, what),
        }
    }

    /// The error of a value with which nothing could work.
    pub(super) fn mistaken(&self, mistake: Mistake) -> Error {
        match self.keys.iter().find(|place| place.key == mistake.key) {
            Some(place) => self.at(place.name.start, &mistake.to_string()),
            None => mistake.into(),
        }
    }

    fn at(&self, offset: usize, what: &str) -> Error {
        at_line(self.text, offset, what)
    }
}

/// The error of a text that is not TOML. It shows the line: what the keys are is not known.
pub(super) fn malformed(text: &str, error: &toml::de::Error) -> Error {
    let what = error.message();
    let Some(span) = error.span() else {
        return invalid(what.to_owned());
    };
    let line = text.lines().nth(line_breaks(text, span.start));
    let line = line.unwrap_or_default().trim();
    at_line(text, span.start, &format!("`{line}`: {what}"))
}

fn collect(table: &DeTable<'_>, above: &str, keys: &mut Vec<Place>) {
    for (name, value) in table {
        let key = format!("{above}{}", name.get_ref());
        if let DeValue::Table(table) = value.get_ref() {
            collect(table, &format!("{key}."), keys);
        }
        keys.push(Place {
            key,
            name: name.span(),
            value: value.span(),
        });
    }
}

fn at_line(text: &str, offset: usize, what: &str) -> Error {
    invalid(format!("line {}: {what}", line_breaks(text, offset) + 1))
}

fn line_breaks(text: &str, offset: usize) -> usize {
    let before = text.bytes().take(offset);
    before.filter(|byte| *byte == b'\n').count()
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::InvalidInput, what)
}
