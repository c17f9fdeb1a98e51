//! The errors of values of a wrong type, with Go's texts, which reach clients.

/// An error about a value that its field cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// JSON of another type, or a number out of range.
    #[error("json: cannot unmarshal {found} into Go struct field {field} of type {expected}")]
    Wrong {
        /// The type of the value.
        found: String,
        /// Go's name of the struct, and the path of the field.
        field: String,
        /// Go's name of the field's type.
        expected: String,
    },
    /// Text that should be base64; the offset of the wrong byte.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// Text that should be a quantity.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Quantity,
    /// A quantity with a suffix that does not exist.
    #[error("unable to parse quantity's suffix")]
    QuantitySuffix,
    /// A quantity without digits whose suffix is too large for the short way to zero.
    #[error("unable to parse numeric part of quantity")]
    QuantityNumber,
    /// Text that is not a time.
    #[error("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}")]
    Time {
        /// The text.
        text: String,
        /// The expected layout, as Go writes it.
        layout: &'static str,
        /// The part that could not be parsed.
        rest: String,
        /// The expected element of the layout.
        element: &'static str,
    },
    /// A time that does not exist.
    #[error("parsing time {text:?}: {problem}")]
    NoSuchTime {
        /// The text.
        text: String,
        /// The element that is out of range, or the extra text.
        problem: String,
    },
    /// Text that should be a duration.
    #[error("time: invalid duration {0:?}")]
    Duration(String),
    /// A value that should be a schema or its replacement.
    #[error("boolean or JSON schema expected")]
    Schema,
}
