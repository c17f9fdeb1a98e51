//! Reads the stored objects that tokens are in or bound to.

use std::sync::Arc;

use jiff::Timestamp;
use ringwatch::codec;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::Error;
use ringwatch_registry::Store;
use serde::Deserialize;
use serde_json::Value;

use super::TokenError;

/// Maximum number of stored bytes of a Secret with a token. Secrets are decoded on workers that serve others, and those of
/// tokens are small.
const SECRET_BYTES_MAX: usize = 64 << 10;

/// The state of the object that a token is bound to.
pub(crate) enum Found {
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
) -> Result<Found, TokenError> {
    let object = newest(store, namespace, name, |object| object.uid() == uid).await?;
    Ok(match object {
        None => Found::Gone,
        Some(object) if object.uid() != uid => Found::Other(object.uid().to_owned()),
        Some(object) if was_deleted(&object, deleted_by)? => Found::Deleted,
        Some(_) => Found::There,
    })
}

/// Returns a Secret as a tree.
///
/// # Errors
/// [`TokenError::Lookup`] for one that is too large to have a token.
pub(crate) fn secret(object: &Object) -> Result<Value, TokenError> {
    let bytes = object.bytes().len();
    if bytes > SECRET_BYTES_MAX {
        let name = object.name();
        let why = format!("the Secret {name:?} with {bytes} bytes is too large for a token");
        return Err(unreadable(why));
    }
    codec::tree(object).map_err(|error| unreadable(error.to_string()))
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
