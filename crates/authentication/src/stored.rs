//! Reads the stored objects that tokens are in or bound to.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use ringwatch::codec::{self, StoredFields};
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::Error;
use ringwatch_registry::Store;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::TokenError;

/// The state of the object that a token is bound to.
pub(crate) enum ObjectLookup {
    There,
    /// The object is marked for deletion, and has been so for a while.
    Deleted,
    Gone,
    /// Another object has its name, with this uid.
    Other(String),
}

/// Returns options of a read that is answered by the watch cache.
fn from_cache() -> GetOptions {
    GetOptions {
        resource_version: Some(ResourceVersion(0)),
    }
}

/// Returns an object of the watch cache; `None` if it has none of that name.
pub(crate) async fn cached(
    store: &Store,
    namespace: &str,
    name: &str,
) -> Result<Option<Arc<Object>>, TokenError> {
    match store.get(namespace, name, from_cache()).await {
        Ok(object) => Ok(Some(object)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(TokenError::Lookup(error)),
    }
}

/// Returns an object. The watch cache is asked first; it may not know yet of an object that was made just now, so the
/// store is asked if there is none there that suits. An object of the store is returned even if it does not suit.
pub(crate) async fn newest(
    store: &Store,
    namespace: &str,
    name: &str,
    suits: impl Fn(&Object) -> bool,
) -> Result<Option<Arc<Object>>, TokenError> {
    let object = cached(store, namespace, name).await?;
    if let Some(object) = object.filter(|object| suits(object)) {
        return Ok(Some(object));
    }
    match store.get(namespace, name, GetOptions::default()).await {
        Ok(object) => Ok(Some(object)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(TokenError::Lookup(error)),
    }
}

/// Looks for the object of a name and uid. One that was due to be deleted before the second `deleted_by` is deleted.
pub(crate) async fn find(
    store: &Store,
    namespace: &str,
    (name, uid): (&str, &str),
    deleted_by: i64,
) -> Result<ObjectLookup, TokenError> {
    let object = newest(store, namespace, name, |object| object.uid() == uid).await?;
    Ok(match object {
        None => ObjectLookup::Gone,
        Some(object) if object.uid() != uid => ObjectLookup::Other(object.uid().to_owned()),
        Some(object) if was_deleted(&object, deleted_by)? => ObjectLookup::Deleted,
        Some(_) => ObjectLookup::There,
    })
}

/// A Secret, as far as tokens go. Secrets are read on workers that serve others and may be large, so no more of one is
/// decoded than is asked for.
#[derive(Debug)]
pub(crate) enum TokenSecret<'a> {
    Protobuf(StoredFields<'a>),
    Json(JsonSecret<'a>),
}

/// The parts of a Secret that is stored as JSON.
#[derive(Debug, Deserialize)]
pub(crate) struct JsonSecret<'a> {
    #[serde(default)]
    metadata: JsonMetadata,
    #[serde(default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    data: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
}

/// The parts of the metadata of such a Secret.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonMetadata {
    deletion_timestamp: Option<IgnoredAny>,
}

impl<'a> TokenSecret<'a> {
    /// Reads a Secret.
    ///
    /// # Errors
    /// [`TokenError::Lookup`] for one that cannot be read.
    pub(crate) fn new(object: &'a Object) -> Result<Self, TokenError> {
        if let Some(fields) = StoredFields::new(object) {
            return Ok(Self::Protobuf(fields));
        }
        let read = serde_json::from_slice(object.stored());
        let read = read.map_err(|error| unreadable(error.to_string()))?;
        Ok(Self::Json(read))
    }

    /// Returns true if it is marked for deletion.
    pub(crate) fn is_deleted(&self) -> bool {
        match self {
            Self::Protobuf(fields) => fields.has("metadata.deletionTimestamp"),
            Self::Json(json) => json.metadata.deletion_timestamp.is_some(),
        }
    }

    /// Returns its type.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Protobuf(fields) => fields.text("type"),
            Self::Json(json) => &json.kind,
        }
    }

    /// Returns the value of a key of its data; empty if there is none.
    pub(crate) fn data(&self, key: &str) -> Cow<'a, [u8]> {
        match self {
            Self::Protobuf(fields) => fields.entry("data", key).unwrap_or_default().into(),
            Self::Json(json) => {
                let value = json.data.as_ref().and_then(|data| data.get(key));
                let text = value.and_then(|it| serde_json::from_str::<Cow<'_, str>>(it.get()).ok());
                let bytes = text.and_then(|text| STANDARD.decode(&*text).ok());
                bytes.unwrap_or_default().into()
            }
        }
    }
}

/// Returns true if an object was due to be deleted before this second.
fn was_deleted(object: &Object, deleted_by: i64) -> Result<bool, TokenError> {
    #[derive(Deserialize)]
    struct Partial {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        deletion_timestamp: Option<String>,
    }
    let json = codec::json(object).map_err(|error| unreadable(error.to_string()))?;
    let partial: Partial =
        serde_json::from_slice(&json).map_err(|error| unreadable(error.to_string()))?;
    let Some(time) = partial.metadata.deletion_timestamp else {
        return Ok(false);
    };
    let time: Timestamp = time
        .parse()
        .map_err(|error| unreadable(format!("{error}")))?;
    Ok(time.as_second() < deleted_by)
}

fn unreadable(why: String) -> TokenError {
    TokenError::Lookup(Error::Internal(why))
}

#[cfg(test)]
mod tests {
    use ringwatch::meta::FieldSchema;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_secret_is_read_as_it_is_stored() {
        let read = |secret: &Value| {
            let protobuf = codec::encode_value(secret).expect("a kind");
            let forms = [protobuf, secret.to_string().into_bytes()];
            let [first, second] = forms.map(|stored| {
                let object = codec::object(&stored, 7, &FieldSchema::default());
                let object = object.expect("an object");
                let secret = TokenSecret::new(&object).expect("a Secret");
                let data = ["token", "other", "wrong"].map(|key| secret.data(key).len());
                (secret.is_deleted(), secret.kind().to_owned(), data)
            });
            assert_eq!(first, second);
            first
        };
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        assert_eq!(read(&secret), (false, String::new(), [0, 0, 0]));
        secret["type"] = json!("t");
        secret["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        secret["data"] = json!({"token": "YQ==", "other": STANDARD.encode(vec![b'x'; 1 << 20])});
        assert_eq!(read(&secret), (true, "t".to_owned(), [1, 1 << 20, 0]));
    }
}
