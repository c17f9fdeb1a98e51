//! The types of values.

/// The JSON types, as schemas name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonType {
    /// `object`: a map or a structure.
    Object,
    /// `array`.
    Array,
    /// `string`.
    String,
    /// `integer`: a number without fraction.
    Integer,
    /// `number`: integers and floats.
    Number,
    /// `boolean`.
    Boolean,
}

impl JsonType {
    /// All kinds with their names, sorted as error messages list them.
    pub(super) const NAMES: [(&'static str, Self); 6] = [
        ("array", Self::Array),
        ("boolean", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("object", Self::Object),
        ("string", Self::String),
    ];

    /// Returns the type of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind)
    }

    /// Returns true for the types of numbers.
    pub(super) fn is_numeric(self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }

    /// Returns the name, as `type` has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}
