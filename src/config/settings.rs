//! Everything that a file may set.

mod places;

use std::path::Path;
use std::{fs, io};

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use self::places::{Places, malformed};
use super::{Backoff, Config, Heartbeat, Hold, Limits, Mistake, SlowPeer, SocketOptions, Timeouts};
use crate::error::{Error, ErrorKind};

/// Limits, time limits, heartbeats, socket options and the policy for slow peers as a file sets
/// them, for either builder; and how a client reconnects and holds.
///
/// ```
/// # use trunkline::{Client, Error, Settings};
/// # fn main() -> Result<(), Error> {
/// let settings = Settings::parse(
///     r#"
///     preset = "embedded"
///     limits.frame_bytes = "256 KiB"
///     timeouts.call = "2s"
///     "#,
/// )?;
/// let builder = Client::builder().settings(settings);
/// # drop(builder);
/// # Ok(())
/// # }
/// ```
///
/// What is left out keeps its default, and a key that does not exist is an error. These are all
/// keys with their defaults:
///
/// ```toml
#[doc = include_str!("settings.toml")]
/// ```
///
/// This and its tables also implement serde's traits, for structures of your own and for formats
/// that describe themselves. Read in that way there is no `preset`, and what can never work is
/// found by the builder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(docsrs, doc(cfg(feature = "config")))]
#[non_exhaustive]
pub struct Settings {
    /// What happens to a push when the send queue is full.
    pub slow_peer: SlowPeer,
    /// How much is accepted and held.
    pub limits: Limits,
    /// How long everything may take.
    pub timeouts: Timeouts,
    /// Signs of life.
    pub heartbeat: Heartbeat,
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// How a client spreads its attempts, if it reconnects; `None` leaves what its builder says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// How much a client holds, if it does; `None` leaves what its builder says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// Where the defaults of the limits come from.
#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Preset {
    #[default]
    Server,
    Embedded,
}

impl Settings {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// `InvalidInput` for all that is wrong with the text, naming the key, and the line if the
    /// key is there: unknown keys, values of the wrong type or out of range, and what the
    /// builders would refuse.
    pub fn parse(text: &str) -> Result<Settings, Error> {
        let document = DeTable::parse(text).map_err(|error| malformed(text, &error))?;
        let places = Places::new(text, document.get_ref());
        let settings = Self::of(document).map_err(|error| places.refused(&error))?;
        settings
            .check()
            .map_err(|mistake| places.mistaken(mistake))?;
        Ok(settings)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// `Io` if it cannot be read, and as [`parse`](Settings::parse); all name the path.
    pub fn read(path: impl AsRef<Path>) -> Result<Settings, Error> {
        let path = path.as_ref();
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            let kind = match error.kind() {
                // It is there, but not UTF-8.
                io::ErrorKind::InvalidData => ErrorKind::InvalidInput,
                _ => ErrorKind::Io,
            };
            Error::with_source(kind, format!("{name} cannot be read"), error)
        })?;
        Settings::parse(&text).map_err(|error| Error::new(error.kind(), format!("{name}, {error}")))
    }

    /// The settings of a file, with the defaults that it asks for.
    fn of(mut document: Spanned<DeTable<'_>>) -> Result<Settings, toml::de::Error> {
        let preset = match document.get_mut().remove("preset") {
            Some(value) => Preset::deserialize(ValueDeserializer::from(value))?,
            None => Preset::default(),
        };
        let defaults = toml::to_string(&preset.limits()).map_err(toml::de::Error::custom)?;
        let defaults = DeTable::parse(&defaults)?;
        let document = completed(document, "limits", defaults);
        Settings::deserialize(toml::de::Deserializer::from(document))
    }

    fn check(&self) -> Result<(), Mistake> {
        let mut config = Config::default();
        config.set(self.clone());
        config.check()
    }
}

impl Preset {
    fn limits(&self) -> Limits {
        match self {
            Preset::Server => Limits::server(),
            Preset::Embedded => Limits::embedded(),
        }
    }
}

impl Config {
    /// Takes over what a file sets, and its defaults for the rest.
    pub(crate) fn set(&mut self, settings: Settings) {
        self.slow_peer = settings.slow_peer;
        self.limits = settings.limits;
        self.timeouts = settings.timeouts;
        self.heartbeat = settings.heartbeat;
        self.socket = settings.socket;
        self.backoff = settings.backoff.or(self.backoff.take());
        self.hold = settings.hold.or(self.hold.take());
    }
}

/// The document with the defaults that one of its tables leaves out.
fn completed<'t>(
    mut document: Spanned<DeTable<'t>>,
    name: &'static str,
    defaults: Spanned<DeTable<'t>>,
) -> Spanned<DeTable<'t>> {
    let span = defaults.span();
    let table = document
        .get_mut()
        .entry(Spanned::new(span.clone(), name.into()))
        .or_insert_with(|| Spanned::new(span, DeValue::Table(DeTable::new())));
    if let DeValue::Table(table) = table.get_mut() {
        for (key, value) in defaults.into_inner() {
            table.entry(key).or_insert(value);
        }
    }
    document
}
