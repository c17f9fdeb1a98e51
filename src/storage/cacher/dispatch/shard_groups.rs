//! The groups of watchers that have the same scope and the same exact term, by the shards that they select.
//!
//! ```text
//!  everyone without a shard selector  --> group
//!  uid, bucket 00                     --> (selector, group) (selector, group)
//!       bucket 01                     --> (selector, group)
//!       ...
//! ```
//!
//! The replicas of a controller watch one shard each, and many clients may watch the same. A selector is filed under
//! each bucket that its hashes lie in, a bucket being the first byte of a hash. So an event looks at the one bucket of
//! its own hash, where few selectors are: those of the shards that it lies in and, where shards end within a bucket, of
//! their neighbours. It looks at no watcher of another shard. A selector takes at most 256 places however many ranges
//! it has, whereas a tree of intervals would take quadratic memory for shards that overlap, which clients could choose.

use std::collections::{BTreeMap, HashMap};

use crate::meta::{Attributes, ShardField, ShardSelector, shard_hash};
use crate::storage::cacher::window::shard_index::{bucket, buckets};

/// The number of buckets: one for each first byte of a hash.
const BUCKETS: usize = 1 << u8::BITS;

/// The groups of one scope and term, by the number that each has in the index.
#[derive(Debug, Default)]
pub(crate) struct ShardGroups {
    /// The group of the watchers without a shard selector.
    unsharded: Option<u32>,
    /// The groups of the others; none for most terms.
    sharded: Option<Box<ShardedGroups>>,
}

/// The groups of the watchers that have a shard selector.
#[derive(Debug, Default)]
struct ShardedGroups {
    groups: HashMap<ShardSelector, u32>,
    uids: Buckets,
    namespaces: Buckets,
    /// The number of watchers in all groups.
    watchers: usize,
}

/// The selectors of each bucket by their groups, so that one is removed without a look at the others; empty if there is
/// no selector.
#[derive(Debug, Default)]
struct Buckets {
    buckets: Vec<BTreeMap<u32, ShardSelector>>,
    /// The number of selectors.
    selectors: usize,
}

/// The attributes of an event's object before and after the event.
#[derive(Clone, Copy)]
pub(crate) struct Sides<'a> {
    /// `None` if it is deleted.
    pub(crate) current: Option<Attributes<'a>>,
    /// `None` if there was none.
    pub(crate) previous: Option<Attributes<'a>>,
}

impl ShardGroups {
    /// Returns the group of a selector, which may be empty. It becomes `next` if there is none.
    pub(crate) fn group(&mut self, selector: &ShardSelector, next: u32) -> u32 {
        if selector.is_empty() {
            return *self.unsharded.get_or_insert(next);
        }
        let sharded = self.sharded.get_or_insert_default();
        if let Some(group) = sharded.groups.get(selector) {
            return *group;
        }
        sharded.groups.insert(selector.clone(), next);
        if let Some(buckets) = sharded.buckets(selector) {
            buckets.insert(selector, next);
        }
        next
    }

    /// Removes the group of a selector.
    pub(crate) fn remove(&mut self, selector: &ShardSelector) {
        if selector.is_empty() {
            self.unsharded = None;
            return;
        }
        let Some(sharded) = &mut self.sharded else {
            return;
        };
        let Some(group) = sharded.groups.remove(selector) else {
            return;
        };
        if sharded.groups.is_empty() {
            self.sharded = None;
        } else if let Some(buckets) = sharded.buckets(selector) {
            buckets.remove(selector, group);
        }
    }

    /// Counts a watcher that has been added to a group with a shard selector.
    pub(crate) fn watcher_added(&mut self) {
        if let Some(sharded) = &mut self.sharded {
            sharded.watchers += 1;
        }
    }

    /// Counts a watcher that has been removed from a group with a shard selector.
    pub(crate) fn watcher_removed(&mut self) {
        if let Some(sharded) = &mut self.sharded {
            sharded.watchers -= 1;
        }
    }

    /// Returns true if there is no group.
    pub(crate) fn is_empty(&self) -> bool {
        self.unsharded.is_none() && self.sharded.is_none()
    }

    /// Calls `push` once for each group that an event may concern, which returns how many watchers the group has.
    /// Returns how often a shard selector would have refused the event, asked by each watcher about each side of it.
    pub(crate) fn concerned(&self, sides: Sides<'_>, push: &mut impl FnMut(u32) -> usize) -> u64 {
        if let Some(group) = self.unsharded {
            push(group);
        }
        let Some(sharded) = &self.sharded else {
            return 0;
        };
        let mut reached = 0;
        let mut counted = |group| reached += push(group);
        sharded.uids.concerned(ShardField::Uid, sides, &mut counted);
        let namespaces = &sharded.namespaces;
        namespaces.concerned(ShardField::Namespace, sides, &mut counted);
        let asked = [sides.current, sides.previous]
            .into_iter()
            .flatten()
            .count();
        (asked * (sharded.watchers - reached)) as u64
    }
}

impl ShardedGroups {
    /// Returns the buckets that a selector belongs in; `None` if it has no range.
    fn buckets(&mut self, selector: &ShardSelector) -> Option<&mut Buckets> {
        Some(match selector.field()? {
            ShardField::Uid => &mut self.uids,
            ShardField::Namespace => &mut self.namespaces,
        })
    }
}

impl Buckets {
    fn insert(&mut self, selector: &ShardSelector, group: u32) {
        self.buckets.resize_with(BUCKETS, BTreeMap::new);
        self.selectors += 1;
        for bucket in buckets(selector) {
            self.buckets[usize::from(bucket)].insert(group, selector.clone());
        }
    }

    fn remove(&mut self, selector: &ShardSelector, group: u32) {
        self.selectors -= 1;
        if self.selectors == 0 {
            self.buckets = Vec::new();
            return;
        }
        for bucket in buckets(selector) {
            self.buckets[usize::from(bucket)].remove(&group);
        }
    }

    /// Calls `push` once for each group whose shard the object lies in, or lay in before.
    fn concerned(&self, field: ShardField, sides: Sides<'_>, push: &mut impl FnMut(u32)) {
        if self.selectors == 0 {
            return;
        }
        let value = |it: Attributes<'_>| shard_hash(field.value(it));
        let current = sides.current.map(value);
        let previous = sides.previous.map(value).filter(|it| Some(*it) != current);
        for hash in current.into_iter().chain(previous) {
            for (group, selector) in &self.buckets[usize::from(bucket(hash))] {
                let is_pushed = Some(hash) == previous
                    && current.is_some_and(|current| selector.contains(current));
                if selector.contains(hash) && !is_pushed {
                    push(*group);
                }
            }
        }
    }
}
