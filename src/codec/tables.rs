//! Every message of Kubernetes' API: its fields, and how Go writes them.
//!
//! `tables.txt` is written by `codec-tables`, from the definitions that Kubernetes publishes. A
//! `package` line begins a package and tells the API version of its kinds; a `message` line begins a
//! message; every other line is a field: number, JSON name, type, flags. A type may begin with `[`
//! for a list or `{` for a map by text; `.Name` is a message of the same package. Flags are `p` for
//! a pointer, `e` for one that JSON leaves out when empty, `z` the same for structs, `i` for one whose
//! members JSON merges into those around it.
//!
//! How values merge follows: `list=set`, `list=atomic`, or `list=map:` and the members that tell items
//! apart; `map=atomic` and `struct=atomic` for what is one whole; `patch=` and the strategy of strategic
//! merge patches, after a colon the member by which they merge a list.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::absent;

/// The generated tables.
const TEXT: &str = include_str!("tables.txt");

/// How long nearly all names are in JSON with what is around them.
pub(super) const KEY_BYTES: usize = 32;

/// Where the kinds are that every group and version has.
const META: &str = "meta.k8s.io/v1";

/// The kinds that every group and version has.
const EVERYWHERE: &[&str] = &[
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];

/// The kinds of `meta.k8s.io/v1` that go by the core's version.
const UNVERSIONED: &[&str] = &[
    "APIGroup",
    "APIGroupList",
    "APIResourceList",
    "APIVersions",
    "List",
    "Status",
];

static TABLES: LazyLock<Tables> = LazyLock::new(|| Tables::parse(TEXT));

/// A kind that has a message.
#[derive(Clone, Copy, Debug)]
pub struct Kind(pub(super) &'static Message);

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) shape: Shape,
    /// Go's name of the struct.
    pub(super) name: &'static str,
    /// The package of its definition; Go's is the last part.
    package: &'static str,
    /// The version of the kinds in its package.
    pub(super) api_version: &'static str,
    /// True if its JSON has kind and version.
    pub(super) is_kind: bool,
    /// By number.
    pub(super) fields: Box<[Field]>,
    /// The names in JSON, in their order; fields whose members JSON merges into those around them have none.
    pub(super) names: Box<[Name]>,
    /// For each number where its field is, counted from 1; 0 for none.
    places: Box<[u8]>,
    /// Where the first field is that Go writes though it is absent; the end if there is none.
    pub(super) first_required: usize,
}

/// The name of a field in JSON.
#[derive(Debug)]
pub(super) struct Name {
    name: &'static str,
    /// Where the field is among those of its message.
    pub(super) place: usize,
}

/// The JSON form of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An object of its fields.
    Object,
    /// A list of texts.
    Items,
    /// A text or a number.
    IntOrString,
    /// A text.
    Quantity,
    /// A text of whole seconds, or null.
    Time,
    /// A text of microseconds, or null.
    MicroTime,
    /// A text.
    Duration,
    /// Whatever its bytes hold, which may be protobuf again.
    RawExtension,
    /// Whatever its bytes hold.
    Json,
    /// A schema or a list of them.
    SchemaOrArray,
    /// A schema or a truth value.
    SchemaOrBool,
    /// A schema or a list of texts.
    SchemaOrTexts,
}

/// A field. What is asked for whenever it is read comes first, in one line of the processor's cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Field {
    /// The beginning of its key, or all of it.
    pub(super) key_start: [u8; KEY_BYTES],
    pub(super) key_length: u8,
    pub(super) arity: Arity,
    /// True if Go's JSON omits some value of the field though the wire has it.
    pub(super) may_vanish: bool,
    /// True if a zero on the wire is such a value.
    pub(super) skips_zero: bool,
    pub(super) inline: bool,
    /// True if JSON has the kind and the version of its items, which the wire does not have: they are objects inside another
    /// that is no list of them.
    pub(super) tells_kind: bool,
    /// The wire type of its values.
    pub(super) wire_type: u8,
    /// Where the next field is that Go writes though it is absent; the end if there is none.
    pub(super) next_required: u8,
    /// True if the wire has nothing of the field when its value is absent.
    pub(super) optional: bool,
    pub(super) kind: Type,
    /// Its number and wire type; numbers in a list may be packed under another.
    pub(super) tag: u32,
    pub(super) number: u32,
    /// True if it is a pointer in Go: then it is written only if it is present.
    pub(super) pointer: bool,
    pub(super) omit_empty: bool,
    pub(super) omit_zero: bool,
    pub(super) name: &'static str,
    /// How the field begins in JSON: its name, quoted, and a colon.
    pub(super) key: Box<[u8]>,
    /// The JSON that Go writes for the field when the wire does not have it, with a comma at its end.
    pub(super) absent: Box<[u8]>,
    /// The members that tell the items of a list apart; none if only their place does.
    pub(super) item_keys: Box<[&'static str]>,
}

/// How many values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arity {
    One,
    List,
    Map,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Bytes,
    Bool,
    Int32,
    Int64,
    Double,
    Message(MessageId),
}

/// Which message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageId(u32);

/// The line that begins a message, and its package.
struct Head {
    package: &'static str,
    api_version: &'static str,
    name: &'static str,
    mark: &'static str,
}

/// All messages.
#[derive(Debug, Default)]
struct Tables {
    messages: Vec<Message>,
    /// By API version and kind.
    kinds: HashMap<(&'static str, &'static str), MessageId>,
}

impl MessageId {
    /// The message itself.
    pub(super) fn message(self) -> &'static Message {
        &TABLES.messages[self.0 as usize]
    }
}

/// The kind's message, if there is one.
#[must_use]
pub fn kind(api_version: &str, kind: &str) -> Option<Kind> {
    let find = |version| TABLES.kinds.get(&(version, kind)).copied();
    let meta = EVERYWHERE.contains(&kind) || api_version == "v1" && UNVERSIONED.contains(&kind);
    let found = find(api_version).or_else(|| if meta { find(META) } else { None });
    found.map(|id| Kind(id.message()))
}

/// Every kind, by version and name.
#[cfg(test)]
pub(super) fn all_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLES.kinds.keys().copied()
}

impl Message {
    /// Where the field of a number is.
    #[inline]
    pub(super) fn place(&self, number: u64) -> Option<usize> {
        let place = self.places.get(usize::try_from(number).ok()?)?;
        usize::from(*place).checked_sub(1)
    }

    /// Where a name is among the names, which is looked for from a place on first.
    #[inline]
    pub(super) fn name_at(&self, name: &str, from: usize) -> Option<usize> {
        let (before, after) = self.names.split_at_checked(from)?;
        let mut after = after.iter();
        let found = after.position(|it| it.name == name).map(|at| from + at);
        found.or_else(|| before.iter().position(|it| it.name == name))
    }

    /// Returns Go's name of the type.
    pub(super) fn go_type(&self) -> String {
        let package = self.package.rsplit('.').next().unwrap_or_default();
        format!("{package}.{}", self.name)
    }

    /// The messages of the fields whose members JSON merges into those of this one.
    pub(super) fn inline_messages(&self) -> impl Iterator<Item = &'static Self> {
        let inline = self.fields.iter().filter(|field| field.inline);
        inline.filter_map(|field| match field.kind {
            Type::Message(id) => Some(id.message()),
            _ => None,
        })
    }

    /// The field of a name among those that are merged into the members of this message.
    pub(super) fn inline_field(&self, name: &str) -> Option<&'static Field> {
        self.inline_messages().find_map(|inner| {
            let own = inner.name_at(name, 0).map(|at| inner.names[at].place);
            let own = own.map(|place| &inner.fields[place]);
            own.or_else(|| inner.inline_field(name))
        })
    }

    /// The field of a number.
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.place(number.into()).map(|at| &self.fields[at])
    }
}

impl Tables {
    /// Reads the generator's text. Lines that it never writes are left out; a test shows that there
    /// are none.
    fn parse(text: &'static str) -> Self {
        let ids = Self::ids(text);
        let mut tables = Self::default();
        let (mut package, mut version) = ("", "");
        let mut fields: Vec<Field> = Vec::new();
        let mut open: Option<Head> = None;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            let first = words.next().unwrap_or_default();
            if !matches!(first, "package" | "message") {
                fields.extend(Field::parse(first, words, package, &ids));
                continue;
            }
            if let Some(head) = open.take() {
                tables.push(&head, &mut fields);
            }
            let name = words.next().unwrap_or_default();
            let mark = words.next().unwrap_or_default();
            if first == "package" {
                (package, version) = (name, mark);
            } else {
                open = Some(Head {
                    package,
                    api_version: version,
                    name,
                    mark,
                });
                if mark == "kind" {
                    let id = MessageId(tables.messages.len() as u32);
                    tables.kinds.insert((version, name), id);
                }
            }
        }
        if let Some(head) = open {
            tables.push(&head, &mut fields);
        }
        tables.complete();
        tables
    }

    /// The messages by package and name, in their order.
    fn ids(text: &'static str) -> HashMap<(&'static str, &'static str), MessageId> {
        let mut ids = HashMap::new();
        let mut package = "";
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["package", name, ..] => package = name,
                ["message", name, ..] => {
                    let id = MessageId(ids.len() as u32);
                    ids.insert((package, name), id);
                }
                _ => {}
            }
        }
        ids
    }

    fn push(&mut self, head: &Head, fields: &mut Vec<Field>) {
        let fields: Box<[Field]> = std::mem::take(fields).into();
        let last = fields.last().map_or(0, |it| it.number as usize);
        let mut places = vec![0; last + 1].into_boxed_slice();
        for (at, field) in fields.iter().enumerate() {
            // A test shows that no message has more fields than that.
            places[field.number as usize] = u8::try_from(at + 1).unwrap_or_default();
        }
        let named = fields.iter().enumerate().filter(|(_, field)| !field.inline);
        let mut names: Vec<Name> = named
            .map(|(place, field)| Name {
                name: field.name,
                place,
            })
            .collect();
        names.sort_unstable_by_key(|it| it.name);
        self.messages.push(Message {
            shape: Shape::parse(head.mark),
            name: head.name,
            package: head.package,
            api_version: head.api_version,
            is_kind: head.mark == "kind",
            fields,
            names: names.into(),
            places,
            first_required: 0,
        });
    }

    /// Notes what becomes of each field when it is absent or empty, which its message decides too.
    fn complete(&mut self) {
        let find = |id: MessageId| &self.messages[id.0 as usize];
        let fields = self.messages.iter().flat_map(|message| {
            let fields = message.fields.iter();
            fields.map(move |field| (message, field))
        });
        let known: Vec<(Vec<u8>, bool, bool, bool)> = fields
            .map(|(message, field)| {
                (
                    absent::of_field(field, &find),
                    absent::may_vanish(field, &find),
                    absent::is_optional(field, &find),
                    !message.is_kind && field.is_list_of(&|id| find(id).is_kind),
                )
            })
            .collect();
        let fields = self.messages.iter_mut().flat_map(|it| &mut it.fields);
        for (field, (absent, may_vanish, optional, tells_kind)) in fields.zip(known) {
            field.optional = optional;
            field.absent = absent.into();
            field.may_vanish = may_vanish;
            field.tells_kind = tells_kind;
            // A double that is zero may be negative, and has more than one byte.
            field.skips_zero = may_vanish && field.kind != Type::Double;
        }
        for message in &mut self.messages {
            let mut next = message.fields.len();
            for (at, field) in message.fields.iter_mut().enumerate().rev() {
                field.next_required = next as u8;
                if !field.absent.is_empty() {
                    next = at;
                }
            }
            message.first_required = next;
        }
    }
}

impl Shape {
    fn parse(mark: &str) -> Self {
        match mark {
            "=Items" => Self::Items,
            "=IntOrString" => Self::IntOrString,
            "=Quantity" => Self::Quantity,
            "=Time" => Self::Time,
            "=MicroTime" => Self::MicroTime,
            "=Duration" => Self::Duration,
            "=RawExtension" => Self::RawExtension,
            "=FieldsV1" | "=JSON" => Self::Json,
            "=JSONSchemaPropsOrArray" => Self::SchemaOrArray,
            "=JSONSchemaPropsOrBool" => Self::SchemaOrBool,
            "=JSONSchemaPropsOrStringArray" => Self::SchemaOrTexts,
            _ => Self::Object,
        }
    }
}

impl Field {
    /// Returns true if it is a list of messages that have a property.
    fn is_list_of(&self, holds: &dyn Fn(MessageId) -> bool) -> bool {
        match (self.arity, self.kind) {
            (Arity::List, Type::Message(id)) => holds(id),
            _ => false,
        }
    }

    /// Reads a field's line after its number.
    fn parse(
        number: &str,
        mut words: std::str::Split<'static, char>,
        package: &'static str,
        ids: &HashMap<(&'static str, &'static str), MessageId>,
    ) -> Option<Self> {
        let number: u32 = number.parse().ok()?;
        let name = words.next()?;
        let text = words.next()?;
        let (mut flags, mut list_keys, mut patch_key) = ("", "", "");
        for word in words {
            match word.split_once('=') {
                None => flags = word,
                Some(("list", rule)) => list_keys = rule.strip_prefix("map:").unwrap_or_default(),
                Some(("patch", rule)) => patch_key = rule.split_once(':').unwrap_or_default().1,
                Some(("map" | "struct", _)) => {}
                Some(_) => return None,
            }
        }
        let item_keys = if list_keys.is_empty() {
            patch_key
        } else {
            list_keys
        };
        let (arity, text) = match text.as_bytes().first()? {
            b'[' => (Arity::List, &text[1..]),
            b'{' => (Arity::Map, &text[1..]),
            _ => (Arity::One, text),
        };
        let kind = match text {
            "string" => Type::Text,
            "bytes" => Type::Bytes,
            "bool" => Type::Bool,
            "int32" => Type::Int32,
            "int64" => Type::Int64,
            "double" => Type::Double,
            message => {
                let (near, name) = message.rsplit_once('.')?;
                let package = if near.is_empty() { package } else { near };
                Type::Message(*ids.get(&(package, name))?)
            }
        };
        let wire_type = match kind {
            Type::Bool | Type::Int32 | Type::Int64 => 0,
            Type::Double => 1,
            Type::Text | Type::Bytes | Type::Message(_) => 2,
        };
        // The entries of maps are messages.
        let own_type = if arity == Arity::Map { 2 } else { wire_type };
        let key = format!("\"{name}\":").into_bytes();
        Some(Self {
            number,
            name,
            arity,
            kind,
            pointer: flags.contains('p'),
            omit_empty: flags.contains('e'),
            omit_zero: flags.contains('z'),
            inline: flags.contains('i'),
            item_keys: item_keys.split(',').filter(|it| !it.is_empty()).collect(),
            key_start: std::array::from_fn(|at| key.get(at).copied().unwrap_or_default()),
            key_length: key.len() as u8,
            key: key.into(),
            optional: false,
            tells_kind: false,
            absent: Box::default(),
            next_required: 0,
            may_vanish: false,
            skips_zero: false,
            wire_type,
            tag: number << 3 | u32::from(own_type),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood() {
        let fields: usize = TABLES.messages.iter().map(|it| it.fields.len()).sum();
        let messages = TABLES.messages.len();
        let packages = TEXT.lines().filter(|line| line.starts_with("package "));
        let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(fields + messages + packages.count(), lines.count());
        assert!(TABLES.messages.iter().all(|message| {
            message
                .fields
                .windows(2)
                .all(|two| two[0].number < two[1].number)
        }));
        for message in &TABLES.messages {
            assert!(
                message
                    .names
                    .windows(2)
                    .all(|two| two[0].name < two[1].name)
            );
            for (at, field) in message.fields.iter().enumerate() {
                assert_eq!(usize::from(field.key_length), field.key.len());
                assert_eq!(
                    message.place(field.number.into()),
                    Some(at),
                    "{}",
                    field.name
                );
            }
            assert_eq!(message.place(0), None);
            assert_eq!(message.place(u64::MAX), None);
        }
    }

    #[test]
    fn what_is_asked_for_first_is_in_one_line_of_the_cache() {
        assert!(std::mem::offset_of!(Field, number) <= align_of::<Field>());
    }

    #[test]
    fn kinds_of_meta_are_everywhere() {
        assert!(kind("v1", "ConfigMap").is_some());
        assert!(kind("apps/v1", "DeleteOptions").is_some());
        assert!(kind("v1", "Status").is_some());
        assert!(kind("apps/v1", "Status").is_none());
        assert!(kind("example.com/v1", "Widget").is_none());
    }
}
