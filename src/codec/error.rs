//! The errors of protobuf, with Go's texts, which reach clients.

/// An error of decoding bytes that are not a protobuf object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The kind and version could not be read.
    #[error("{0}")]
    Envelope(String),
    /// The tables have no such kind.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// The version in the envelope.
        api_version: String,
        /// The kind in the envelope.
        kind: String,
    },
    /// The object itself is broken.
    #[error("{message}")]
    Object {
        /// The version in the envelope.
        api_version: String,
        /// The kind in the envelope.
        kind: String,
        /// The cause.
        message: String,
    },
}

/// An error in a number or a length. It is checked at every field, so it fits into a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The bytes end within a value.
    #[error("unexpected EOF")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length of more than 63 bits.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
}

/// An error about bytes that break protobuf's rules or the limits of this codec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A number or a length cannot be read.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// A field of number 0, or of a wire type that does not exist.
    #[error("proto: illegal tag {number} (wire type {wire_type})")]
    IllegalTag {
        /// The field's number.
        number: u64,
        /// The wire type.
        wire_type: u8,
    },
    /// A field has another wire type than its own.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongType {
        /// The wire type that was found.
        wire_type: u8,
        /// The field's name in JSON.
        field: &'static str,
    },
    /// A group ends that did not begin, or the reverse.
    #[error("proto: unexpected end of group")]
    UnexpectedEndOfGroup,
    /// The nesting is deeper than JSON could be decoded again.
    #[error("proto: nested too deeply")]
    TooDeep,
    /// The JSON is longer than that of any sensible object of this size.
    #[error("proto: too long in JSON for its size")]
    TooLong,
    /// Fields are not in the order of their numbers, or occur twice. This is no error of the bytes: they are put in
    /// order and read again.
    #[error("proto: fields out of order")]
    OutOfOrder,
    /// A time outside of the years that JSON can express.
    #[error("proto: time out of range")]
    TimeOutOfRange,
    /// Bytes that should be JSON are not.
    #[error("{0}")]
    Json(String),
}
