//! The definition of a message: its fields, and the form in which Go writes them.

/// The bytes in which nearly all JSON names fit, with quotes and colon.
pub(super) const KEY_BYTES: usize = 32;

/// A kind that has a message. Returned by [`super::kind`].
#[derive(Clone, Copy, Debug)]
pub struct Kind(pub(super) &'static Message);

/// The definition of a message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) shape: Shape,
    /// Go's name of the struct.
    pub(super) name: &'static str,
    /// The package of its definition; Go's package is the last part.
    pub(super) package: &'static str,
    /// The API version of the kinds in its package.
    pub(super) api_version: &'static str,
    /// True if its JSON has kind and version.
    pub(super) is_kind: bool,
    /// The fields, by number.
    pub(super) fields: Box<[Field]>,
    /// The names in JSON, sorted; inlined fields have none.
    pub(super) names: Box<[FieldName]>,
    /// The index of the field of each number, plus 1; 0 for none.
    pub(super) places: Box<[u8]>,
    /// The index of the first field that Go writes although it is absent; the number of fields if there is none.
    pub(super) first_required: usize,
}

/// The name of a field in JSON.
#[derive(Debug)]
pub(super) struct FieldName {
    pub(super) name: &'static str,
    /// The index of the field in its message.
    pub(super) place: usize,
}

/// The JSON form of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An object with a member for each field.
    Object,
    /// A list of strings.
    Items,
    /// A string or a number.
    IntOrString,
    /// A string that is a quantity.
    Quantity,
    /// A string with whole seconds, or null.
    Time,
    /// A string with microseconds, or null.
    MicroTime,
    /// A string in Go's syntax of durations.
    Duration,
    /// The JSON in its bytes, or an object in protobuf.
    RawExtension,
    /// The JSON in its bytes.
    Json,
    /// A schema or a list of them.
    SchemaOrArray,
    /// A schema or a boolean.
    SchemaOrBool,
    /// A schema or a list of strings.
    SchemaOrTexts,
}

/// The definition of a field. The parts that every read needs come first, in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Field {
    /// The beginning of `key`, or all of it.
    pub(super) key_start: [u8; KEY_BYTES],
    pub(super) key_length: u8,
    pub(super) arity: Arity,
    /// True if Go's JSON omits some value of the field that is on the wire.
    pub(super) may_vanish: bool,
    /// True if that value is a zero on the wire.
    pub(super) skips_zero: bool,
    pub(super) inline: bool,
    /// True if JSON has the kind and the version of its items, which the wire does not have: objects within another one
    /// that is no list of them.
    pub(super) tells_kind: bool,
    /// The wire type of its values.
    pub(super) wire_type: u8,
    /// The index of the next field that Go writes although it is absent; the number of fields if there is none.
    pub(super) next_required: u8,
    /// True if nothing is written to the wire when its value is absent.
    pub(super) optional: bool,
    pub(super) kind: FieldType,
    /// Its number and wire type; numbers in a list may be packed under another wire type.
    pub(super) tag: u32,
    pub(super) number: u32,
    /// True if it is a pointer in Go: it is written only if it is present.
    pub(super) pointer: bool,
    pub(super) omit_empty: bool,
    pub(super) omit_zero: bool,
    pub(super) name: &'static str,
    /// The name in JSON, quoted, and a colon.
    pub(super) key: Box<[u8]>,
    /// The JSON that Go writes for the field when it is absent, with a comma at its end.
    pub(super) absent: Box<[u8]>,
    /// The members that identify the items of a list; empty if only their index does.
    pub(super) item_keys: Box<[&'static str]>,
}

/// The number of values that a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arity {
    One,
    List,
    Map,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldType {
    Text,
    Bytes,
    Bool,
    Int32,
    Int64,
    Double,
    Message(MessageId),
}

/// The index of a message in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageId(pub(super) u32);

impl Message {
    /// Returns the index of the field of a number.
    #[inline]
    pub(super) fn place(&self, number: u64) -> Option<usize> {
        let place = self.places.get(usize::try_from(number).ok()?)?;
        usize::from(*place).checked_sub(1)
    }

    /// Returns the index of a name, which is looked for from `from` on first.
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

    /// Returns the field of a number.
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.place(number.into()).map(|at| &self.fields[at])
    }
}
