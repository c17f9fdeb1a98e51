//! A protobuf list in parts, so that its items can be sent one by one.
//!
//! Only the length of all items must be known before the first: it is part of the envelope.

use serde_json::Value;
use smallvec::SmallVec;

use super::encode;
use super::envelope::{END, begin};
use super::message::FieldType;
use super::tables::kind;
use super::unknown_fields::OldMessage;
use super::wire::{each_varint_byte, put_nested, put_run};

/// The tag and the length of an item.
pub type ListItemHead = SmallVec<[u8; 11]>;

/// Field 2 of a list: an item.
const ITEM_TAG: u8 = 0x12;

/// The bytes after the items of a list.
pub const LIST_END: &[u8] = END;

/// Returns the bytes before the items: the envelope of a list of this version and kind, and its metadata.
#[must_use]
pub fn list_head(
    api_version: &str,
    list_kind: &str,
    metadata: &Value,
    items_bytes: usize,
) -> Vec<u8> {
    let mut list_meta = Vec::new();
    if let Some(meta) = kind(api_version, list_kind).and_then(|it| it.0.field(1))
        && let FieldType::Message(id) = meta.kind
    {
        put_nested(&mut list_meta, 1, |out| {
            encode::message(out, id.message(), Some(metadata), OldMessage::default());
        });
    }
    let mut out = begin(api_version, list_kind);
    put_run(&mut out, 2, list_meta.len() + items_bytes);
    out.extend_from_slice(&list_meta);
    out
}

/// Returns the bytes before the message of an item.
#[must_use]
pub fn list_item_head(message_bytes: usize) -> ListItemHead {
    let mut head = ListItemHead::new();
    head.push(ITEM_TAG);
    each_varint_byte(message_bytes as u64, |byte| head.push(byte));
    head
}

/// Encodes an item of a list, without its version and kind; `None` if its kind has no message.
#[must_use]
pub fn list_item(object: &Value) -> Option<Vec<u8>> {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let kind = kind(text("apiVersion")?, text("kind")?)?;
    let mut out = Vec::new();
    put_nested(&mut out, 2, |out| {
        encode::message(out, kind.0, Some(object), OldMessage::default());
    });
    Some(out)
}
