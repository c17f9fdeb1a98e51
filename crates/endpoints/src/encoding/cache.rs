//! The cache of encodings: each is made once and stored on its object (`ringwatch::meta`); this bounds and evicts them.
//!
//! An encoding is stored on its object ([`Object::encoding`]) and dropped with it. This cache holds only the order in
//! which encodings were made: when they take too many bytes, the oldest are evicted. That suits watch frames, which all
//! watchers need at once and rarely later. A list that is longer than the cache would evict its own first items with
//! its last ones and find none of them the next time, so only as many of its items are kept as there is room for
//! ([`ListRoom`]): those from the first on, which the next list of the same objects finds.
//!
//! No lock is taken under another: first that of the object, to find or make the encoding, then that of the queue.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use ringwatch::budget::{Account, Ledger, Share};
use ringwatch::meta::{EncodedBytes, EncodingKey, Object};
use ringwatch_apimachinery::GroupVersion;

/// Default maximum number of bytes of all encodings.
pub const ENCODINGS_BYTES_MAX_DEFAULT: usize = 64 << 20;

/// Maximum number of cached encodings. Those of dropped objects count until they are evicted.
const ENCODINGS_MAX: usize = 65_536;

/// The part of the cache that the items of one list may take, in eighths. The rest is for what comes meanwhile, and for
/// what encodings take beside their content.
const LIST_EIGHTHS: usize = 7;

/// Maximum number of entries of dropped objects that are removed with each new encoding.
const GONE_FORGOTTEN_MAX: usize = 4;

/// The encodings of all objects. Clones are the same cache.
#[derive(Clone, Debug)]
pub struct EncodingCache(Arc<CacheState>);

#[derive(Debug)]
struct CacheState {
    /// Maximum number of bytes of the encodings.
    bytes_max: usize,
    /// The number of bytes that the kept encodings take.
    sum: EncodedBytes,
    /// The memory budget, which limits the encodings further when memory is short.
    ledger: Ledger,
    queue: Mutex<Queue>,
    /// The served versions that have been encoded; the index of each is its number in keys.
    versions: Mutex<Vec<GroupVersion>>,
    made: Counter,
    evicted: Counter,
}

/// The order in which encodings are evicted.
#[derive(Debug)]
struct Queue {
    /// The encodings in the order in which they were made, the oldest first.
    kept: VecDeque<CachedEncoding>,
    /// The encodings' share of the memory budget. Encodings dropped with their objects stay in it until the next
    /// change.
    share: Share,
}

/// A cached encoding: its object, and its key there.
#[derive(Debug)]
struct CachedEncoding {
    object: Weak<Object>,
    key: EncodingKey,
}

/// The room that is left in the cache for the items of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListRoom {
    bytes: usize,
    encodings: usize,
}

impl EncodingCache {
    /// Creates a cache of at most `bytes_max` bytes, or fewer while the ledger is short of memory.
    #[must_use]
    pub fn new(bytes_max: usize, ledger: &Ledger) -> Self {
        Self(Arc::new(CacheState {
            bytes_max,
            sum: EncodedBytes::default(),
            ledger: ledger.clone(),
            queue: Mutex::new(Queue {
                kept: VecDeque::new(),
                share: ledger.share(Account::Encodings),
            }),
            versions: Mutex::default(),
            made: Counter::default(),
            evicted: Counter::default(),
        }))
    }

    /// Registers the cache's metrics for `/metrics`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
        registry.register(
            "ringwatch_encoding_cache_made",
            "[ALPHA] Encodings of objects that were made.",
            self.0.made.clone(),
        );
        registry.register(
            "ringwatch_encoding_cache_evicted",
            "[ALPHA] Encodings of objects that were dropped because they took too much memory.",
            self.0.evicted.clone(),
        );
    }

    /// Returns how many bytes the kept encodings take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.sum.get()
    }

    /// Returns how many encodings have been made.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.0.made.get()
    }

    /// Returns the number of a served version, for keys. There are as many as the server serves.
    pub(crate) fn version(&self, version: &GroupVersion) -> u32 {
        let versions = &self.0.versions;
        let mut versions = versions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = versions.iter().position(|known| known == version);
        let place = known.unwrap_or_else(|| {
            versions.push(version.clone());
            versions.len() - 1
        });
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    /// Returns the room for the items of a list that begins.
    pub(crate) fn list_room(&self) -> ListRoom {
        let allowed = self.0.ledger.allowed_to_encodings();
        let bytes = usize::try_from(allowed).unwrap_or(usize::MAX);
        let eighths = |all: usize| all / 8 * LIST_EIGHTHS;
        ListRoom {
            bytes: eighths(bytes.min(self.0.bytes_max)),
            encodings: eighths(ENCODINGS_MAX),
        }
    }

    /// Returns an encoding of an object; makes and caches it if it is missing.
    ///
    /// # Errors
    /// The error of `make`; then nothing is kept.
    pub(crate) fn get_or_make<E>(
        &self,
        object: &Arc<Object>,
        key: EncodingKey,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        let encoded = object.encoding(key, &self.0.sum, make)?;
        if encoded.is_new {
            self.0.made.inc();
            self.keep(CachedEncoding {
                object: Arc::downgrade(object),
                key,
            });
        }
        Ok(encoded.bytes)
    }

    /// Returns an encoding of an object if it is cached.
    pub(crate) fn get(&self, object: &Object, key: EncodingKey) -> Option<Bytes> {
        let encoded = object.encoding(key, &self.0.sum, || Err(()));
        encoded.ok().map(|encoded| encoded.bytes)
    }

    /// Caches an encoding of an object instead of the one that it had before. One that another thread makes at the same
    /// time may win.
    pub(crate) fn replace(&self, object: &Arc<Object>, key: EncodingKey, encoding: Bytes) {
        object.forget_encoding(key);
        let made = self.get_or_make(object, key, || Ok::<_, Infallible>(encoding));
        made.map_or_else(|never| match never {}, drop);
    }

    /// Adds a new encoding to the queue, and evicts the oldest if there is no room.
    fn keep(&self, new: CachedEncoding) {
        let mut queue = self.queue();
        queue.kept.push_back(new);
        for _ in 0..GONE_FORGOTTEN_MAX {
            if queue.kept.front().is_none_or(|oldest| !oldest.is_gone()) {
                break;
            }
            queue.kept.pop_front();
        }
        drop(queue);
        self.evict_surplus();
    }

    /// Evicts the oldest encodings until the cache is within its limit, which may have shrunk.
    pub fn evict_surplus(&self) {
        while let Some(oldest) = self.one_too_many() {
            // This may wait for another thread that makes an encoding of the object, so the queue is not locked.
            if let Some(object) = oldest.object.upgrade() {
                object.forget_encoding(oldest.key);
                self.0.evicted.inc();
            }
        }
    }

    /// Takes the oldest encoding out of the queue if the cache is too large.
    fn one_too_many(&self) -> Option<CachedEncoding> {
        let mut queue = self.queue();
        let bytes = self.bytes();
        queue.share.set(bytes as u64);
        let allowed = self.0.ledger.allowed_to_encodings();
        let too_many =
            queue.kept.len() > ENCODINGS_MAX || bytes > self.0.bytes_max || bytes as u64 > allowed;
        too_many.then(|| queue.kept.pop_front()).flatten()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // The queue is consistent after each of its changes, so poison is ignored.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListRoom {
    /// Returns true if an item may be kept, as may all before it.
    pub(crate) fn is_left(self) -> bool {
        self.bytes > 0 && self.encodings > 0
    }

    /// Takes the room of an item that is kept.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.encodings = self.encodings.saturating_sub(1);
    }
}

impl CachedEncoding {
    fn is_gone(&self) -> bool {
        self.object.strong_count() == 0
    }
}

impl Collector for EncodingCache {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let bytes = ConstGauge::new(i64::try_from(self.bytes()).unwrap_or(i64::MAX));
        let help = "[ALPHA] Memory that the encodings of objects take.";
        let name = "ringwatch_encoding_cache_bytes";
        bytes.encode(encoder.encode_descriptor(name, help, None, bytes.metric_type())?)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use ringwatch::meta::FieldSchema;
    use serde_json::json;

    use super::*;

    const ENCODING_BYTES: usize = 1_000;

    fn object() -> Arc<Object> {
        let value = json!({"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}});
        Arc::new(Object::from_value(&value, 1, &FieldSchema::default()).expect("an object"))
    }

    fn cache(bytes_max: usize) -> EncodingCache {
        EncodingCache::new(bytes_max, &Ledger::unlimited())
    }

    fn get(cache: &EncodingCache, object: &Arc<Object>, key: u32) -> Bytes {
        let make = || Ok::<_, Infallible>(Bytes::from(vec![b'x'; ENCODING_BYTES]));
        let bytes = cache.get_or_make(object, EncodingKey(key), make);
        bytes.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn the_oldest_give_way_and_are_made_again() {
        let cache = cache(10 * ENCODING_BYTES);
        let objects: Vec<_> = (0..20).map(|_| object()).collect();
        for object in &objects {
            get(&cache, object, 1);
            assert!(cache.bytes() <= 10 * ENCODING_BYTES);
        }
        assert!(cache.bytes() > 8 * ENCODING_BYTES);
        assert_eq!(cache.made(), 20);
        get(&cache, &objects[19], 1);
        assert_eq!(cache.made(), 20);
        assert_eq!(get(&cache, &objects[0], 1).len(), ENCODING_BYTES);
        assert_eq!(cache.made(), 21);
        drop(objects);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn they_give_way_when_memory_is_short() {
        // Three quarters of it may be spent before anybody gives way.
        let ledger = Ledger::new(40 * ENCODING_BYTES as u64);
        let cache = EncodingCache::new(usize::MAX, &ledger);
        let objects: Vec<_> = (0..20).map(|_| object()).collect();
        for object in &objects {
            get(&cache, object, 1);
        }
        assert_eq!(ledger.spent(Account::Encodings), cache.bytes() as u64);
        assert!(cache.bytes() > 20 * ENCODING_BYTES);
        let mut state = ledger.share(Account::Objects);
        state.set(25 * ENCODING_BYTES as u64);
        cache.evict_surplus();
        assert!(cache.bytes() <= 5 * ENCODING_BYTES && cache.bytes() > 3 * ENCODING_BYTES);
        assert_eq!(ledger.spent(Account::Encodings), cache.bytes() as u64);
    }

    #[test]
    fn the_items_of_a_list_find_room_until_the_cache_is_nearly_full() {
        let room_of = |cache: &EncodingCache, bytes| {
            let mut room = cache.list_room();
            let items = (0..2 * ENCODINGS_MAX).take_while(|_| {
                let is_left = room.is_left();
                room.take(bytes);
                is_left
            });
            items.count()
        };
        let full = 16 * ENCODING_BYTES;
        assert_eq!(room_of(&cache(full), ENCODING_BYTES), 14);
        assert_eq!(room_of(&cache(full), full), 1);
        assert_eq!(room_of(&cache(0), 1), 0);
        let most = ENCODINGS_MAX / 8 * LIST_EIGHTHS;
        assert_eq!(room_of(&cache(usize::MAX), 1), most);
        // Three quarters of it may be spent before anybody gives way.
        let ledger = Ledger::new(4 * 16 * ENCODING_BYTES as u64 / 3);
        let cache = EncodingCache::new(usize::MAX, &ledger);
        assert_eq!(room_of(&cache, ENCODING_BYTES), 14);
    }

    #[test]
    fn what_has_no_room_at_all_is_not_kept() {
        let cache = cache(ENCODING_BYTES);
        let object = object();
        for _ in 0..2 {
            assert_eq!(get(&cache, &object, 1).len(), ENCODING_BYTES);
        }
        assert_eq!((cache.made(), cache.bytes()), (2, 0));
    }

    #[test]
    fn encodings_whose_objects_are_gone_leave_the_queue() {
        let cache = cache(usize::MAX);
        for _ in 0..2 * ENCODINGS_MAX {
            get(&cache, &object(), 1);
            assert!(cache.queue().kept.len() <= 1);
        }
        // Not even one that stays may keep back more of them than there may be.
        let object_that_stays = object();
        get(&cache, &object_that_stays, 1);
        for _ in 0..2 * ENCODINGS_MAX {
            get(&cache, &object(), 1);
        }
        assert!(cache.queue().kept.len() <= ENCODINGS_MAX);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn makers_at_the_same_time_make_it_once() {
        let cache = cache(1 << 20);
        let object = object();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..100).for_each(|key| drop(get(&cache, &object, key))));
            }
        });
        assert_eq!(cache.made(), 100);
    }

    #[test]
    fn the_numbers_are_shown() {
        let cache = cache(1 << 20);
        let mut registry = Registry::default();
        cache.register(&mut registry);
        let object = object();
        get(&cache, &object, 1);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let bytes = format!("\nringwatch_encoding_cache_bytes {}\n", cache.bytes());
        assert!(text.contains(&bytes), "{text}");
        assert!(text.contains("\nringwatch_encoding_cache_made_total 1\n"));
        assert!(text.contains("\nringwatch_encoding_cache_evicted_total 0\n"));
    }
}
