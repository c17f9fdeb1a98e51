//! The messages of the plugin's interface, `v2.KeyManagementService`, and of stored values.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    /// The version of the interface: `v2` or `v2beta1`.
    #[prost(string, tag = "1")]
    pub(super) version: String,
    /// `ok`, or why the plugin is not healthy.
    #[prost(string, tag = "2")]
    pub(super) healthz: String,
    /// The identifier of the key with which the plugin encrypts now.
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DecryptRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) ciphertext: Bytes,
    /// An identifier of the request, for the plugin's log.
    #[prost(string, tag = "2")]
    pub(super) uid: String,
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(super) annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
    /// An identifier of the request, for the plugin's log.
    #[prost(string, tag = "2")]
    pub(super) uid: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) ciphertext: Bytes,
    #[prost(string, tag = "2")]
    pub(super) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub(super) annotations: BTreeMap<String, Vec<u8>>,
}

/// A stored value, after its prefix.
#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptedObject {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) encrypted_data: Bytes,
    #[prost(string, tag = "2")]
    pub(super) key_id: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) encrypted_dek_source: Bytes,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(super) annotations: BTreeMap<String, Vec<u8>>,
    /// The meaning of the decrypted source: 0 is the key itself, 1 a seed of keys.
    #[prost(int32, tag = "5")]
    pub(super) encrypted_dek_source_type: i32,
}

/// Returns an identifier of a request.
pub(super) fn uid() -> String {
    uuid::Uuid::new_v4().to_string()
}
