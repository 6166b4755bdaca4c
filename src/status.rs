//! The status of a reply, or of a goodbye: a code, a text and a cause.
//!
//! | code | constant | meaning |
//! |---|---|---|
//! | 0 | [`Status::OK`] | the call succeeded |
//! | 400 | [`Status::BAD_BODY`] | the body does not decode |
//! | 403 | [`Status::FORBIDDEN`] | the caller may not use this route |
//! | 404 | [`Status::NO_ROUTE`] | nothing handles this route |
//! | 409 | [`Status::NAME_TAKEN`] | another session has the name, or has taken it |
//! | 413 | [`Status::TOO_LARGE`] | the answer passes a limit of the caller or of the line |
//! | 415 | [`Status::UNSUPPORTED`] | a codec, filter or extension that this side does not know |
//! | 429 | [`Status::OVERLOADED`] | no room to hold the call or its answer; try again later |
//! | 499 | [`Status::CANCELLED`] | the caller gave up |
//! | 500 | [`Status::HANDLER_PANICKED`] | the handler panicked |
//! | 501 | [`Status::HANDLER_FAILED`] | the handler gave up with an error of its own |
//! | 502 | [`Status::NO_REPLY`] | the handler dropped its responder without an answer |
//! | 503 | [`Status::GOING_AWAY`] | the peer is closing; another peer may answer |
//! | 504 | [`Status::DEADLINE_EXCEEDED`] | the time limit of the call passed at the peer |
//! | 508 | [`Status::WOULD_DEADLOCK`] | handlers that call each other wait too deep |
//! | 505 | [`Status::VERSION`] | no common protocol version |
//!
//! Codes from 1000 upwards and negative codes are the application's own.

use std::fmt;

use crate::escape::Escaped;

/// How a call ended at the peer, or why a session was closed: a code (0 = OK), a text for people
/// and a cause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Status {
    code: i32,
    text: String,
    cause: String,
}

impl Status {
    /// The call succeeded.
    pub const OK: i32 = 0;
    /// The body does not decode.
    pub const BAD_BODY: i32 = 400;
    /// The caller may not use this route.
    pub const FORBIDDEN: i32 = 403;
    /// Nothing handles this route.
    pub const NO_ROUTE: i32 = 404;
    /// Another session has the name, or has taken it.
    pub const NAME_TAKEN: i32 = 409;
    /// The answer passes a limit.
    pub const TOO_LARGE: i32 = 413;
    /// A codec, filter or extension that this side does not know.
    pub const UNSUPPORTED: i32 = 415;
    /// No room to hold the call or its answer.
    pub const OVERLOADED: i32 = 429;
    /// The caller gave up.
    pub const CANCELLED: i32 = 499;
    /// The handler panicked.
    pub const HANDLER_PANICKED: i32 = 500;
    /// The handler gave up with an error of its own.
    pub const HANDLER_FAILED: i32 = 501;
    /// The handler dropped its responder without an answer.
    pub const NO_REPLY: i32 = 502;
    /// The peer is closing.
    pub const GOING_AWAY: i32 = 503;
    /// The time limit of the call passed at the peer.
    pub const DEADLINE_EXCEEDED: i32 = 504;
    /// Handlers that call each other wait too deep.
    pub const WOULD_DEADLOCK: i32 = 508;
    /// No common protocol version.
    pub const VERSION: i32 = 505;

    /// A status with a code and a text, without a cause.
    pub fn new(code: i32, text: impl Into<String>) -> Self {
        Status {
            code,
            text: text.into(),
            cause: String::new(),
        }
    }

    /// The same status with a cause: what lies behind the failure, for logs.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = cause.into();
        self
    }

    /// The code; 0 is success.
    pub fn code(&self) -> i32 {
        self.code
    }

    /// The text for people, possibly empty.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What lies behind the failure, possibly empty.
    pub fn cause(&self) -> &str {
        &self.cause
    }

    /// The status as a borrowed view.
    pub fn as_ref(&self) -> StatusRef<'_> {
        StatusRef {
            code: self.code,
            text: &self.text,
            cause: &self.cause,
        }
    }
}

impl fmt::Display for Status {
    /// Code, text and cause on one line: control characters are escaped, so that a peer cannot
    /// write lines of its own into a log. [`text`](Status::text) gives the text as it came.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {}", self.code)?;
        if !self.text.is_empty() {
            write!(f, ": {}", Escaped(&self.text))?;
        }
        if !self.cause.is_empty() {
            write!(f, " ({})", Escaped(&self.cause))?;
        }
        Ok(())
    }
}

impl std::error::Error for Status {}

/// A status that borrows its texts from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRef<'a> {
    /// The code; 0 is success.
    pub code: i32,
    /// The text for people, possibly empty.
    pub text: &'a str,
    /// What lies behind the failure, possibly empty.
    pub cause: &'a str,
}

impl<'a> StatusRef<'a> {
    /// The same with at most so many characters in each text.
    pub(crate) fn shortened(self, most: usize) -> Self {
        let short = |text: &'a str| match text.char_indices().nth(most) {
            Some((end, _)) => text.get(..end).unwrap_or_default(),
            None => text,
        };
        StatusRef {
            code: self.code,
            text: short(self.text),
            cause: short(self.cause),
        }
    }

    /// An owned copy.
    pub fn to_status(self) -> Status {
        Status {
            code: self.code,
            text: self.text.to_owned(),
            cause: self.cause.to_owned(),
        }
    }
}
