//! What may change, and in which version.
//!
//! # Versions
//!
//! The crate keeps to semantic versioning as Cargo understands it. Before 1.0 a new minor version
//! (0.2) may break, and a patch (0.1.1) does not; from 1.0 on only a new major version breaks.
//!
//! | breaking | not breaking |
//! |---|---|
//! | an item, method or field goes, or changes its type or meaning | new items, and new methods with a default in traits |
//! | a promise of [`promises`](super::promises) is taken back | a promise is added |
//! | an [`ErrorKind`](crate::ErrorKind) or a status code for the same mistake is another one | new kinds, variants and fields where the type is `#[non_exhaustive]` |
//! | a target, level or meaning of a [log record](super::logging) changes | its wording, and new records |
//! | a name among the [figures](super::statistics) changes | new figures |
//! | a key of `Settings` goes or changes its meaning | new keys |
//! | a default becomes stricter, so that what worked is refused | other defaults |
//! | a lower version of the wire format is no longer spoken | a higher one is spoken as well |
//!
//! Not part of the interface: texts of errors and what `Display` and `Debug` print, names of
//! threads, sizes of types, the number of system calls, which thread writes, and everything that
//! is not documented.
//!
//! # The wire
//!
//! The native format has a version of its own, today 1, apart from that of the crate. Each side
//! begins by saying the lowest and highest that it speaks; the highest common one is used, and
//! without one both sides get an error with both ranges
//! ([`ErrorKind::Version`](crate::ErrorKind::Version)). The first bytes that say so never change.
//! Within a version unknown frames and extension items are skipped, unless they are marked as
//! essential: so old and new releases understand each other, and servers and clients can be
//! updated in any order. [`protocol::native`](crate::protocol::native) has the bytes.
//!
//! # Rust
//!
//! The lowest Rust version is 1.85, and `rust-version` in `Cargo.toml` says so to Cargo. It rises
//! only with a minor version, never with a patch, and only for something that is needed.
//!
//! # Features
//!
//! A feature only adds: it changes nothing that is there without it, and all may be combined.
//! Features are not removed within a major version.
//!
//! # Dependencies
//!
//! Few, widely used ones; none that needs a C compiler. Their types do not appear in the
//! interface, except for the traits of `serde` under feature `config`. A newer major version of
//! one of them is a matter of a minor version here.
//!
//! # Systems
//!
//! Linux is supported. Other Unix systems should build; nothing is tested there. Windows is not
//! supported.
