//! Kubernetes' protobuf to JSON and back, driven by tables.
//!
//! A protobuf object is the magic bytes `k8s\0`, then an envelope (`envelope`) with kind and version, then the object's
//! message. No type is compiled in: `tables` has every message, its fields and how Go writes them. Bytes become JSON in
//! one pass (`transcode`), without a tree; trees become bytes (`encode`). The hard part is JSON that does not follow
//! from the bytes: empty fields that Go writes (`absent_field`), and the dozen messages whose JSON is not an object
//! with a member for each field (`transcode::custom` and `encode::custom`).
//!
//! ```text
//! bytes --transcode--> JSON --serde_json--> tree --encode--> bytes
//!     \--field_order--/  if fields occur twice or out of order
//!                      JSON --encode_text-----------------> bytes
//! ```
//!
//! The last is for JSON that this server has written: lists and watches in protobuf of objects that are stored as JSON.
//!
//! Objects that clients send are checked against the same tables first (`typed`), and normalised as Go's types would
//! hold them (`canonical`).
//!
//! Fields that the tables do not have are skipped when an object is decoded, as in Go. They are kept when an object
//! replaces its older self (`unknown_fields`).

mod absent_field;
mod canonical;
pub(crate) mod duration;
mod encode;
mod encode_text;
mod envelope;
mod equal_quantities;
mod error;
mod field_order;
mod field_split;
mod frame;
mod go_json;
mod json_nodes;
mod json_string;
mod list;
mod message;
mod object;
mod output;
mod presence;
mod quantity;
mod raw_json;
mod scalar;
mod stored_fields;
mod tables;
mod time;
mod transcode;
mod typed;
mod unknown_fields;
mod value_type;
mod whole_object;
pub mod wire;

#[cfg(test)]
mod tests;

pub use canonical::{canonicalize, canonicalize_metadata, complete, complete_with_nulls, empty_at};
pub use encode_text::{encode_text, list_item_of_text};
pub use envelope::MAGIC;
pub use equal_quantities::with_quantities_of;
pub use error::{Broken, DecodeError, WireError};
pub use frame::{FRAME_LENGTH_BYTES, event_frame};
pub use list::{LIST_END, ListItemHead, list_head, list_item, list_item_head};
pub use message::Kind;
pub use object::{ObjectError, item_at, json, object, object_encoded, object_sharing, tree};
pub use presence::{Presence, RequiredValue};
pub use quantity::{QuantityFamily, quantity_text};
pub use stored_fields::StoredFields;
pub use tables::{is_of_every_version, is_unversioned, kind};
pub use typed::{
    ConversionError, TypeError, are_managed_fields, base64, check_merged_types, check_metadata,
    check_types, convert,
};
pub use value_type::{ItemType, MemberTypes, StructType, ValueType};
pub use whole_object::{decode, encode, encode_over, encode_value, to_json};
