//! The types that were defined before the server started.
//!
//! They join the feed before it lists anything. So their first lists are of some time ago, like those of
//! built-in types, and clients that watched them before a restart go on where they were.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::storage::cacher::Feed;
use ringwatch::storage::{ListOptions, StorageMediaType, Versioner};
use ringwatch_apiextensions::Definition;
use ringwatch_apimachinery::Error;
use ringwatch_registry::Store;
use ringwatch_registry::storage_factory::{Joined, StorageFactory};

/// How long the feed waits for the definitions. Types that are not known by then join while it runs.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A type that has joined for a definition.
#[derive(Debug)]
pub struct Known {
    definition: Definition,
    joined: Joined,
}

/// Known types by the names of their definitions.
pub type KnownTypes = BTreeMap<String, Known>;

/// Joins the types of all definitions that are stored and can be read.
pub async fn join_known(factory: &StorageFactory, feed: &Feed, definitions: &Store) -> KnownTypes {
    let read = read_all(factory, definitions);
    let read = factory.clock.timeout(READ_TIMEOUT, read).await;
    let stored = match read {
        Ok(Ok(stored)) => stored,
        Ok(Err(error)) => {
            tracing::warn!(%error, "watches of custom resources may have to list again");
            return KnownTypes::new();
        }
        Err(_) => return KnownTypes::new(),
    };
    let established = stored.into_iter().filter(|it| it.has("Established"));
    established
        .map(|definition| {
            let joined = join(factory, feed, &definition);
            let name = definition.name().to_owned();
            (name, Known { definition, joined })
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

/// The storage of what a definition defines. Its cache is fed from now on.
pub(super) fn join(factory: &StorageFactory, feed: &Feed, definition: &Definition) -> Joined {
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

/// The type that has joined for a definition, if one has and lies where it is now.
pub(super) fn take(known: &mut KnownTypes, definition: &Definition) -> Option<Joined> {
    let fits = known
        .get(definition.name())
        .is_some_and(|known| known.definition.is_stored_as(definition));
    let known = fits.then(|| known.remove(definition.name()))??;
    Some(known.joined)
}

/// Takes away what nothing was served from.
pub(super) fn leave(known: &mut KnownTypes, factory: &StorageFactory, feed: &Feed) {
    for unused in std::mem::take(known).into_values() {
        factory.leave(feed, &unused.joined);
    }
}
