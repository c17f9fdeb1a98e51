//! Kubernetes' basic types, without I/O, which all other layers use.
//!
//! Nothing here depends on a store, a request or a connection.

mod encodings;
mod json_text;
mod object;
mod resource_version;
pub mod selector;
mod status;
mod watch_event;

pub use encodings::{EncodedBytes, EncodedObject, EncodingKey};
pub use json_text::json_text;
pub(crate) use json_text::{DoubleText, put_json};
#[cfg(test)]
pub(crate) use object::OwnedAttributes;
#[doc(hidden)]
pub use object::{AttributeSpans, PlacesBuilder, ProtobufForm, ProtobufParts};
pub use object::{
    Attributes, DecodeError, FieldPath, FieldSchema, FieldValues, Labels, Object, OwnedLabels,
    StoredForm, VersionedObject, encode,
};
pub use resource_version::{InvalidResourceVersion, ResourceVersion, VersionMatch};
pub use selector::{
    FieldSelector, LabelSelector, ParseError, ShardField, ShardRange, ShardSelector, shard_hash,
};
pub use status::{Cause, Status, StatusDetails};
pub use watch_event::WatchEvent;
