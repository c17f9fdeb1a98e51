//! Kubernetes' protobuf to JSON and back, driven by tables.
//!
//! A protobuf object is the magic bytes `k8s\0`, then an envelope (`envelope`) that names kind and
//! version, then the object's message. No type is compiled in: `tables` knows every message, its
//! fields and how Go writes them. Bytes become JSON in one pass (`transcode`), without a tree; trees
//! become bytes (`encode`). The hard part is what the wire does not say: which empty fields are
//! written (`absent`), and the dozen messages whose JSON is not an object of their fields (`special`).
//!
//! ```text
//! bytes --transcode--> JSON --serde_json--> tree --encode--> bytes
//!     \--order--/  if fields come twice or out of order
//! ```
//!
//! Objects that clients send are checked against the same tables first (`typed`), and normalised as Go's types would hold
//! them (`canonical`).
//!
//! Fields that the tables do not know are skipped when read, as Go does. They survive when an object is
//! written over its older self (`unknown`).

mod absent;
mod canonical;
mod cut;
mod duration;
mod encode;
mod envelope;
mod error;
mod frame;
mod list;
mod member;
mod object;
mod order;
mod output;
mod quantity;
mod raw_json;
mod special;
mod special_write;
mod stored_fields;
mod tables;
mod text;
mod time;
mod transcode;
mod typed;
mod unknown;
pub mod wire;

#[cfg(test)]
mod tests;

pub use canonical::empty_at;
pub use canonical::{complete, settle};
pub use envelope::{MAGIC, decode, encode, encode_over, encode_value, to_json};
pub use error::{Broken, DecodeError, WireError};
pub use frame::event_frame;
pub use list::{LIST_END, ListItemHead, list_head, list_item, list_item_head};
pub use object::{ObjectError, item_at, json, object, tree};
pub use quantity::{QuantityFamily, quantity_text};
pub use stored_fields::StoredFields;
pub use tables::{Kind, kind};
pub use typed::{TypeError, check_types};
