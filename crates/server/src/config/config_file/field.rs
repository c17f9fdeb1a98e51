//! A field of a configuration: the flag of the same name, and the type that its values have in a file.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use serde::Serialize;
use serde_json::Value;

use super::document::{ConfigKind, WrittenValue};
use super::{API_VERSION, CONFIG};
use crate::config::flags::{is_list, parse_bool};

/// The flags that are no fields: those that say where the configuration is, or have the program do something else.
const NO_FIELDS: [&str; 4] = [CONFIG, "print-config", "help", "version"];

/// The names of values, as `--help` shows them, that are numbers in a file.
const NUMBERS: [&str; 9] = [
    "BYTES", "DAYS", "LEVEL", "MIB", "N", "PORT", "RATE", "SECONDS", "SHARE",
];

/// The type of a value, or of an item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scalar {
    Bool,
    Number,
    Text,
}

/// A field, which is a flag.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlagField<'command> {
    flag: &'command Arg,
    long: &'command str,
}

/// A value that a field does not take.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrongValue {
    /// The line.
    pub(super) line: u64,
    /// The place in the field's list, such as `[1]`, or nothing.
    pub(super) place: String,
    /// The reason, and what to write.
    pub(super) why: String,
}

impl<'command> FlagField<'command> {
    /// Returns all fields of a command.
    pub(super) fn all(command: &'command Command) -> impl Iterator<Item = Self> {
        let flags = command.get_arguments();
        let flags = flags.filter_map(|flag| flag.get_long().map(|long| Self { flag, long }));
        flags.filter(|it| !NO_FIELDS.contains(&it.long))
    }

    /// Returns the field of this name.
    pub(super) fn named(command: &'command Command, name: &str) -> Option<Self> {
        Self::all(command).find(|it| it.name() == name)
    }

    /// Returns the name: the flag's in camel case.
    pub(super) fn name(self) -> String {
        let mut parts = self.long.split('-');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |name, part| {
            let mut letters = part.chars();
            let capital = letters.next().map(|it| it.to_ascii_uppercase());
            name.chars().chain(capital).chain(letters).collect()
        })
    }

    /// Returns clap's name of the flag.
    pub(super) fn id(self) -> &'command str {
        self.flag.get_id().as_str()
    }

    fn scalar(self) -> Scalar {
        let names = self.flag.get_value_names().unwrap_or_default();
        match names.first().map(|it| it.as_str()) {
            Some("BOOL") => Scalar::Bool,
            Some(name) if NUMBERS.contains(&name) => Scalar::Number,
            _ => Scalar::Text,
        }
    }

    /// Returns the words of a command line for a value on this line, each with its own line.
    pub(super) fn words(
        self,
        value: &WrittenValue,
        line: u64,
    ) -> Result<Vec<(u64, String)>, WrongValue> {
        let wrong = |line, place, why| Err(WrongValue { line, place, why });
        let items = match (is_list(self.flag), value) {
            (false, value) => {
                let text = self.text(value);
                let text = text.map_err(|why| WrongValue {
                    line,
                    place: String::new(),
                    why,
                })?;
                return Ok(vec![(line, self.word(&text))]);
            }
            (true, WrittenValue::List(items)) if items.is_empty() => {
                let why = "the list is empty; leave the field out for the default";
                return wrong(line, String::new(), why.to_owned());
            }
            (true, WrittenValue::List(items)) => items,
            (true, _) => return wrong(line, String::new(), "it must be a list".to_owned()),
        };
        let mut words = Vec::with_capacity(items.len());
        for (index, (line, item)) in items.iter().enumerate() {
            let place = || format!("[{index}]");
            let text = match self.text(item) {
                Ok(text) => text,
                Err(why) => return wrong(*line, place(), why),
            };
            let separator = self.flag.get_value_delimiter();
            if separator.is_some_and(|it| text.contains(it)) {
                let why = "it has a comma; write each as an item of its own";
                return wrong(*line, place(), why.to_owned());
            }
            words.push((*line, self.word(&text)));
        }
        Ok(words)
    }

    fn word(self, text: &str) -> String {
        format!("--{}={text}", self.long)
    }

    /// Returns a value as the flag has it, if it is of the field's type.
    fn text(self, value: &WrittenValue) -> Result<String, String> {
        match (self.scalar(), value) {
            (Scalar::Bool, WrittenValue::Bool(value)) => Ok(value.to_string()),
            (Scalar::Number, WrittenValue::Number(text))
            | (Scalar::Text, WrittenValue::Text(text)) => Ok(text.clone()),
            (Scalar::Bool, _) => Err("it must be true or false".to_owned()),
            (Scalar::Number, _) => Err("it must be a number, without quotes".to_owned()),
            (Scalar::Text, WrittenValue::Bool(_) | WrittenValue::Number(_)) => {
                Err("it must be a string; put it in quotes".to_owned())
            }
            (Scalar::Text, _) => Err("it must be a string".to_owned()),
        }
    }

    /// Returns the field's value that a command line has, as a file would have it; `None` if it has none.
    fn value(self, matches: &ArgMatches) -> Option<Value> {
        let source = matches.value_source(self.id());
        if source? != ValueSource::CommandLine && self.has_no_effect() {
            return None;
        }
        let given = matches.get_raw(self.id())?;
        let mut given = given.map(|it| self.typed(&it.to_string_lossy()));
        match is_list(self.flag) {
            true => Some(Value::Array(given.collect())),
            false => given.next_back(),
        }
    }

    /// Returns true for the flags that are accepted for compatibility alone.
    fn has_no_effect(self) -> bool {
        self.flag.get_help_heading().is_some()
    }

    fn typed(self, text: &str) -> Value {
        let number = || serde_json::from_str(text).ok().filter(Value::is_number);
        let typed = match self.scalar() {
            Scalar::Bool => parse_bool(text).ok().map(Value::Bool),
            Scalar::Number => number(),
            Scalar::Text => None,
        };
        typed.unwrap_or_else(|| Value::String(text.to_owned()))
    }
}

/// A configuration as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PrintedConfig {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    fields: BTreeMap<String, Value>,
}

/// Returns the configuration that a command line makes, defaults included, in YAML. Flags without effect are there if
/// they were given.
///
/// # Errors
/// It cannot be written as YAML.
pub fn effective(root: &Command, kind: ConfigKind, matches: &ArgMatches) -> Result<String, String> {
    let command = root.find_subcommand(kind.subcommand());
    let fields = command.into_iter().flat_map(FlagField::all);
    let fields = fields.filter_map(|it| Some((it.name(), it.value(matches)?)));
    let printed = PrintedConfig {
        api_version: API_VERSION,
        kind: kind.name(),
        fields: fields.collect(),
    };
    serde_saphyr::to_string(&printed).map_err(|error| error.to_string())
}
