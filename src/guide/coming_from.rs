//! For those who know ZeroMQ, nng, NTCPMSG or teleport: what things are called here, what behaves
//! differently, and what is missing.
//!
//! | from | page |
//! |---|---|
//! | ZeroMQ (libzmq) | [`zeromq`] |
//! | nng, nanomsg | [`nng`] |
//! | NTCPMSG (C#) | [`ntcpmsg`] |
//! | teleport, later erpc (Go) | [`teleport`] |
//!
//! What all have in common: programs here speak Trunkline's own [protocol](crate::protocol), so
//! both ends change over together. The search of these pages finds many of the old words, such as
//! `dealer`, `linger` or `RangeSession`.
//!
//! And what newcomers from all of them meet first:
//!
//! - A [`Session`](crate::Session) is one connection to one peer. There is no socket in front of
//!   several, and nothing is spread over peers by itself.
//! - Connecting happens at once and can fail; a session that is lost stays lost.
//! - Sending tells the truth: a push returns when the message is in a bounded queue, and the
//!   [`CloseReport`](crate::CloseReport) says what became of everything.

pub mod nng;
pub mod ntcpmsg;
pub mod teleport;
pub mod zeromq;
