//! The types of the values of a kind, for walks over trees that ask no more of a value than its JSON type.

use super::message::{Arity, Field, FieldType, Kind, Message, Shape};
use super::tables::object_meta;
use super::typed::TYPE_META;

/// The type of a value, as the schema of its kind has it.
#[derive(Clone, Copy, Debug)]
pub enum ValueType {
    /// Anything: extensions, and values whose types read their own JSON.
    Any,
    /// An object with any members.
    AnyMembers,
    /// A text, a number or a boolean: quantities and times.
    AnyScalar,
    /// A text.
    Text,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// A list of items of one type.
    List(ItemType),
    /// An object whose members are named by clients and have one type.
    Map(ItemType),
    /// An object with the members of a struct.
    Struct(StructType),
}

/// The type of the items of a list or the members of a map.
#[derive(Clone, Copy, Debug)]
pub struct ItemType(FieldType);

impl ItemType {
    /// Returns the type of each item.
    #[must_use]
    pub fn value_type(self) -> ValueType {
        one(self.0)
    }
}

/// The type of a struct.
#[derive(Clone, Copy, Debug)]
pub struct StructType(&'static Message);

impl StructType {
    /// Returns the type of the objects of a kind.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        Self(kind.0)
    }

    /// Returns the type of the metadata of all objects.
    #[must_use]
    pub fn metadata() -> Self {
        Self(object_meta())
    }

    /// Begins to look for members.
    #[must_use]
    pub fn members(self) -> MemberTypes {
        MemberTypes {
            message: self.0,
            next: 0,
        }
    }
}

/// The members of a struct, which are found fast in the order of their names.
#[derive(Debug)]
pub struct MemberTypes {
    message: &'static Message,
    next: usize,
}

impl MemberTypes {
    /// Returns the type of the member of a name, if there is one.
    ///
    /// ```
    /// use ringwatch::codec::{self, StructType, ValueType};
    ///
    /// let pod = StructType::of(codec::kind("v1", "Pod").expect("a built-in kind"));
    /// let mut members = pod.members();
    /// assert!(matches!(members.find("kind"), Some(ValueType::Text)));
    /// assert!(matches!(members.find("spec"), Some(ValueType::Struct(_))));
    /// assert!(members.find("colour").is_none());
    /// ```
    pub fn find(&mut self, name: &str) -> Option<ValueType> {
        let message = self.message;
        if let Some(at) = message.name_at(name, self.next) {
            self.next = at + 1;
            return Some(of_field(&message.fields[message.names[at].place]));
        }
        if let Some(field) = message.inline_field(name) {
            return Some(of_field(field));
        }
        let is_type = message.is_kind && TYPE_META.contains(&name);
        is_type.then_some(ValueType::Text)
    }
}

fn of_field(field: &Field) -> ValueType {
    match field.arity {
        Arity::One => one(field.kind),
        Arity::List => ValueType::List(ItemType(field.kind)),
        Arity::Map => ValueType::Map(ItemType(field.kind)),
    }
}

fn one(kind: FieldType) -> ValueType {
    let message = match kind {
        FieldType::Text | FieldType::Bytes => return ValueType::Text,
        FieldType::Bool => return ValueType::Boolean,
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => return ValueType::Number,
        FieldType::Message(id) => id.message(),
    };
    match message.shape {
        // Without members it is an object of anything in OpenAPI, as are managed fields.
        Shape::Object if message.fields.is_empty() => ValueType::AnyMembers,
        Shape::Json if message.name == "FieldsV1" => ValueType::AnyMembers,
        Shape::Object => ValueType::Struct(StructType(message)),
        Shape::Items => ValueType::List(ItemType(FieldType::Text)),
        Shape::Quantity | Shape::Time | Shape::MicroTime => ValueType::AnyScalar,
        Shape::Duration => ValueType::Text,
        Shape::IntOrString
        | Shape::RawExtension
        | Shape::Json
        | Shape::SchemaOrArray
        | Shape::SchemaOrBool
        | Shape::SchemaOrTexts => ValueType::Any,
    }
}
