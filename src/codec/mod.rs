//! Kubernetes' protobuf, to JSON trees and back, driven by tables.
//!
//! A protobuf object is the magic bytes `k8s\0`, then an envelope (`envelope`) that names kind and
//! version, then the object's message. No type is compiled in: `tables` knows every message, its
//! fields and how Go writes them. The hard part is what the wire does not say: which empty fields
//! are written, and the dozen messages whose JSON is not an object of their fields (`special`).
//!
//! Fields that the tables do not know are skipped when read, as Go does, and are not written.

mod decode;
mod duration;
mod encode;
mod envelope;
mod error;
mod frame;
mod list;
mod special;
mod special_write;
mod tables;
mod time;
mod wire;

#[cfg(test)]
mod tests;

pub use envelope::{MAGIC, decode, encode, encode_value};
pub use error::DecodeError;
pub use frame::event_frame;
pub use list::{LIST_END, list_head, list_item};
pub use tables::{Kind, kind};
