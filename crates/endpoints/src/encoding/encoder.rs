//! The objects of a resource in the form that a client asked for.
//!
//! Encodings that depend only on the object are made once and shared through the [`EncodingCache`]. An item of a list
//! in the form of storage is not made: it is the stored bytes with the version in between.

use std::sync::Arc;

use bytes::Bytes;
use ringwatch::codec;
use ringwatch::codec::ListItemHead;
use ringwatch::meta::{EncodingKey, Object, StoredForm, VersionedObject};
use ringwatch_registry::Store;
use serde_json::Value;

use super::cache::{EncodingCache, ListRoom};
use super::frame;
use crate::errors::Failure;
use crate::negotiation::{Format, ObjectForm, Output};

/// Encodes the objects of a resource in one negotiated form, by way of the cache of encodings.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    cache: EncodingCache,
    store: Arc<Store>,
    format: Format,
    /// True if only metadata is encoded: PartialObjectMetadata.
    partial: bool,
    /// The bits that the cache keys of all its encodings have in common.
    key: u32,
}

/// An item of a list whose bytes are a part of the stored ones.
#[derive(Debug)]
pub(crate) struct StoredItem<'a> {
    /// The bytes that come before it in the list.
    pub(crate) head: ListItemHead,
    /// The object, or the part of it that is sent.
    pub(crate) body: VersionedObject<'a>,
}

/// The length of the items of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemsLength {
    /// The bytes of all items together.
    pub(crate) bytes: usize,
    /// The number of items, from the first on, whose encodings are cached.
    pub(crate) cached: usize,
}

/// The purpose of an encoding, which decides what surrounds the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum What {
    /// An ADDED event.
    Added,
    /// A MODIFIED event.
    Modified,
    /// A DELETED event.
    Deleted,
    /// An item of a list.
    Item,
}

/// The bit of a cache key that is set for metadata alone.
const KEY_PARTIAL: u32 = 1 << 2;
/// The bit of a cache key that is set for protobuf.
const KEY_PROTOBUF: u32 = 1 << 3;
/// The bit of a cache key that is set for a compressed block of a list.
const KEY_BLOCK: u32 = 1 << 4;
/// The bit of a cache key that is set for the first block of a list.
const KEY_FIRST_BLOCK: u32 = 1 << 5;
/// The position of the served version in a cache key, in bits.
const KEY_VERSION_SHIFT: u32 = 6;

impl Encoder {
    /// Creates an encoder of the objects of a store, for a watch or for a list.
    pub(crate) fn new(cache: EncodingCache, store: Arc<Store>, output: Output) -> Self {
        let partial = output.form != ObjectForm::Whole;
        let version = cache.version(&store.resource().group_version);
        let mut key = version << KEY_VERSION_SHIFT;
        if partial {
            key |= KEY_PARTIAL;
        }
        if output.format == Format::Protobuf {
            key |= KEY_PROTOBUF;
        }
        Self {
            cache,
            store,
            format: output.format,
            partial,
            key,
        }
    }

    /// Returns the store of the objects.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns numbers that are equal for encoders of the same objects in the same form: the place of the store, and
    /// the key, which says the form.
    pub(crate) fn class(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.store).addr(), self.key)
    }

    /// Returns the encoding of items; indented JSON and YAML are made of JSON.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Encodes an event about an object, or an item of a list.
    ///
    /// # Errors
    /// 500 when the object cannot be converted or written.
    pub(crate) fn encode(&self, what: What, object: &Arc<Object>) -> Result<Bytes, Failure> {
        let key = EncodingKey(self.key | what as u32);
        self.cache
            .get_or_make(object, key, || self.make(what, object))
    }

    /// Returns an item whose stored bytes can be sent as they are; JSON comes without its opening brace. Items of
    /// custom resources tell their kind, others leave it to the list.
    pub(crate) fn stored_item<'a>(&self, object: &'a Object) -> Option<StoredItem<'a>> {
        if !self.sends_stored(object) {
            return None;
        }
        let body = if self.store.resource().is_custom() {
            object.item_with_kind()
        } else {
            object.item()
        };
        let head = item_head(object.form(), body.len());
        debug_assert_eq!(
            self.stored_item_len(object),
            Some(head.len() + body.len()),
            "a list is as long as its head says"
        );
        Some(StoredItem { head, body })
    }

    /// Returns the length of [`Encoder::stored_item`] without a look at the stored bytes.
    fn stored_item_len(&self, object: &Object) -> Option<usize> {
        if !self.sends_stored(object) {
            return None;
        }
        let body = if self.store.resource().is_custom() {
            object.item_with_kind_len()
        } else {
            object.item_len()
        };
        Some(item_head(object.form(), body).len() + body)
    }

    /// Returns true if the stored bytes of an object are what the client gets.
    fn sends_stored(&self, object: &Object) -> bool {
        let is_protobuf = self.format == Format::Protobuf;
        !self.partial
            && (object.form() == StoredForm::Protobuf) == is_protobuf
            && !self.store.converts_objects()
    }

    /// Encodes an item of a list without caching it.
    ///
    /// # Errors
    /// 500 when the object cannot be converted or written, as [`Encoder::encode`].
    pub(crate) fn encode_item_once(&self, object: &Arc<Object>) -> Result<Bytes, Failure> {
        self.make(What::Item, object)
    }

    /// Returns the length of all items together, and caches the encodings of as many as there is room for. Other tasks
    /// get their turn in between.
    ///
    /// # Errors
    /// 500 when an object cannot be converted or written, as [`Encoder::encode`].
    pub(crate) async fn items_length(
        &self,
        objects: &[Arc<Object>],
    ) -> Result<ItemsLength, Failure> {
        let mut length = ItemsLength {
            bytes: 0,
            cached: 0,
        };
        let mut room = self.cache.list_room();
        for (position, object) in objects.iter().enumerate() {
            if let Some(bytes) = self.stored_item_len(object) {
                length.bytes += bytes;
                continue;
            }
            tokio::task::consume_budget().await;
            length.bytes += if room.is_left() {
                let item = self.encode(What::Item, object)?;
                room.take(item.len());
                length.cached = position + 1;
                item.len()
            } else {
                self.encode_item_once(object)?.len()
            };
        }
        Ok(length)
    }

    /// Returns true if the items together have so many bytes. No more of them are encoded than that takes.
    ///
    /// # Errors
    /// 500 when an object cannot be converted or written, as [`Encoder::encode`].
    pub(crate) async fn items_reach(
        &self,
        objects: &[Arc<Object>],
        bytes: u64,
    ) -> Result<bool, Failure> {
        let mut sum = 0;
        for object in objects {
            if sum >= bytes {
                break;
            }
            sum += match self.stored_item_len(object) {
                Some(bytes) => bytes as u64,
                None => {
                    tokio::task::consume_budget().await;
                    self.encode(What::Item, object)?.len() as u64
                }
            };
        }
        Ok(sum >= bytes)
    }

    /// Appends an item of a list, without caching its encoding.
    ///
    /// # Errors
    /// 500 when the object cannot be converted or written, as [`Encoder::encode`].
    pub(crate) fn append_item(
        &self,
        object: &Arc<Object>,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if let Some(item) = self.stored_item(object) {
            out.extend_from_slice(&item.head);
            item.body.put_head(out);
            out.extend_from_slice(item.body.rest());
        } else {
            out.extend_from_slice(&self.encode_item_once(object)?);
        }
        Ok(())
    }

    /// Returns the room in the cache for the items of a list that begins.
    pub(crate) fn list_room(&self) -> ListRoom {
        self.cache.list_room()
    }

    /// Returns the compressed block that is kept for an object, which is the first one of a list or not.
    pub(crate) fn kept_block(&self, object: &Object, is_first: bool) -> Option<Bytes> {
        self.cache.get(object, self.block_key(is_first))
    }

    /// Keeps the compressed block that begins with an object instead of the one that was kept before.
    pub(crate) fn keep_block(&self, object: &Arc<Object>, is_first: bool, block: Bytes) {
        self.cache.replace(object, self.block_key(is_first), block);
    }

    fn block_key(&self, is_first: bool) -> EncodingKey {
        let first = if is_first { KEY_FIRST_BLOCK } else { 0 };
        EncodingKey(self.key | KEY_BLOCK | first)
    }

    /// Encodes a bookmark with this revision. `initial_events_end` marks the one that ends the initial events.
    ///
    /// # Errors
    /// 500 when the kind cannot be written.
    pub(crate) fn bookmark(
        &self,
        revision: u64,
        initial_events_end: bool,
    ) -> Result<Bytes, Failure> {
        let resource = self.store.resource();
        let object = frame::bookmark(resource, self.partial, revision, initial_events_end);
        frame::event(self.format, "BOOKMARK", object.as_bytes())
    }

    /// Encodes the `ERROR` event that ends a failed watch; empty if not even that can be written.
    pub(crate) fn error(&self, failure: &Failure) -> Bytes {
        let status = serde_json::to_vec(failure.status()).unwrap_or_default();
        // A Status has every form, so this does not fail; if it did, the watch would end without an event.
        frame::event(self.format, "ERROR", &status).unwrap_or_default()
    }

    fn make(&self, what: What, object: &Arc<Object>) -> Result<Bytes, Failure> {
        let served = self.store.to_served(Arc::clone(object));
        let served = served.map_err(Failure::internal)?;
        if let (StoredForm::Protobuf, Format::Protobuf, false, Some(event)) =
            (served.form(), self.format, self.partial, what.event())
        {
            return Ok(frame::protobuf_event(event, &served.bytes()));
        }
        let mut json = codec::json(&served).map_err(Failure::internal)?;
        if self.partial {
            let partial = frame::partial_metadata(&json, "v1").map_err(Failure::internal)?;
            json = partial.into();
        }
        match what.event() {
            Some(event) => frame::event(self.format, event, &json),
            None if self.format == Format::Protobuf => protobuf_item(&json),
            None if self.partial || self.store.resource().is_custom() => Ok(json.slice(1..)),
            None => Ok(json.slice(codec::item_at(&json)..)),
        }
    }
}

/// Returns the bytes that come before an item of so many bytes in a list.
fn item_head(form: StoredForm, bytes: usize) -> ListItemHead {
    match form {
        StoredForm::Json => ListItemHead::default(),
        StoredForm::Protobuf => codec::list_item_head(bytes),
    }
}

impl What {
    /// Returns the type of the watch event; `None` for an item of a list.
    fn event(self) -> Option<&'static str> {
        match self {
            Self::Added => Some("ADDED"),
            Self::Modified => Some("MODIFIED"),
            Self::Deleted => Some("DELETED"),
            Self::Item => None,
        }
    }
}

/// Encodes an object of a list in protobuf, as a field of the list message.
fn protobuf_item(json: &[u8]) -> Result<Bytes, Failure> {
    let item = match codec::list_item_of_text(json) {
        Some(item) => item,
        None => {
            let value: Value = serde_json::from_slice(json).map_err(Failure::internal)?;
            codec::list_item(&value)
                .ok_or_else(|| Failure::internal("a kind without a form in protobuf"))?
        }
    };
    // It may be cached for long, so its spare capacity is freed.
    Ok(item.into_boxed_slice().into())
}
