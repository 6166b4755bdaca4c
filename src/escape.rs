//! Text that a peer wrote, fit for a log: on one line, without terminal escapes.

use std::fmt;

/// What stands in place of what was left out.
pub(crate) const MORE: char = '…';

/// Signs that are escaped within quotes only.
const QUOTING: [char; 3] = ['"', '\'', '\\'];

/// Displays text with its control characters and other invisible signs escaped.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(QUOTING) {
            let text = part.strip_suffix(QUOTING).unwrap_or(part);
            write!(f, "{}", text.escape_debug())?;
            f.write_str(part.get(text.len()..).unwrap_or_default())?;
        }
        Ok(())
    }
}

/// The beginning of a text: at most `most` bytes, whole characters.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let cut = (0..=most).rev().find_map(|end| text.get(..end));
    cut.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_could_disturb_a_log_is_escaped() {
        let plain = r#"/math/add "it's" C:\new größer 加"#;
        assert_eq!(Escaped(plain).to_string(), plain);
        let hostile = "a\r\nERROR \x1b[2J\u{9b}\u{7f}\0\u{202e}\u{2028}";
        assert_eq!(
            Escaped(hostile).to_string(),
            r"a\r\nERROR \u{1b}[2J\u{9b}\u{7f}\0\u{202e}\u{2028}"
        );
    }

    #[test]
    fn a_beginning_ends_with_a_whole_character() {
        assert_eq!(beginning("größer", 3), "gr");
        assert_eq!(beginning("größer", 4), "grö");
        assert_eq!(beginning("größer", 100), "größer");
        assert_eq!(beginning("ö", 0), "");
    }
}
