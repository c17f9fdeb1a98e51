//! The messages of protobuf that the client writes and reads, with the fields that it needs of each, by the numbers of
//! Kubernetes' definitions. Other fields are skipped.
//!
//! Kubernetes wraps every object: four bytes, then an [`Envelope`]. Events and the envelopes in them are read without
//! these messages, by [`bytes`]: a message owns its fields, and a copy of each object would be the client's
//! largest cost with ten thousand watches.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use ringwatch::codec::MAGIC;
use ringwatch::codec::wire::{Content, Fields};

const ENVELOPE_OBJECT: u32 = 2;

/// `runtime.Unknown`: the type of an object, and the object.
#[derive(Clone, PartialEq, Message)]
struct Envelope {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    object: Bytes,
}

/// `runtime.TypeMeta`.
#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

/// `meta/v1.WatchEvent`, which is only written.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchEvent {
    #[prost(string, tag = "1")]
    pub(super) r#type: String,
    #[prost(message, optional, tag = "2")]
    pub(super) object: Option<RawExtension>,
}

/// `runtime.RawExtension`: an object with its envelope.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RawExtension {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) raw: Bytes,
}

/// `meta/v1.Status`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusMessage {
    #[prost(string, tag = "3")]
    pub(super) message: String,
    #[prost(string, tag = "4")]
    pub(super) reason: String,
    #[prost(message, optional, tag = "5")]
    pub(super) details: Option<StatusDetails>,
    #[prost(int32, tag = "6")]
    pub(super) code: i32,
}

/// `meta/v1.StatusDetails`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusDetails {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

/// `meta/v1.ListMeta`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListMeta {
    #[prost(string, tag = "2")]
    pub(crate) resource_version: String,
    #[prost(string, tag = "3")]
    pub(crate) r#continue: String,
}

/// A list of any type, without its items.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ListWithoutItems {
    #[prost(message, optional, tag = "1")]
    pub(super) metadata: Option<ListMeta>,
}

/// `meta/v1.ObjectMeta`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ObjectMeta {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "6")]
    pub(crate) resource_version: String,
    #[prost(btree_map = "string, string", tag = "11")]
    pub(crate) labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// `core/v1.ConfigMap`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConfigMap {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ObjectMeta>,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) data: BTreeMap<String, String>,
}

/// `core/v1.Secret`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Secret {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ObjectMeta>,
    #[prost(string, tag = "3")]
    pub(crate) r#type: String,
}

/// `core/v1.SecretList`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SecretList {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ListMeta>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) items: Vec<Secret>,
}

/// `core/v1.Pod`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodMessage {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<PodSpec>,
}

/// `core/v1.PodSpec`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodSpec {
    #[prost(message, repeated, tag = "2")]
    pub(crate) containers: Vec<Container>,
    #[prost(string, tag = "10")]
    pub(crate) node_name: String,
    #[prost(bool, optional, tag = "21")]
    pub(crate) automount_service_account_token: Option<bool>,
}

/// `core/v1.Container`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Container {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) image: String,
}

/// Puts an object into its envelope.
pub(crate) fn envelope(api_version: &str, kind: &str, object: &impl Message) -> Bytes {
    let envelope = Envelope {
        type_meta: Some(TypeMeta {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        }),
        object: object.encode_to_vec().into(),
    };
    [&MAGIC[..], &envelope.encode_to_vec()].concat().into()
}

/// Returns the content of an envelope.
pub(crate) fn unwrap_envelope(envelope: &[u8]) -> Option<&[u8]> {
    bytes(envelope.strip_prefix(&MAGIC)?, ENVELOPE_OBJECT)
}

/// Decodes the object in an envelope.
pub(crate) fn decode_enveloped<M: Message + Default>(envelope: &[u8]) -> Option<M> {
    M::decode(unwrap_envelope(envelope)?).ok()
}

/// Returns the first field with this number that holds bytes: a string, or a message.
pub(super) fn bytes(message: &[u8], number: u32) -> Option<&[u8]> {
    let mut fields = Fields::new(message);
    while let Ok(Some((found, value))) = fields.next_field() {
        match value {
            Content::Bytes(bytes) if found == number => return Some(bytes),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        Secret {
            metadata: Some(ObjectMeta {
                name: "name".to_owned(),
                resource_version: "7".to_owned(),
                labels: BTreeMap::new(),
                annotations: [("key".to_owned(), "value".to_owned())].into(),
            }),
            r#type: "text".to_owned(),
        }
    }

    #[test]
    fn an_object_is_read_out_of_its_envelope() {
        let envelope = envelope("v1", "Secret", &secret());
        assert_eq!(decode_enveloped(&envelope), Some(secret()));
        assert_eq!(decode_enveloped::<Secret>(b"k8s"), None);
        assert_eq!(decode_enveloped::<Secret>(b"{}"), None);
    }

    #[test]
    fn broken_messages_hold_nothing() {
        let status = StatusMessage {
            message: "one".to_owned(),
            ..StatusMessage::default()
        };
        let message = status.encode_to_vec();
        assert_eq!(bytes(&message, 3), Some(&b"one"[..]));
        assert_eq!(bytes(&message, 4), None);
        for length in 0..message.len() {
            assert_eq!(bytes(&message[..length], 3), None);
        }
        assert_eq!(bytes(&[0xff; 20], 1), None);
    }

    /// Kubernetes' own definitions read what is written.
    #[test]
    fn other_definitions_read_an_object() {
        let encoded = secret().encode_to_vec();
        let decoded = k8s_pb::api::core::v1::Secret::decode(&encoded[..]).expect("protobuf");
        let metadata = decoded.metadata.expect("metadata");
        assert_eq!(metadata.name.as_deref(), Some("name"));
        assert_eq!(metadata.annotations["key"], "value");
        assert_eq!(decoded.r#type.as_deref(), Some("text"));
    }
}
