//! The types that the checker gives to expressions, and declarations of variables.

use std::fmt;
use std::sync::Arc;

use imbl::OrdMap;

/// The type of an expression or a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// `dyn`: the type is known only when the expression runs.
    Dyn,
    /// The type of a part that has an error.
    Error,
    /// The type of `null`.
    Null,
    /// `bool`.
    Bool,
    /// A signed integer of 64 bits.
    Int,
    /// An unsigned integer of 64 bits.
    Uint,
    /// A floating-point number of 64 bits.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Duration`.
    Duration,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// A list, with the type of its elements.
    List(Arc<Self>),
    /// A map, with the types of its keys and values.
    Map(Arc<Self>, Arc<Self>),
    /// An optional value, with its type.
    Optional(Arc<Self>),
    /// A type as a value, with that type.
    Meta(Arc<Self>),
    /// Members with names and types of their own.
    Object(Arc<Object>),
    /// An opaque type, whose values only functions can read.
    Opaque(Arc<str>),
    /// A type variable, in a signature or of an expression whose type is not known yet.
    Variable(usize),
}

/// The type of an object with named fields.
#[derive(Debug)]
pub struct Object {
    /// The name of the type.
    pub name: String,
    /// The fields by their names.
    pub fields: OrdMap<String, DeclaredType>,
    /// The type of fields that are not declared; `None` if there must not be any.
    pub others: Option<Type>,
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.name == other.name && self.others == other.others)
    }
}

/// A type, and the maximum size of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredType {
    /// The form of the value.
    pub form: SizedType,
    /// The maximum number of characters, items or members.
    pub max: u64,
    /// The minimum number of bytes of a value in JSON.
    pub min_bytes: u64,
}

/// A declared type whose parts have maximum sizes of their own.
#[derive(Clone, Debug, PartialEq)]
pub enum SizedType {
    /// A list, with its elements.
    List(Arc<DeclaredType>),
    /// A map from strings, with its values.
    Map(Arc<DeclaredType>),
    /// A value of a type without declared parts.
    Plain(Type),
}

impl DeclaredType {
    /// Creates the declaration of a type whose values may be of any size.
    pub fn unsized_(of: Type) -> Self {
        Self {
            form: SizedType::Plain(of),
            max: u64::MAX,
            min_bytes: 2,
        }
    }

    /// Returns the type of the value.
    pub fn type_of(&self) -> Type {
        match &self.form {
            SizedType::List(items) => Type::list(items.type_of()),
            SizedType::Map(values) => Type::map(Type::String, values.type_of()),
            SizedType::Plain(it) => it.clone(),
        }
    }

    /// Returns the declaration of a field, also of an optional value.
    pub fn field(&self, name: &str) -> Option<&Self> {
        let SizedType::Plain(of) = &self.form else {
            return None;
        };
        match of.value() {
            Type::Object(object) => object.fields.get(name),
            _ => None,
        }
    }

    /// Returns the declaration of the items of a list or of the values of a map.
    pub(super) fn inside(&self) -> Option<&Self> {
        match &self.form {
            SizedType::List(inside) | SizedType::Map(inside) => Some(inside),
            SizedType::Plain(_) => None,
        }
    }
}

impl Type {
    /// Returns the type of lists of a type.
    pub fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    /// Returns the type of maps from one type to another.
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// Returns the type of optional values of a type.
    pub fn optional(of: Self) -> Self {
        Self::Optional(Arc::new(of))
    }

    /// Returns the type of a type as a value.
    pub fn meta(of: Self) -> Self {
        Self::Meta(Arc::new(of))
    }

    /// Returns the type of a name in a signature or an expression.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "dyn" => Self::Dyn,
            "null_type" | "null" => Self::Null,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "duration" => Self::Duration,
            "timestamp" => Self::Timestamp,
            _ => return None,
        })
    }

    /// Returns the name of the type as `Type.String` of cel-go writes it, which is longer than in the checker's
    /// messages.
    #[must_use]
    pub fn full_name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::List(of) => format!("list({})", of.full_name()),
            Self::Map(key, value) => format!("map({}, {})", key.full_name(), value.full_name()),
            Self::Optional(of) => format!("optional_type({})", of.full_name()),
            other => other.to_string(),
        }
    }

    /// Returns the name that values of the type have for their type.
    pub(super) fn runtime_name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::List(_) => "list".to_owned(),
            Self::Map(..) => "map".to_owned(),
            Self::Optional(_) => "optional_type".to_owned(),
            Self::Meta(_) => "type".to_owned(),
            other => other.to_string(),
        }
    }

    /// Returns the type of the value of an optional type; any other type itself.
    fn value(&self) -> &Self {
        match self {
            Self::Optional(inside) => inside,
            other => other,
        }
    }

    /// Returns true if all values of the type have one size.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool
            | Self::Double
            | Self::Duration
            | Self::Int
            | Self::Timestamp
            | Self::Uint => true,
            Self::Optional(inside) => inside.is_scalar(),
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Variable(_) => out.write_str("dyn"),
            Self::Error => out.write_str("!error!"),
            Self::Null => out.write_str("null"),
            Self::Bool => out.write_str("bool"),
            Self::Int => out.write_str("int"),
            Self::Uint => out.write_str("uint"),
            Self::Double => out.write_str("double"),
            Self::String => out.write_str("string"),
            Self::Bytes => out.write_str("bytes"),
            Self::Duration => out.write_str("duration"),
            Self::Timestamp => out.write_str("timestamp"),
            Self::List(of) => write!(out, "list({of})"),
            Self::Map(key, value) => write!(out, "map({key}, {value})"),
            Self::Optional(of) => write!(out, "optional_type({of})"),
            Self::Meta(of) => write!(out, "type({of})"),
            Self::Object(object) => out.write_str(&object.name),
            Self::Opaque(name) => out.write_str(name),
        }
    }
}
