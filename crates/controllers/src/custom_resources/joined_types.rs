//! The types of custom resources that join the feed, among them those that were defined before the server started.
//!
//! Those join the feed before it lists anything. So their first lists are of an older revision, as for built-in types,
//! and clients that watched them before a restart can resume.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::storage::cacher::Feed;
use ringwatch::storage::{ListOptions, StorageMediaType, Versioner};
use ringwatch_apiextensions::Definition;
use ringwatch_apimachinery::Error;
use ringwatch_registry::Store;
use ringwatch_registry::storage_factory::{JoinedStorage, StorageFactory};

/// Maximum time that the feed waits for the stored definitions. Types that are not known by then join while it runs.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A type that has joined for a definition.
#[derive(Debug)]
pub struct JoinedType {
    definition: Definition,
    joined: JoinedStorage,
}

/// Types that have joined, by the names of their definitions.
pub type JoinedTypes = BTreeMap<String, JoinedType>;

/// Joins the types of all definitions that are stored and can be read.
pub async fn join_stored(
    factory: &StorageFactory,
    feed: &Feed,
    definitions: &Store,
) -> JoinedTypes {
    let read = read_all(factory, definitions);
    let read = factory.clock.timeout(READ_TIMEOUT, read).await;
    let stored = match read {
        Ok(Ok(stored)) => stored,
        Ok(Err(error)) => {
            tracing::warn!(%error, "watches of custom resources may have to list again");
            return JoinedTypes::new();
        }
        Err(_) => return JoinedTypes::new(),
    };
    let served = stored.into_iter().filter(Definition::is_served);
    served
        .map(|definition| {
            let joined = join(factory, feed, &definition);
            let name = definition.name().to_owned();
            (name, JoinedType { definition, joined })
        })
        .collect()
}

/// Returns the stored definitions, past the cache, which is not filled yet.
async fn read_all(factory: &StorageFactory, definitions: &Store) -> Result<Vec<Definition>, Error> {
    let storage = factory.uncached_of(definitions.resource());
    let uncached = Store::new(Arc::clone(definitions.resource()), storage);
    let options = ListOptions {
        skip_corrupt: true,
        ..ListOptions::default()
    };
    let list = uncached.list("", options).await?;
    let served = list.items.iter();
    let served = served.filter_map(|object| uncached.served_value(object).ok());
    Ok(served.map(Definition::new).collect())
}

/// Makes the storage of the resources of a definition. Its cache is fed from now on.
pub(super) fn join(
    factory: &StorageFactory,
    feed: &Feed,
    definition: &Definition,
) -> JoinedStorage {
    let versioner = Versioner::new(definition.selectable_fields());
    factory.join(
        feed,
        &definition.storage_prefix(),
        definition.group(),
        definition.plural(),
        versioner
            .writing(StorageMediaType::Json)
            .completing(Arc::new(definition.completion())),
    )
}

/// Takes out the type that has joined for a definition, if one has and its objects are stored where the definition has
/// them now.
pub(super) fn take(types: &mut JoinedTypes, definition: &Definition) -> Option<JoinedStorage> {
    let fits = types
        .get(definition.name())
        .is_some_and(|it| it.definition.is_stored_as(definition));
    let taken = fits.then(|| types.remove(definition.name()))??;
    Some(taken.joined)
}

/// Removes from the feed the types from which nothing was served.
pub(super) fn leave(types: &mut JoinedTypes, factory: &StorageFactory, feed: &Feed) {
    for unused in std::mem::take(types).into_values() {
        factory.leave(feed, &unused.joined);
    }
}
