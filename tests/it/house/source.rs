//! Rust sources as tokens, just well enough for the house rules.

use std::fmt;

/// A word, a lifetime, `::` or a single sign; texts and comments are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Colons,
    Sign(char),
}

impl Token {
    fn is(&self, text: &str) -> bool {
        match self {
            Token::Word(word) => word == text,
            Token::Colons => text == "::",
            Token::Sign(sign) => text.chars().eq([*sign]),
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => f.write_str(word),
            Token::Colons => f.write_str("::"),
            Token::Sign(sign) => write!(f, "{sign}"),
        }
    }
}

pub(super) fn tokens(text: &str) -> Vec<Token> {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = text.get(at) {
        let next = text.get(at + 1).copied().unwrap_or(' ');
        if c == '/' && next == '/' {
            at += text[at..].iter().take_while(|c| **c != '\n').count();
        } else if c == '/' && next == '*' {
            at = after_comment(&text, at);
        } else if let Some(end) = after_text(&text, at) {
            at = end;
        } else if c == '\'' {
            // A character, or else a lifetime.
            let end = match next {
                '\\' => (at + 3..text.len()).find(|i| text[*i] == '\''),
                _ => (text.get(at + 2) == Some(&'\'')).then_some(at + 2),
            };
            if let Some(end) = end {
                at = end + 1;
            } else {
                let name: String = word(&text, at + 1);
                at += 1 + name.chars().count();
                tokens.push(Token::Word(format!("'{name}")));
            }
        } else if c == 'r' && next == '#' {
            at += 2;
        } else if is_word(c) {
            let word = word(&text, at);
            at += word.chars().count();
            // The b of b'x' belongs to the character.
            if !(word == "b" && text.get(at) == Some(&'\'')) {
                tokens.push(Token::Word(word));
            }
        } else if c == ':' && next == ':' {
            tokens.push(Token::Colons);
            at += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push(Token::Sign(c));
            }
            at += 1;
        }
    }
    tokens
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn word(text: &[char], at: usize) -> String {
    text[at..].iter().take_while(|c| is_word(**c)).collect()
}

fn after_comment(text: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    loop {
        match text.get(at..at + 2) {
            Some(['/', '*']) => depth += 1,
            Some(['*', '/']) => depth -= 1,
            Some(_) => {
                at += 1;
                continue;
            }
            None => return text.len(),
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
}

/// The end of the string literal that begins here, raw or not, if one does.
fn after_text(text: &[char], start: usize) -> Option<usize> {
    let mut at = start;
    if matches!(text[at], 'b' | 'c') {
        at += 1;
    }
    let raw = text.get(at) == Some(&'r');
    if raw {
        at += 1;
    }
    let hashes = match raw {
        true => text[at..].iter().take_while(|c| **c == '#').count(),
        false => 0,
    };
    at += hashes;
    if text.get(at) != Some(&'"') {
        return None;
    }
    at += 1;
    while at < text.len() {
        match text[at] {
            '\\' if !raw => at += 1,
            '"' => {
                let end = at + 1 + hashes;
                if text
                    .get(at + 1..end)
                    .is_some_and(|it| it.iter().all(|c| *c == '#'))
                {
                    return Some(end);
                }
            }
            _ => {}
        }
        at += 1;
    }
    Some(text.len())
}

/// A path as written, braces of `use` resolved.
#[derive(Debug)]
pub(super) struct WrittenPath {
    pub(super) names: Vec<String>,
    /// `as` follows.
    pub(super) renamed: bool,
    /// What it is renamed to, or its last name.
    known_as: String,
    /// Modules around it in its file, inline ones.
    inline_depth: usize,
}

/// One file.
pub(super) struct Source {
    /// The top module that it belongs to; `lib` for the crate's root.
    pub(super) module: String,
    /// How many modules are around its items.
    depth: usize,
    tests_only: bool,
    tokens: Vec<Token>,
}

impl Source {
    /// `path` is below `src/`.
    pub(super) fn new(path: &str, text: &str) -> Self {
        let names: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let is_root = names == ["lib"];
        Source {
            module: names[0].to_owned(),
            depth: if is_root { 0 } else { names.len() },
            tests_only: names[1..]
                .iter()
                .any(|name| matches!(*name, "tests" | "model")),
            tokens: tokens(text),
        }
    }

    /// The same without what only tests and models compile.
    pub(super) fn without_tests(&self) -> Self {
        let mut kept = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() && !self.tests_only {
            let after = self.after_attribute(at);
            if after.is_some_and(|after| for_tests(&self.tokens[at..after])) {
                if self.tokens[at + 1].is("!") {
                    kept.clear();
                    break;
                }
                at = self.after_item(at);
            } else {
                kept.push(self.tokens[at].clone());
                at += 1;
            }
        }
        Source {
            module: self.module.clone(),
            depth: self.depth,
            tests_only: self.tests_only,
            tokens: kept,
        }
    }

    pub(super) fn has_word(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| token.is(word))
    }

    /// Whether the method is called.
    pub(super) fn has_call(&self, method: &str) -> bool {
        self.tokens
            .windows(3)
            .any(|it| it[0].is(".") && it[1].is(method) && it[2].is("("))
    }

    /// The first names of all paths that begin at the root of the crate.
    pub(super) fn crate_imports(&self) -> Vec<String> {
        let mut found = Vec::new();
        for path in self.paths() {
            let supers = path
                .names
                .iter()
                .take_while(|name| *name == "super")
                .count();
            let from_root = match path.names[0].as_str() {
                "crate" => 1,
                "super" if supers == self.depth + path.inline_depth => supers,
                _ => continue,
            };
            found.extend(path.names.get(from_root).cloned());
        }
        found
    }

    /// What a crate's root offers under a short name, and the module it comes from.
    pub(super) fn re_exports(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for path in self.paths() {
            let names: Vec<&String> = path.names.iter().filter(|name| *name != "crate").collect();
            if names.len() > 1 {
                found.push((path.known_as.clone(), names[0].clone()));
            }
        }
        found
    }

    /// Every path of two names or more, and every single name that is imported.
    pub(super) fn paths(&self) -> Vec<WrittenPath> {
        let mut found = Vec::new();
        let mut braces: Vec<bool> = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let inline_depth = braces.iter().filter(|is_module| **is_module).count();
            match &self.tokens[at] {
                Token::Sign('{') => {
                    let is_module = at >= 2 && self.tokens[at - 2].is("mod");
                    braces.push(is_module);
                }
                Token::Sign('}') => {
                    braces.pop();
                }
                Token::Word(word) if word == "use" => {
                    let before = found.len();
                    at = self.tree(at + 1, &[], &mut found);
                    for path in &mut found[before..] {
                        path.inline_depth = inline_depth;
                    }
                    continue;
                }
                Token::Word(_) => {
                    let mut names = Vec::new();
                    at = self.names(at, &mut names);
                    if let Some(known_as) = names.last().cloned() {
                        found.push(WrittenPath {
                            names,
                            renamed: false,
                            known_as,
                            inline_depth,
                        });
                    }
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// Reads `a::b::c`; the index after it.
    fn names(&self, mut at: usize, names: &mut Vec<String>) -> usize {
        while let Some(Token::Word(word)) = self.tokens.get(at) {
            names.push(word.clone());
            at += 1;
            if !self.tokens.get(at).is_some_and(|it| it.is("::")) {
                break;
            }
            at += 1;
        }
        at
    }

    /// Reads one branch of a `use`; the index after it.
    fn tree(&self, at: usize, before: &[String], found: &mut Vec<WrittenPath>) -> usize {
        let mut names = before.to_vec();
        let mut at = match self.tokens.get(at) {
            Some(Token::Colons) => at + 1,
            _ => at,
        };
        at = self.names(at, &mut names);
        match self.tokens.get(at) {
            Some(Token::Sign('{')) => {
                at += 1;
                while self.tokens.get(at).is_some_and(|it| !it.is("}")) {
                    at = self.tree(at, &names, found);
                    if self.tokens.get(at).is_some_and(|it| it.is(",")) {
                        at += 1;
                    }
                }
                return at + 1;
            }
            Some(Token::Sign('*')) => {
                names.push("*".to_owned());
                at += 1;
            }
            _ => {}
        }
        if names.len() > 1 && names.last().is_some_and(|name| name == "self") {
            names.pop();
        }
        let renamed = self.tokens.get(at).is_some_and(|it| it.is("as"));
        let mut known_as = names.last().cloned().unwrap_or_default();
        if renamed {
            known_as = self
                .tokens
                .get(at + 1)
                .map(Token::to_string)
                .unwrap_or_default();
            at += 2;
        }
        // A sign that no `use` has, as in a macro's pattern, must not stop the walk.
        if names.len() == before.len() && !renamed {
            return at + 1;
        }
        found.push(WrittenPath {
            names,
            renamed,
            known_as,
            inline_depth: 0,
        });
        at
    }

    /// The index after the attribute that begins here, if one does.
    fn after_attribute(&self, at: usize) -> Option<usize> {
        if !self.tokens[at].is("#") {
            return None;
        }
        let open = match self.tokens.get(at + 1)? {
            Token::Sign('!') => at + 2,
            _ => at + 1,
        };
        if !self.tokens.get(open)?.is("[") {
            return None;
        }
        let mut depth = 0;
        for (index, token) in self.tokens.iter().enumerate().skip(open) {
            match token {
                Token::Sign('[') => depth += 1,
                Token::Sign(']') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(index + 1);
            }
        }
        None
    }

    /// The index after the item whose attributes begin here.
    fn after_item(&self, mut at: usize) -> usize {
        while let Some(after) = self.tokens.get(at).and_then(|_| self.after_attribute(at)) {
            at = after;
        }
        let (mut braces, mut others) = (0, 0);
        while let Some(token) = self.tokens.get(at) {
            at += 1;
            match token {
                Token::Sign('{') => braces += 1,
                Token::Sign('}') => braces -= 1,
                Token::Sign('(' | '[' | '<') => others += 1,
                Token::Sign(')' | ']' | '>') => others -= 1,
                _ => {}
            }
            let is_end = match token {
                Token::Sign('}') | Token::Sign(';') => true,
                Token::Sign(',') => others == 0,
                _ => false,
            };
            if is_end && braces <= 0 {
                break;
            }
        }
        at
    }
}

/// Whether the attribute is a `cfg` that only tests or models fulfil.
fn for_tests(attribute: &[Token]) -> bool {
    let is_cfg = attribute.iter().find(|it| matches!(it, Token::Word(_)));
    if !is_cfg.is_some_and(|it| it.is("cfg")) || attribute.iter().any(|it| it.is("any")) {
        return false;
    }
    attribute
        .windows(3)
        .any(|it| (it[2].is("test") || it[2].is("loom")) && !(it[0].is("not") && it[1].is("(")))
}
