//! Looking up what an object names: in memory first, and in the store if it is not there, since a cache may not know
//! yet of what was created just now.

use std::sync::Arc;

use ringwatch::codec;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{GetOptions, Interface};
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::validation::formats::path_segment;
use serde_json::Value;

/// Returns the error of kube-apiserver's client about a name that no path can have; `None` for others.
#[must_use]
pub fn unaskable(name: &str) -> Option<String> {
    let wrong = path_segment(name, false);
    (!wrong.is_empty()).then(|| format!("invalid resource name {name:?}: [{}]", wrong.join(" ")))
}

/// Returns the object of a key; `None` if there is none.
pub async fn find(storage: &dyn Interface, key: &str) -> Result<Option<Arc<Object>>, Error> {
    let cached = GetOptions {
        resource_version: Some(ResourceVersion(0)),
    };
    for options in [cached, GetOptions::default()] {
        match storage.get(key, options).await {
            Ok(object) => return Ok(Some(object)),
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(Error::Storage(error)),
        }
    }
    Ok(None)
}

/// Returns the object of a key as a tree; `None` if there is none.
pub async fn find_tree(storage: &dyn Interface, key: &str) -> Result<Option<Value>, Error> {
    let found = find(storage, key).await?;
    Ok(found.map(|it| codec::tree(&it)).transpose()?)
}
