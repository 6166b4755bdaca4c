//! What stands in the log.
//!
//! Records go to the [`log`](https://docs.rs/log) crate; a program that installs no logger pays
//! next to nothing for them. Nothing is recorded for single messages, and never a body.
//!
//! | target | level | what |
//! |---|---|---|
//! | `trunkline::server` | error | connections cannot be accepted for now, as where file descriptors are used up; once, until one is accepted again |
//! | `trunkline::server` | warn | a connection was refused, with the reason; a handshake failed |
//! | `trunkline::server` | info | a server listens, one record for each address; it is shut down, with what became of its sessions |
//! | `trunkline::session` | warn | a session ended otherwise than by goodbyes, with its report |
//! | `trunkline::session` | warn | a push to a peer that reads too slowly was dropped |
//! | `trunkline::session` | debug | a session began; it ended cleanly, with its report |
//! | `trunkline::client` | warn | a client that [reconnects](super::promises#reconnecting) has stopped for a reason that trying again cannot help, or has tried enough |
//! | `trunkline::client` | info | such a client has lost its session, or an attempt has failed, and it waits to dial again; it is connected |
//! | `trunkline::handler` | warn | a handler panicked: kind, route and session; the panic's own text goes to the panic hook |
//!
//! For most servers `trunkline=info` is right: silent while all is well, except for the start and
//! the end. `trunkline::session=debug` adds two records for each session.
//!
//! # How many
//!
//! No peer can fill the log. Of each kind of record a client or server writes at most ten in a
//! second, and of panics and dropped pushes of one session one each. What was left out is counted
//! at the end of the next record of its kind: `(37 like it were left out)`. Texts that a peer has
//! sent are escaped, so a record is one line.
//!
//! # In code
//!
//! What is worth a warning can be seen by the program itself, with or without a logger:
//!
//! ```
//! # use trunkline::{CloseReason, Server};
//! let builder = Server::builder()
//!     .on_error(|error| eprintln!("{error:#}"))
//!     .on_closed(|session, report| {
//!         if report.reason != CloseReason::Clean {
//!             eprintln!("{}: {report}", session.peer_address());
//!         }
//!     });
//! # drop(builder);
//! ```
//!
//! A record for each message is a matter for an [`Interceptor`](crate::Interceptor). The example
//! `daemon` of the repository has a logger that writes as systemd's journal reads.
//!
//! Targets, levels and meanings are part of the interface, the wording of the texts is not; see
//! [`policy`](super::policy).
