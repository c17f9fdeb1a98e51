//! Errors in protobuf, in Go's words, which reach clients.

/// The bytes are not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not even kind and version could be read.
    #[error("{0}")]
    Envelope(String),
    /// There is no such kind here.
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
        /// The explanation.
        message: String,
    },
}

/// A number or a run of bytes cannot be read. It is asked for at every field, so it fits a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The bytes break off.
    #[error("unexpected EOF")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length of more than 63 bits.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
}

/// The bytes break protobuf's rules or this codec's bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not even a number or a length can be read.
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
    /// A field of another wire type than its own.
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
    /// Deeper than what could be read back from JSON.
    #[error("proto: nested too deeply")]
    TooDeep,
    /// Longer in JSON than any honest body of this size.
    #[error("proto: too long in JSON for its size")]
    TooLong,
    /// Fields that are not in the order of their numbers, or come twice. It is no error of the bytes:
    /// they are put in order and read again.
    #[error("proto: fields out of order")]
    OutOfOrder,
    /// A time outside of the years that JSON can tell.
    #[error("proto: time out of range")]
    TimeOutOfRange,
    /// A part that holds JSON does not.
    #[error("{0}")]
    Json(String),
}
