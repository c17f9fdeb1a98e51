//! Update of an object by a function of its current content.
//!
//! The content tried first may come from a cache. Then an error of the function, or its result that nothing changed, is
//! returned only after it was repeated on content read from the store.

use std::sync::Arc;

use bytes::Bytes;

use super::state::State;
use super::store::Store;
use crate::codec::{self, MAGIC};
use crate::meta::Object;
use crate::storage::backend::Op;
use crate::storage::{StorageError, TryUpdate, UpdateOptions};

/// Maximum number of attempts of an update, each of which lost a race against another writer that succeeded.
const ATTEMPTS_MAX: u32 = 1_000;

/// The content to be written next.
struct Proposal {
    stored: Bytes,
    object: Object,
    ttl: Option<u64>,
}

/// See [`crate::storage::Interface::guaranteed_update`]. The key is the full one.
pub(super) async fn guaranteed_update(
    store: &Store,
    key: &str,
    options: UpdateOptions,
    update: &mut dyn TryUpdate,
) -> Result<Arc<Object>, StorageError> {
    let ignore_not_found = options.ignore_not_found;
    let mut state = match State::cached(options.cached_existing.clone()) {
        Some(cached) => cached,
        None => State::read(store, key, ignore_not_found).await?,
    };
    for _ in 0..ATTEMPTS_MAX {
        let proposal = match propose(store, key, &options, &state, update).await {
            Ok(proposal) => proposal,
            Err(refusal) if state.current => return Err(refusal),
            Err(refusal) => {
                let fresh = State::read(store, key, ignore_not_found).await?;
                let by_caller = matches!(refusal, StorageError::Rejected(_));
                if by_caller && fresh.revision == state.revision {
                    return Err(refusal);
                }
                state = fresh;
                continue;
            }
        };
        if proposal.stored == state.stored && !state.stale {
            if !state.current {
                state = State::read(store, key, ignore_not_found).await?;
            }
            match state.object.clone() {
                Some(object) if proposal.stored == state.stored && !state.stale => {
                    return Ok(object);
                }
                _ => continue,
            }
        }
        let get = Op::Get {
            key: key.to_owned(),
        };
        let response = store
            .put(
                key,
                state.revision,
                proposal.stored,
                proposal.ttl,
                Some(get),
            )
            .await?;
        if response.succeeded {
            return Ok(Arc::new(proposal.object.at_revision(response.revision)));
        }
        let (found, revision) = (response.found, response.revision);
        state = State::from_response(store, key, found, revision, ignore_not_found).await?;
    }
    Err(StorageError::Conflict {
        key: key.to_owned(),
        revision: state.revision,
    })
}

/// Calls the update function on `state`.
async fn propose(
    store: &Store,
    key: &str,
    options: &UpdateOptions,
    state: &State,
    update: &mut dyn TryUpdate,
) -> Result<Proposal, StorageError> {
    match state.object.as_deref() {
        Some(object) => options.preconditions.check(key, object)?,
        None => options.preconditions.check_absent(key)?,
    }
    let updated = update
        .try_update(state.object.as_deref())
        .await
        .map_err(StorageError::Rejected)?;
    let (mut stored, object) = store.encode(&updated.object, &state.stored)?;
    if let Some(existing) = &state.object
        && differs_in_order_alone(&state.stored, &stored)
        && same_content(existing, &object)?
    {
        stored = state.stored.clone();
    }
    Ok(Proposal {
        stored,
        object,
        ttl: updated.ttl,
    })
}

/// Returns true if two protobuf forms may be the same object, whose map entries another server writes in another order:
/// that of keys inside of managed fields. In canonical JSON the order is part of the layout.
///
/// Then both have the same bytes, each as often. Most updates change some byte and no length, such as the renewal of a
/// Lease, and are told apart here: a comparison of trees takes as long as a fifth of the whole update.
fn differs_in_order_alone(one: &Bytes, other: &Bytes) -> bool {
    one.len() == other.len()
        && one != other
        && one.starts_with(&MAGIC)
        && have_the_same_bytes(one, other)
}

/// Returns true if two texts of one length have the same bytes in whatever order.
fn have_the_same_bytes(one: &[u8], other: &[u8]) -> bool {
    let mut surplus = [0_i64; 256];
    for (a, b) in one.iter().zip(other).filter(|(a, b)| a != b) {
        surplus[usize::from(*a)] += 1;
        surplus[usize::from(*b)] -= 1;
    }
    surplus.iter().all(|count| *count == 0)
}

fn same_content(existing: &Object, proposed: &Object) -> Result<bool, StorageError> {
    let tree = |object: &Object| {
        codec::tree(&object.at_revision(0)).map_err(|error| StorageError::Internal {
            message: error.to_string(),
        })
    };
    Ok(tree(existing)? == tree(proposed)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::meta::FieldSchema;

    #[test]
    fn only_protobuf_of_one_length_may_differ_in_order_alone() {
        let bytes = |magic: &[u8], rest: &str| Bytes::from([magic, rest.as_bytes()].concat());
        let (one, other) = (bytes(&MAGIC, "ab"), bytes(&MAGIC, "ba"));
        assert!(differs_in_order_alone(&one, &other));
        assert!(!differs_in_order_alone(&one, &one.clone()));
        assert!(!differs_in_order_alone(&one, &bytes(&MAGIC, "bb")));
        assert!(!differs_in_order_alone(&one, &bytes(&MAGIC, "bac")));
        assert!(!differs_in_order_alone(
            &bytes(b"{", "ab"),
            &bytes(b"{", "ba")
        ));
    }

    proptest! {
        #[test]
        fn forms_with_the_same_bytes_are_orders_of_each_other(one in "[a-c]{4}", other in "[a-c]{4}") {
            let sorted = |text: &str| {
                let mut bytes = text.as_bytes().to_vec();
                bytes.sort_unstable();
                bytes
            };
            let same = have_the_same_bytes(one.as_bytes(), other.as_bytes());
            prop_assert_eq!(same, sorted(&one) == sorted(&other));
        }
    }

    #[test]
    fn content_is_compared_without_revisions() {
        let object = |name: &str, revision| {
            let value =
                json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}});
            Object::from_value(&value, revision, &FieldSchema::default()).expect("an object")
        };
        let one = object("a", 5);
        assert!(same_content(&one, &object("a", 7)).expect("trees"));
        assert!(!same_content(&one, &object("b", 5)).expect("trees"));
    }
}
