//! A list of the upstream: its version, its continuation and its objects, each in the form in which it is stored here.

use std::borrow::Cow;
use std::fmt::{self, Formatter};

use bytes::Bytes;
use ringwatch::budget::Share;
use ringwatch::codec::wire::{Content, Fields, put_bytes};
use ringwatch::codec::{MAGIC, WireError};
use ringwatch::storage::StorageError;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::MalformedAnswer;
use super::object_head::{ObjectHead, last_field, object_head, revision};
use super::resource::ResourceType;
use super::upstream::WholeAnswer;

/// The numbers of fields of the list's metadata.
const LIST_VERSION: u32 = 2;
const LIST_CONTINUE: u32 = 3;
const LIST_REMAINING: u32 = 4;

/// Estimate of the bytes of an object in a list beside its own: its head, and where it lies.
const ITEM_BYTES: u64 = 300;

/// A list of the upstream.
#[derive(Debug, Default)]
pub(crate) struct ListPage {
    pub(crate) revision: u64,
    /// The token of the next page; empty on the last one.
    pub(crate) continue_token: String,
    /// The number of objects after this page, if the upstream tells.
    pub(crate) remaining: Option<u64>,
    /// The objects with their versions in them, in the upstream's order.
    pub(crate) items: Vec<(ObjectHead, Bytes)>,
}

#[derive(Deserialize)]
struct JsonList<'a> {
    metadata: JsonListMetadata<'a>,
    /// The whole list, whose items are read one after the other: it may have any number of them.
    #[serde(borrow, default)]
    items: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonListMetadata<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(borrow, rename = "continue", default)]
    continue_token: Option<Cow<'a, str>>,
    remaining_item_count: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonType<'a> {
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
}

impl ListPage {
    /// Decodes a list of objects of a resource.
    ///
    /// # Errors
    /// [`MalformedAnswer`] when it is not a list, or one of its objects has no version or one above the list's;
    /// [`StorageError::OutOfMemory`] when the memory budget has no room for its objects.
    pub(crate) fn decode(
        answer: &WholeAnswer,
        resource: &ResourceType,
        memory: &mut Share,
    ) -> Result<Self, StorageError> {
        let page = match answer.body.strip_prefix(&MAGIC) {
            Some(envelope) if answer.is_protobuf => Self::protobuf(envelope, resource, memory)?,
            _ => Self::json(&answer.body, resource, memory)?,
        };
        match page
            .items
            .iter()
            .find(|(it, _)| it.revision > page.revision)
        {
            Some((head, _)) => Err(MalformedAnswer(format!(
                "{:?} of version {} is in a list of version {}",
                head.name, head.revision, page.revision
            ))
            .into()),
            None => Ok(page),
        }
    }

    fn json(
        body: &[u8],
        resource: &ResourceType,
        memory: &mut Share,
    ) -> Result<Self, StorageError> {
        let malformed = |error: serde_json::Error| MalformedAnswer(error.to_string());
        let list: JsonList<'_> = serde_json::from_slice(body).map_err(malformed)?;
        let metadata = list.metadata;
        let mut page = Self {
            revision: revision(&metadata.resource_version)?,
            continue_token: metadata.continue_token.unwrap_or_default().into_owned(),
            remaining: metadata.remaining_item_count,
            items: Vec::new(),
        };
        if let Some(items) = list.items {
            each_item(items, |text| {
                let types: JsonType<'_> = serde_json::from_str(text).map_err(malformed)?;
                let bytes = match types.kind.is_some() && types.api_version.is_some() {
                    true => Bytes::copy_from_slice(text.as_bytes()),
                    false => typed(text, resource).into(),
                };
                page.add(bytes, memory)
            })?;
        }
        Ok(page)
    }

    /// Adds an object, if there is memory for it.
    fn add(&mut self, bytes: Bytes, memory: &mut Share) -> Result<(), StorageError> {
        memory.admit(ITEM_BYTES + bytes.len() as u64)?;
        self.items.push((object_head(&bytes)?, bytes));
        Ok(())
    }

    fn protobuf(
        envelope: &[u8],
        resource: &ResourceType,
        memory: &mut Share,
    ) -> Result<Self, StorageError> {
        let malformed = |error: WireError| MalformedAnswer(error.to_string());
        let message = last_field(envelope, 2).map_err(malformed)?;
        let mut page = Self::default();
        let envelope_head = envelope_head(resource);
        let mut fields = Fields::new(message);
        while let Some((number, content)) = fields.next_field().map_err(malformed)? {
            match (number, content) {
                (1, Content::Bytes(metadata)) => page.metadata(metadata)?,
                (2, Content::Bytes(item)) => {
                    let mut bytes = Vec::with_capacity(envelope_head.len() + item.len() + 16);
                    bytes.extend_from_slice(&envelope_head);
                    put_bytes(&mut bytes, 2, item);
                    // The encoding and the type of the content: none, as in objects that come alone.
                    put_bytes(&mut bytes, 3, b"");
                    put_bytes(&mut bytes, 4, b"");
                    page.add(bytes.into_boxed_slice().into(), memory)?;
                }
                _ => {}
            }
        }
        match page.revision {
            0 => Err(MalformedAnswer("a list has no resource version".to_owned()).into()),
            _ => Ok(page),
        }
    }

    fn metadata(&mut self, metadata: &[u8]) -> Result<(), MalformedAnswer> {
        let malformed = |error: WireError| MalformedAnswer(error.to_string());
        let text = |bytes| String::from_utf8_lossy(bytes);
        let mut fields = Fields::new(metadata);
        while let Some((number, content)) = fields.next_field().map_err(malformed)? {
            match (number, content) {
                (LIST_VERSION, Content::Bytes(version)) => {
                    self.revision = revision(&text(version))?;
                }
                (LIST_CONTINUE, Content::Bytes(token)) => {
                    self.continue_token = text(token).into_owned();
                }
                (LIST_REMAINING, Content::Varint(count)) => self.remaining = Some(count),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads the items of a list in JSON until one cannot be taken.
fn each_item<'a>(
    items: &'a RawValue,
    mut take: impl FnMut(&'a str) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    struct Items<'f, F>(&'f mut F);
    impl<'a, F: FnMut(&'a str) -> bool> Visitor<'a> for Items<'_, F> {
        type Value = ();

        fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str("a list of objects")
        }

        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_seq<S: SeqAccess<'a>>(self, mut items: S) -> Result<(), S::Error> {
            while let Some(item) = items.next_element::<&RawValue>()? {
                if !(self.0)(item.get()) {
                    return Err(S::Error::custom("an item is not taken"));
                }
            }
            Ok(())
        }
    }
    let mut refused = None;
    let mut taken = |item: &'a str| {
        refused = take(item).err();
        refused.is_none()
    };
    let mut text = serde_json::Deserializer::from_str(items.get());
    let read = text.deserialize_any(Items(&mut taken));
    match refused {
        Some(error) => Err(error),
        None => read.map_err(|error| MalformedAnswer(error.to_string()).into()),
    }
}

/// Returns the magic bytes and the part of an object's envelope before its message.
fn envelope_head(resource: &ResourceType) -> Vec<u8> {
    let mut types = Vec::new();
    put_bytes(&mut types, 1, resource.api_version().as_bytes());
    put_bytes(&mut types, 2, resource.kind.as_bytes());
    let mut head = MAGIC.to_vec();
    put_bytes(&mut head, 1, &types);
    head
}

/// Returns an object's JSON with its kind and version, which items of lists of built-in resources lack.
fn typed(item: &str, resource: &ResourceType) -> String {
    let (kind, api_version) = (&resource.kind, resource.api_version());
    let rest = item.trim_start().strip_prefix('{').unwrap_or(item);
    let comma = if rest.trim_start().starts_with('}') {
        ""
    } else {
        ","
    };
    format!("{{\"kind\":{kind:?},\"apiVersion\":{api_version:?}{comma}{rest}")
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use ringwatch::budget::{Account, Ledger};
    use ringwatch::codec;
    use ringwatch::meta::FieldSchema;
    use serde_json::json;

    use super::*;

    fn resource() -> ResourceType {
        ResourceType {
            group: String::new(),
            version: "v1".to_owned(),
            resource: "configmaps".to_owned(),
            kind: "ConfigMap".to_owned(),
            is_namespaced: true,
            prefix: "/configmaps/".to_owned(),
        }
    }

    fn answer(body: impl Into<Bytes>, is_protobuf: bool) -> WholeAnswer {
        WholeAnswer {
            status: StatusCode::OK,
            is_protobuf,
            body: body.into(),
        }
    }

    fn decode(answer: &WholeAnswer) -> Result<ListPage, StorageError> {
        let mut memory = Ledger::unlimited().share(Account::Requests);
        ListPage::decode(answer, &resource(), &mut memory)
    }

    #[test]
    fn both_encodings_are_the_same_list() {
        let item = json!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "6"},
            "data": {"k": "v"}});
        let metadata = json!({"resourceVersion": "7", "continue": "t", "remainingItemCount": 3});
        let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata,
            "items": [item]});
        let kind = codec::kind("v1", "ConfigMapList").expect("a kind");
        for answer in [
            answer(list.to_string(), false),
            answer(codec::encode(kind, &list), true),
        ] {
            let page = decode(&answer).expect("a list");
            assert_eq!((page.revision, page.remaining), (7, Some(3)));
            assert_eq!(page.continue_token, "t");
            let (head, bytes) = &page.items[0];
            assert_eq!((head.name.as_str(), head.revision), ("a", 6));
            let object = codec::object(bytes, 6, &FieldSchema::default()).expect("an object");
            let tree = codec::tree(&object).expect("a tree");
            assert_eq!(tree["kind"], "ConfigMap");
            assert_eq!(tree["apiVersion"], "v1");
            assert_eq!(tree["data"]["k"], "v");
            assert_eq!(tree["metadata"]["resourceVersion"], "6");
        }
    }

    #[test]
    fn lists_that_contradict_themselves_are_refused() {
        for body in [
            "",
            "{}",
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}"#,
            r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","resourceVersion":"8"}}]}"#,
        ] {
            decode(&answer(body, false)).expect_err(body);
        }
        decode(&answer(&b"k8s\0\x12\xff"[..], true)).expect_err("broken");
        decode(&answer(&b"k8s\0"[..], true)).expect_err("no version");
    }

    #[test]
    fn the_objects_of_a_list_need_memory() {
        let item = json!({"metadata": {"name": "a", "resourceVersion": "6"}});
        let list = json!({"kind": "ConfigMapList", "apiVersion": "v1",
            "metadata": {"resourceVersion": "7"}, "items": vec![item; 100]});
        let kind = codec::kind("v1", "ConfigMapList").expect("a kind");
        for answer in [
            answer(list.to_string(), false),
            answer(codec::encode(kind, &list), true),
        ] {
            let mut memory = Ledger::new(80_000).share(Account::Requests);
            let page = ListPage::decode(&answer, &resource(), &mut memory).expect("there is room");
            assert_eq!(page.items.len(), 100);
            assert!(memory.bytes() > 100 * ITEM_BYTES);
            let mut memory = Ledger::new(20_000).share(Account::Requests);
            let refused = ListPage::decode(&answer, &resource(), &mut memory);
            let refused = refused.expect_err("there is no room");
            assert!(matches!(refused, StorageError::OutOfMemory(_)), "{refused}");
        }
    }

    /// The memory of a list of very many items is not taken before the first of them is looked at.
    #[test]
    fn the_first_item_that_is_none_ends_the_list() {
        let body = format!(
            r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{}{{}}]}}"#,
            "{},".repeat(100_000)
        );
        let mut memory = Ledger::unlimited().share(Account::Requests);
        let refused = ListPage::decode(&answer(body, false), &resource(), &mut memory);
        refused.expect_err("it has no version");
        assert!(memory.bytes() < 1_000);
        let none = answer(
            r#"{"metadata":{"resourceVersion":"7"},"items":null}"#,
            false,
        );
        assert!(decode(&none).expect("a list").items.is_empty());
    }
}
