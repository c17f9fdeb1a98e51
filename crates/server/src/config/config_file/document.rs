//! The document of a configuration: its kind, and its fields with the lines on which they stand.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::{API_VERSION, BYTES_MAX, ConfigFileError};

/// The kinds of configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigKind {
    /// That of `ringwatch serve`.
    Server,
    /// That of `ringwatch relay`.
    Relay,
}

impl ConfigKind {
    const ALL: [Self; 2] = [Self::Server, Self::Relay];

    /// Returns the name of the kind in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "ServerConfiguration",
            Self::Relay => "RelayConfiguration",
        }
    }

    /// Returns the subcommand whose flags are the fields.
    #[must_use]
    pub fn subcommand(self) -> &'static str {
        match self {
            Self::Server => "serve",
            Self::Relay => "relay",
        }
    }

    /// Returns the kind whose fields are flags of a subcommand, if there is one.
    #[must_use]
    pub fn of_subcommand(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.subcommand() == name)
    }
}

/// A configuration as it is written.
#[derive(Debug)]
pub(super) struct Document {
    /// The fields besides `apiVersion` and `kind`, in the order of the file.
    pub(super) entries: Vec<Entry>,
}

/// A field.
#[derive(Debug)]
pub(super) struct Entry {
    /// The name.
    pub(super) name: String,
    /// The line of the name, from 1 on.
    pub(super) line: u64,
    /// The value.
    pub(super) value: WrittenValue,
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WrittenValue {
    /// Nothing, or `null`.
    Nothing,
    /// A boolean.
    Bool(bool),
    /// A number, as a flag would have it.
    Number(String),
    /// A string.
    Text(String),
    /// A list, with the line of each item.
    List(Vec<(u64, Self)>),
    /// A map, which no flag takes.
    Map,
}

impl Document {
    /// Reads a file of this kind.
    pub(super) fn read(path: &Path, kind: ConfigKind) -> Result<Self, ConfigFileError> {
        let (found, line, entries) = Self::parse(path)?;
        if found != kind {
            let (found, command) = (found.name(), found.subcommand());
            let why = format!(
                "the kind {found} is for ringwatch {command}; write {}",
                kind.name()
            );
            return Err(malformed(path, line, why));
        }
        Ok(Self { entries })
    }

    /// Returns the kind of a file.
    pub(super) fn kind(path: &Path) -> Result<ConfigKind, ConfigFileError> {
        Self::parse(path).map(|(kind, _, _)| kind)
    }

    /// Returns the kind, the line that says so, and the other fields.
    fn parse(path: &Path) -> Result<(ConfigKind, u64, Vec<Entry>), ConfigFileError> {
        let text = text(path).map_err(|error| ConfigFileError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        let options = serde_saphyr::options! { with_snippet: false };
        let Fields(mut entries) = serde_saphyr::from_str_with_options(&text, options)
            .map_err(|error| syntax(path, &error))?;
        let (_, version) = taken(&mut entries, "apiVersion")
            .ok_or_else(|| malformed(path, 1, format!("write apiVersion: {API_VERSION}")))?;
        if version.1 != WrittenValue::Text(API_VERSION.to_owned()) {
            let why = format!("there is no such apiVersion; write {API_VERSION}");
            return Err(malformed(path, version.0, why));
        }
        let names = ConfigKind::ALL.map(ConfigKind::name).join(" or ");
        let (_, (line, kind)) = taken(&mut entries, "kind")
            .ok_or_else(|| malformed(path, 1, format!("write kind: {names}")))?;
        let known = ConfigKind::ALL.into_iter();
        let kind = known
            .clone()
            .find(|it| kind == WrittenValue::Text(it.name().to_owned()))
            .ok_or_else(|| {
                malformed(path, line, format!("there is no such kind; write {names}"))
            })?;
        Ok((kind, line, entries))
    }
}

/// Takes out a field by its name.
fn taken(entries: &mut Vec<Entry>, name: &str) -> Option<(String, (u64, WrittenValue))> {
    let place = entries.iter().position(|it| it.name == name)?;
    let entry = entries.remove(place);
    Some((entry.name, (entry.line, entry.value)))
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?
        .take(BYTES_MAX)
        .read_to_string(&mut text)?;
    if u64::try_from(read).is_ok_and(|bytes| bytes >= BYTES_MAX) {
        return Err(io::Error::other(format!(
            "it has {BYTES_MAX} bytes or more"
        )));
    }
    Ok(text)
}

fn malformed(path: &Path, line: u64, why: String) -> ConfigFileError {
    ConfigFileError::Malformed {
        path: path.to_owned(),
        line,
        why,
    }
}

fn syntax(path: &Path, error: &serde_saphyr::Error) -> ConfigFileError {
    let line = error.location().map_or(1, |it| it.line());
    let text = error.to_string();
    let why = text.split_whitespace().collect::<Vec<_>>().join(" ");
    malformed(path, line, why)
}

/// The fields of a document.
struct Fields(Vec<Entry>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("fields, as in securePort: 6443")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<Spanned<String>>()? {
                    entries.push(Entry {
                        name: name.value,
                        line: name.referenced.line(),
                        value: map.next_value()?,
                    });
                }
                Ok(Fields(entries))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl<'de> Deserialize<'de> for WrittenValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueReader)
    }
}

/// Reads any value.
struct ValueReader;

impl<'de> Visitor<'de> for ValueReader {
    type Value = WrittenValue;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<WrittenValue, E> {
        Ok(WrittenValue::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<WrittenValue, E> {
        Ok(WrittenValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<WrittenValue, E> {
        Ok(WrittenValue::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<WrittenValue, E> {
        Ok(WrittenValue::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<WrittenValue, E> {
        Ok(WrittenValue::Number(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<WrittenValue, E> {
        Ok(WrittenValue::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<WrittenValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<WrittenValue>>()? {
            list.push((item.referenced.line(), item.value));
        }
        Ok(WrittenValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WrittenValue, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(WrittenValue::Map)
    }
}
