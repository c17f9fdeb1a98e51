//! The objects of a type at one revision, in a persistent (copy-on-write) ordered map.
//!
//! Clones share their nodes. So each event of the window keeps the state after it at the cost of a few nodes, and a
//! reader can hold a state for any time without blocking the writer. The indexes of a state are as old as its objects,
//! so a list by index is consistent, of an exact revision or in pages as any other.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use smallvec::SmallVec;

use super::field_index::{FieldIndex, INDEXED_BYTES};
use super::shard_index::{self, SHARD_INDEXED_BYTES, ShardIndex};
use crate::meta::{FieldSchema, Object, ShardField, ShardSelector};
use crate::storage::SelectionPredicate;

/// Estimate of the bytes of an entry beside its key and its object's bytes: the object's record and attributes, and its
/// part of the map's nodes. Measured as resident memory of 100,000 pods with three labels.
const ENTRY_OVERHEAD_BYTES: u64 = 1_200;

/// Maximum number of buckets that are merged for a shard. To find an object by its key takes as long as to look at some
/// seven, so for a shard of more than an eighth of them it is faster to look at each.
const SHARD_BUCKETS_MAX: usize = 32;

/// The number of objects that can be looked at in the time in which a bucket's first key is found.
const OBJECTS_PER_BUCKET: usize = 8;

/// The objects by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct SnapshotMap {
    entries: OrdMap<Arc<str>, Entry>,
    /// The indexes, of all entries that have content. Most types have none, and those that do have one.
    indexes: SmallVec<[FieldIndex; 1]>,
    /// The indexes of the hashes by which shards are selected; either none or one of each field.
    shards: SmallVec<[ShardIndex; 2]>,
    /// The number of entries that are unreadable.
    unreadable: usize,
    /// The bytes of the entries.
    bytes: u64,
}

/// The content of a key.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// An object that was decoded.
    Readable(Arc<Object>),
    /// A value that cannot be decoded. The last content that could be is kept: watchers have it, so it is the previous
    /// object of the next event.
    Unreadable {
        /// The last readable content; `None` if there was none since the type was listed.
        last: Option<Arc<Object>>,
    },
}

impl Entry {
    /// Returns the newest content that could be decoded.
    pub(crate) fn object(&self) -> Option<&Arc<Object>> {
        match self {
            Self::Readable(object) => Some(object),
            Self::Unreadable { last } => last.as_ref(),
        }
    }

    fn bytes(&self, key: &str) -> u64 {
        let bytes = self.object().map_or(0, |object| object.stored().len());
        (bytes + key.len()) as u64 + ENTRY_OVERHEAD_BYTES
    }

    fn is_unreadable(&self) -> bool {
        matches!(self, Self::Unreadable { .. })
    }
}

/// The entries that an index finds for a predicate: all that it selects, and others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexMatch<'a> {
    state: &'a SnapshotMap,
    by: By<'a>,
}

/// An index, and what is looked up in it.
#[derive(Clone, Copy, Debug)]
enum By<'a> {
    Value(&'a FieldIndex, &'a str),
    Shard(&'a ShardIndex, &'a ShardSelector),
}

impl SnapshotMap {
    /// Creates a map without entries that has the indexes of a type.
    pub(crate) fn with_indexes(schema: &FieldSchema) -> Self {
        Self {
            indexes: schema.indexed().map(FieldIndex::new).collect(),
            ..Self::default()
        }
    }

    /// Returns this map, which must not have entries yet, with the indexes of shards if `shard_indexes`.
    pub(crate) fn and_shards(mut self, shard_indexes: bool) -> Self {
        let fields = shard_indexes.then_some(ShardField::ALL);
        let indexes = fields.into_iter().flatten().map(ShardIndex::new);
        self.shards = indexes.collect();
        self
    }

    /// Returns the content of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Returns the key itself, as the map has it, and its content.
    pub(crate) fn get_key_value(&self, key: &str) -> Option<(&Arc<str>, &Entry)> {
        self.entries.get_key_value(key)
    }

    /// Stores an entry under a key and returns the one that it replaced.
    pub(crate) fn insert(&mut self, key: Arc<str>, entry: Entry) -> Option<Entry> {
        self.unreadable += usize::from(entry.is_unreadable());
        self.bytes += self.bytes_of(&key, &entry);
        let now = entry.object().cloned();
        let before = self.entries.insert(Arc::clone(&key), entry);
        self.replaced(&key, before.as_ref(), now.as_deref());
        before
    }

    /// Removes a key and returns its entry.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Entry> {
        let (key, before) = self.entries.remove_with_key(key)?;
        self.replaced(&key, Some(&before), None);
        Some(before)
    }

    /// Takes an entry that was replaced or removed out of the figures, and corrects the indexes: `now` is the object
    /// that is there instead.
    fn replaced(&mut self, key: &Arc<str>, before: Option<&Entry>, now: Option<&Object>) {
        self.unreadable -= usize::from(before.is_some_and(Entry::is_unreadable));
        self.bytes -= before.map_or(0, |entry| self.bytes_of(key, entry));
        let was = before.and_then(Entry::object).map(|it| &**it);
        for index in &mut self.indexes {
            index.change(key, was, now);
        }
        for index in &mut self.shards {
            index.change(key, was, now);
        }
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        let indexes = self.indexes.iter().map(|it| FieldIndex::new(it.field()));
        let shards = self.shards.iter().map(|it| ShardIndex::new(it.field()));
        *self = Self {
            indexes: indexes.collect(),
            shards: shards.collect(),
            ..Self::default()
        };
    }

    fn bytes_of(&self, key: &str, entry: &Entry) -> u64 {
        let indexed = INDEXED_BYTES * self.indexes.len() as u64;
        let sharded = SHARD_INDEXED_BYTES * self.shards.len() as u64;
        entry.bytes(key) + indexed + sharded
    }

    /// Returns the entries that an index finds for a predicate under a prefix, from `start` on; `None` if the predicate
    /// requires neither an exact value of a field that has an index nor a shard, or if it is faster to look at each
    /// entry.
    pub(crate) fn indexed<'a>(
        &'a self,
        predicate: &'a SelectionPredicate,
        prefix: &str,
        start: &str,
    ) -> Option<IndexMatch<'a>> {
        let value = self.indexes.iter().find_map(|index| {
            let value = predicate.field.requires_exact(index.field())?;
            Some(By::Value(index, value))
        });
        let by = value.or_else(|| self.shard(&predicate.shard, prefix, start))?;
        Some(IndexMatch { state: self, by })
    }

    fn shard<'a>(
        &'a self,
        selector: &'a ShardSelector,
        prefix: &str,
        start: &str,
    ) -> Option<By<'a>> {
        let field = selector.field()?;
        let index = self.shards.iter().find(|it| it.field() == field)?;
        let buckets = shard_index::buckets(selector).count();
        // A namespace may have so few objects that it takes longer to look for them in every bucket.
        let few = OBJECTS_PER_BUCKET * buckets;
        let pays = buckets <= SHARD_BUCKETS_MAX && self.under(prefix, start).nth(few).is_some();
        pays.then_some(By::Shard(index, selector))
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns an estimate of the bytes of all entries.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if there is an entry that cannot be decoded, so that only the store can list the type.
    pub(crate) fn has_unreadable(&self) -> bool {
        self.unreadable > 0
    }

    /// Returns the keys in a scope (one key, or a folder with its slash) that cannot be decoded.
    pub(crate) fn unreadable_in<'a>(
        &'a self,
        scope: &'a str,
    ) -> impl Iterator<Item = &'a Arc<str>> {
        let folder = scope.ends_with('/');
        self.under(scope, scope)
            .take_while(move |(key, _)| folder || &***key == scope)
            .filter(|(_, entry)| entry.is_unreadable())
            .map(|(key, _)| key)
    }

    /// Returns the entries whose key begins with `prefix`, in key order, from `start` on (inclusive).
    pub(crate) fn under<'a, 's>(
        &'a self,
        prefix: &'s str,
        start: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Entry)> + use<'a, 's> {
        let from = start.max(prefix);
        self.from(Bound::Included(from))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Returns the entries whose key begins with `prefix`, in key order, after the key `after`.
    pub(crate) fn after<'a, 's>(
        &'a self,
        prefix: &'s str,
        after: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Entry)> + use<'a, 's> {
        self.from(Bound::Excluded(after))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    fn from<'a>(
        &'a self,
        from: Bound<&str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Entry)> + use<'a> {
        self.entries.range::<_, str>((from, Bound::Unbounded))
    }
}

impl<'a> IndexMatch<'a> {
    /// Returns the field whose index it is; `None` for the hashes of shards.
    pub(crate) fn field(self) -> Option<&'a Arc<str>> {
        match self.by {
            By::Value(index, _) => Some(index.field()),
            By::Shard(..) => None,
        }
    }

    /// Returns the entries that the index finds, of those whose key begins with `prefix`, in key order, from a bound
    /// on. The bound must not lie before the prefix.
    pub(crate) fn under(
        self,
        prefix: &'a str,
        from: Bound<&'a str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Entry)> {
        let keys: Box<dyn Iterator<Item = &'a Arc<str>> + 'a> = match self.by {
            By::Value(index, value) => {
                let keys = index.keys(value, from);
                Box::new(keys.take_while(move |key| key.starts_with(prefix)))
            }
            By::Shard(index, selector) => Box::new(index.keys(selector, prefix, from)),
        };
        keys.filter_map(move |key| Some((key, self.state.get(key)?)))
    }
}
