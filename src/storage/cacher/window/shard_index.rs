//! The keys of a type's objects by the hash of a uid or namespace, in a persistent (copy-on-write) ordered set.
//!
//! ```text
//!  uid:  bucket 00 --> /pods/a/one  /pods/b/two  ...      a shard is some buckets in a row:
//!        bucket 01 --> /pods/a/two  ...                   its keys are merged into key order
//!        ...
//!        bucket ff --> ...
//! ```
//!
//! A bucket is the first byte of the hash. Lists come in key order and page by page, so keys that were ordered by their
//! hashes alone would have to be read and sorted anew for each page. Buckets keep the order of the keys and divide them
//! finely enough: of the buckets at the two ends of a shard a part is read in vain, on average one bucket in all. So a
//! list of one of S shards of uids reads an S-th and a 256th of the objects. Namespaces whose names differ in their
//! last letters alone lie in few buckets, since those letters hardly move the first byte of the hash. More buckets
//! would read less in vain, but each is one more run to merge.
//!
//! As an index of a field does ([`super::field_index`]), it holds keys rather than objects. An object keeps its uid and
//! its namespace for life, so only creations and deletions change an index, and updates cost nothing. It is kept for
//! types that ask for it alone ([`TypeConfig::shard_indexes`](super::TypeConfig::shard_indexes)) and from their first
//! list on: building it later would stop the feed of all types for as long as that takes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdSet;

use crate::meta::{Object, ShardField, ShardSelector, shard_hash};

/// Estimate of the bytes that an object takes in an index: 24 for the key's reference and bucket, in nodes of 16 that
/// are two thirds full, and the branches above these.
pub(crate) const SHARD_INDEXED_BYTES: u64 = 50;

/// The number of bits of a hash behind those that are the bucket.
const BUCKET_SHIFT: u32 = u64::BITS - u8::BITS;

/// The index of a field.
#[derive(Clone, Debug)]
pub(crate) struct ShardIndex {
    /// The field whose hash it is.
    field: ShardField,
    places: OrdSet<ShardPosition>,
}

/// The place of a key: they are ordered by buckets, and in a bucket by keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ShardPosition {
    bucket: u8,
    key: Arc<str>,
}

/// Returns the bucket of a hash.
pub(crate) fn bucket(hash: u64) -> u8 {
    hash.to_be_bytes()[0]
}

/// Returns the buckets that hashes of a selector lie in, in order.
pub(crate) fn buckets(selector: &ShardSelector) -> impl Iterator<Item = u8> {
    let mut next = 0;
    selector.ranges().iter().flat_map(move |range| {
        // Two ranges may lie in the same bucket.
        let first = (range.first >> BUCKET_SHIFT).max(next);
        next = (range.last >> BUCKET_SHIFT) + 1;
        (first..next).map(|it| bucket(it << BUCKET_SHIFT))
    })
}

impl ShardIndex {
    /// Creates the index of a field, without objects.
    pub(crate) fn new(field: ShardField) -> Self {
        Self {
            field,
            places: OrdSet::new(),
        }
    }

    /// Returns the field whose hash it is.
    pub(crate) fn field(&self) -> ShardField {
        self.field
    }

    /// Moves a key from the bucket of the old object to that of the new one; `None` if there is no such object.
    pub(crate) fn change(&mut self, key: &Arc<str>, was: Option<&Object>, is: Option<&Object>) {
        let (was, is) = (was.map(|it| self.value(it)), is.map(|it| self.value(it)));
        if was == is {
            return;
        }
        let place = |value: &str| ShardPosition {
            bucket: bucket(shard_hash(value)),
            key: Arc::clone(key),
        };
        let (was, is) = (was.map(place), is.map(place));
        if was == is {
            return;
        }
        if let Some(was) = was {
            self.places.remove(&was);
        }
        if let Some(is) = is {
            self.places.insert(is);
        }
    }

    fn value<'a>(&self, object: &'a Object) -> &'a str {
        self.field.value(object.attributes())
    }

    /// Returns the keys in a selector's buckets that begin with `prefix`, in order, from a bound on. The bound must not
    /// lie before the prefix.
    pub(crate) fn keys<'a>(
        &'a self,
        selector: &ShardSelector,
        prefix: &'a str,
        from: Bound<&str>,
    ) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
        let from: Bound<Arc<str>> = from.map(Arc::from);
        let run = |bucket| {
            let from = from.clone().map(|key| ShardPosition { bucket, key });
            let places = self.places.range((from, Bound::Unbounded));
            let places = places.take_while(move |it| it.bucket == bucket);
            let keys = places.map(|it| &it.key);
            Run::new(keys.take_while(move |key| key.starts_with(prefix)))
        };
        Merge(buckets(selector).filter_map(run).map(Reverse).collect())
    }
}

/// Keys in order, of which the first has been read. They are compared by it.
struct Run<'a, K> {
    first: &'a Arc<str>,
    rest: K,
}

impl<'a, K: Iterator<Item = &'a Arc<str>>> Run<'a, K> {
    /// Reads the first key; `None` if there is none.
    fn new(mut rest: K) -> Option<Self> {
        let first = rest.next()?;
        Some(Self { first, rest })
    }
}

impl<K> PartialEq for Run<'_, K> {
    fn eq(&self, other: &Self) -> bool {
        self.first == other.first
    }
}

impl<K> Eq for Run<'_, K> {}

impl<K> PartialOrd for Run<'_, K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Run<'_, K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.first.cmp(other.first)
    }
}

/// The keys of several runs in order; each key is in one of them alone.
struct Merge<'a, K>(BinaryHeap<Reverse<Run<'a, K>>>);

impl<'a, K: Iterator<Item = &'a Arc<str>>> Iterator for Merge<'a, K> {
    type Item = &'a Arc<str>;

    fn next(&mut self) -> Option<&'a Arc<str>> {
        let mut least = self.0.peek_mut()?;
        let first = least.0.first;
        match least.0.rest.next() {
            Some(next) => least.0.first = next,
            None => {
                PeekMut::pop(least);
            }
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::ShardRange;

    #[test]
    fn each_bucket_of_a_selector_is_named_once() {
        let at = |bucket: u64, rest: u64| (bucket << BUCKET_SHIFT) + rest;
        for (ranges, expected) in [
            (vec![(0, u64::MAX)], (0..=255).collect::<Vec<u8>>()),
            (vec![(0, 0)], vec![0]),
            (vec![(at(7, 5), at(9, 0))], vec![7, 8, 9]),
            (vec![(at(7, 5), at(8, 0) - 1)], vec![7]),
            (
                vec![
                    (at(7, 5), at(7, 9)),
                    (at(7, 20), at(8, 3)),
                    (at(8, 9), at(8, 9)),
                ],
                vec![7, 8],
            ),
            (vec![(u64::MAX, u64::MAX), (1, 2)], vec![0, 255]),
        ] {
            let range = |(first, last)| ShardRange { first, last };
            let given: Vec<_> = ranges.iter().copied().map(range).collect();
            let selector = ShardSelector::new(ShardField::Uid, &given);
            assert_eq!(
                buckets(&selector).collect::<Vec<_>>(),
                expected,
                "{ranges:?}"
            );
        }
    }
}
