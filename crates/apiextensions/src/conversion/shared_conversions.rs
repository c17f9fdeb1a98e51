//! Conversions of objects that watches share.
//!
//! All watches of a version see an event at about the same time. The first has the object converted, the others wait
//! for the same answer; later ones, such as those that begin, find it as long as it is kept. The oldest conversions are
//! evicted first. Failures are shared by those that wait, and not kept.
//!
//! The hard part is that a watch is polled only while its client reads. So a conversion belongs to no watch: each that
//! waits for it moves it on, and it ends early only when all of them have gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::{self, BoxFuture, WeakShared};
use lru::LruCache;
use ringwatch::budget::{Account, Ledger, Share};
use ringwatch::meta::Object;
use ringwatch::storage::StorageError;

/// Maximum number of bytes of the conversions that are kept, or of one that is larger.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Estimate of the bytes of a conversion beside the encodings of its objects: their records and attributes, and its
/// place in the map.
const OVERHEAD_BYTES: usize = 1_500;

/// The outcome of a conversion, for all that wait for it.
type ConversionResult = Result<Arc<Object>, Arc<StorageError>>;

/// A conversion that may be under way.
type Conversion = future::Shared<BoxFuture<'static, ConversionResult>>;

/// The conversions to all versions of all definitions. Clones are the same.
#[derive(Clone, Debug)]
pub struct SharedConversions(Arc<SharedState>);

#[derive(Debug)]
struct SharedState {
    ledger: Ledger,
    kept: Mutex<KeptConversion>,
}

/// The conversions to a version, as a definition has it at some time.
#[derive(Debug)]
pub(super) struct VersionConversions {
    all: SharedConversions,
    /// The number by which its conversions are told from others.
    version: u64,
}

#[derive(Debug)]
struct KeptConversion {
    /// In the order in which they began.
    by_key: LruCache<ConversionKey, ConversionEntry>,
    /// The estimated bytes of all.
    bytes: usize,
    /// Their share of the memory budget.
    share: Share,
    /// The number of the next version, or of the next entry.
    next_number: u64,
}

/// The version to convert to, and what identifies the content of an object, unless the store was rolled back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ConversionKey {
    version: u64,
    revision: u64,
    uid: Box<str>,
}

#[derive(Debug)]
struct ConversionEntry {
    number: u64,
    bytes: usize,
    original: Arc<Object>,
    state: ConversionState,
}

#[derive(Debug)]
enum ConversionState {
    /// The conversion, which is there as long as somebody waits for it.
    Begun(WeakShared<BoxFuture<'static, ConversionResult>>),
    Converted(Arc<Object>),
}

/// A conversion as it is found, or begun.
enum FoundConversion {
    Converted(Arc<Object>),
    /// The number of the entry, and what to wait for.
    Begun(u64, Conversion),
}

impl SharedConversions {
    /// Creates an empty set, which counts its memory in a ledger and shrinks when that is short of memory.
    #[must_use]
    pub fn new(ledger: &Ledger) -> Self {
        Self(Arc::new(SharedState {
            ledger: ledger.clone(),
            kept: Mutex::new(KeptConversion {
                by_key: LruCache::unbounded(),
                bytes: 0,
                share: ledger.share(Account::Encodings),
                next_number: 0,
            }),
        }))
    }

    /// Returns the conversions to a version, which are shared with no other.
    pub(super) fn of_version(&self) -> VersionConversions {
        VersionConversions {
            all: self.clone(),
            version: self.kept().number(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, KeptConversion> {
        // It is consistent after each of its changes, so poison is ignored.
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the conversion of an object to a version. It begins as `convert` unless it is known or under way.
    fn find_or_begin(
        &self,
        key: &ConversionKey,
        object: &Arc<Object>,
        convert: impl Future<Output = Result<Arc<Object>, StorageError>> + Send + 'static,
    ) -> FoundConversion {
        let mut kept = self.kept();
        if let Some(found) = kept.find(key, object) {
            return found;
        }
        kept.remove(key);
        let conversion = convert.map(|it| it.map_err(Arc::new)).boxed().shared();
        let number = kept.number();
        // Only one that has ended has none.
        if let Some(begun) = conversion.downgrade() {
            kept.add(key, number, object, begun);
        }
        kept.evict(&self.0.ledger);
        FoundConversion::Begun(number, conversion)
    }

    /// Keeps, and counts, the converted object of an entry.
    fn keep(&self, key: &ConversionKey, number: u64, converted: &Arc<Object>) {
        let mut kept = self.kept();
        let Some(entry) = kept.entry(key, number) else {
            return;
        };
        if matches!(entry.state, ConversionState::Converted(_)) {
            return;
        }
        entry.state = ConversionState::Converted(Arc::clone(converted));
        if !Arc::ptr_eq(&entry.original, converted) {
            let bytes = converted.stored().len();
            entry.bytes += bytes;
            kept.bytes += bytes;
            kept.evict(&self.0.ledger);
        }
    }

    /// Removes the entry of a conversion that has failed.
    fn forget(&self, key: &ConversionKey, number: u64) {
        let mut kept = self.kept();
        if kept.entry(key, number).is_some() {
            kept.remove(key);
        }
    }
}

impl VersionConversions {
    /// Returns an object in the version, made by `convert` unless that has been done or is under way.
    ///
    /// # Errors
    /// The error of `convert`, which all callers share that wait for it.
    pub(super) async fn get_or_convert(
        &self,
        object: &Arc<Object>,
        convert: impl Future<Output = Result<Arc<Object>, StorageError>> + Send + 'static,
    ) -> Result<Arc<Object>, StorageError> {
        let key = ConversionKey {
            version: self.version,
            revision: object.revision(),
            uid: object.uid().into(),
        };
        let (number, conversion) = match self.all.find_or_begin(&key, object, convert) {
            FoundConversion::Converted(converted) => return Ok(converted),
            FoundConversion::Begun(number, conversion) => (number, conversion),
        };
        // Until its outcome is kept, others find the conversion.
        match conversion.clone().await {
            Ok(converted) => {
                self.all.keep(&key, number, &converted);
                Ok(converted)
            }
            Err(error) => {
                self.all.forget(&key, number);
                Err(StorageError::Shared(error))
            }
        }
    }
}

impl KeptConversion {
    fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// Returns the entry of a key, if it has this number.
    fn entry(&mut self, key: &ConversionKey, number: u64) -> Option<&mut ConversionEntry> {
        let entry = self.by_key.peek_mut(key);
        entry.filter(|it| it.number == number)
    }

    /// Returns the conversion of an object, if it has ended or somebody waits for it.
    fn find(&self, key: &ConversionKey, object: &Arc<Object>) -> Option<FoundConversion> {
        let entry = self.by_key.peek(key).filter(|it| it.is_of(object))?;
        match &entry.state {
            ConversionState::Converted(converted) => {
                Some(FoundConversion::Converted(Arc::clone(converted)))
            }
            ConversionState::Begun(begun) => {
                Some(FoundConversion::Begun(entry.number, begun.upgrade()?))
            }
        }
    }

    fn add(
        &mut self,
        key: &ConversionKey,
        number: u64,
        object: &Arc<Object>,
        begun: WeakShared<BoxFuture<'static, ConversionResult>>,
    ) {
        let entry = ConversionEntry {
            number,
            bytes: OVERHEAD_BYTES + key.uid.len() + object.stored().len(),
            original: Arc::clone(object),
            state: ConversionState::Begun(begun),
        };
        self.bytes += entry.bytes;
        self.by_key.put(key.clone(), entry);
    }

    fn remove(&mut self, key: &ConversionKey) {
        if let Some(entry) = self.by_key.pop(key) {
            self.bytes -= entry.bytes;
            self.share.set(self.bytes as u64);
        }
    }

    /// Evicts the oldest conversions until all are within the limits. The newest stays, for which watches may wait.
    fn evict(&mut self, ledger: &Ledger) {
        self.share.set(self.bytes as u64);
        while self.by_key.len() > 1
            && (self.bytes > KEPT_BYTES_MAX || self.bytes as u64 > ledger.allowed_to_encodings())
            && let Some((_, oldest)) = self.by_key.pop_lru()
        {
            self.bytes -= oldest.bytes;
            self.share.set(self.bytes as u64);
        }
    }
}

impl ConversionEntry {
    fn is_of(&self, object: &Arc<Object>) -> bool {
        let is_equal = || {
            self.original.revision() == object.revision()
                && self.original.stored() == object.stored()
        };
        Arc::ptr_eq(&self.original, object) || is_equal()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use ringwatch::meta::FieldSchema;
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;

    fn object(revision: u64, text: &str) -> Arc<Object> {
        let value = json!({"kind": "A", "apiVersion": "a/v1", "metadata": {"name": "a", "uid": "u"},
            "text": text});
        Arc::new(Object::from_value(&value, revision, &FieldSchema::default()).expect("an object"))
    }

    fn new() -> (VersionConversions, Ledger) {
        let ledger = Ledger::new(1 << 30);
        (SharedConversions::new(&ledger).of_version(), ledger)
    }

    async fn convert(conversions: &VersionConversions, object: &Arc<Object>) -> Arc<Object> {
        let revision = object.revision();
        let converted = async move { Ok(self::object(revision, "converted")) };
        let converted = conversions.get_or_convert(object, converted).await;
        converted.expect("converted")
    }

    #[tokio::test]
    async fn each_content_is_converted_once_for_each_version() {
        let (conversions, _) = new();
        let first = convert(&conversions, &object(1, "a")).await;
        let again = convert(&conversions, &object(1, "a")).await;
        assert!(Arc::ptr_eq(&first, &again));
        let later = convert(&conversions, &object(2, "a")).await;
        assert!(!Arc::ptr_eq(&first, &later));
        let restored = convert(&conversions, &object(1, "b")).await;
        assert!(!Arc::ptr_eq(&first, &restored), "the store was rolled back");
        let other = conversions.all.of_version();
        let other = convert(&other, &object(1, "b")).await;
        assert!(!Arc::ptr_eq(&restored, &other));
    }

    #[tokio::test]
    async fn those_who_wait_share_the_outcome() {
        let (conversions, ledger) = new();
        let object = object(1, "a");
        let (answer, asked) = oneshot::channel();
        let why = || StorageError::Internal {
            message: "no".to_owned(),
        };
        let failing = async move {
            asked.await.expect("an answer");
            Err(why())
        };
        let mut first = Box::pin(conversions.get_or_convert(&object, failing));
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(conversions.get_or_convert(&object, pending()));
        assert!((&mut second).now_or_never().is_none());
        answer.send(()).expect("it is awaited");
        for failed in [first.await, second.await] {
            assert_eq!(failed.expect_err("it fails").to_string(), why().to_string());
        }
        assert_eq!(ledger.total(), 0);
        convert(&conversions, &object).await;
    }

    /// Returns a conversion to the object itself, which ends when it is told to.
    fn told(
        object: &Arc<Object>,
    ) -> (
        oneshot::Sender<()>,
        BoxFuture<'static, Result<Arc<Object>, StorageError>>,
    ) {
        let (end, told) = oneshot::channel();
        let object = Arc::clone(object);
        let conversion = async move {
            told.await.expect("told");
            Ok(object)
        };
        (end, conversion.boxed())
    }

    #[tokio::test]
    async fn a_caller_that_is_not_polled_holds_up_nobody() {
        let (conversions, _) = new();
        let object = object(1, "a");
        let (end, conversion) = told(&object);
        let mut first = Box::pin(conversions.get_or_convert(&object, conversion));
        assert!((&mut first).now_or_never().is_none());
        end.send(()).expect("it is awaited");
        let second = conversions
            .get_or_convert(&object, pending())
            .now_or_never();
        let second = second.expect("it has ended").expect("converted");
        assert!(Arc::ptr_eq(&second, &object));
        assert!(Arc::ptr_eq(&first.await.expect("converted"), &object));
    }

    #[tokio::test]
    async fn a_caller_that_goes_leaves_the_conversion_to_the_others() {
        let (conversions, _) = new();
        let object = object(1, "a");
        let (end, conversion) = told(&object);
        let mut first = Box::pin(conversions.get_or_convert(&object, conversion));
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(conversions.get_or_convert(&object, pending()));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        end.send(()).expect("it is awaited");
        assert!(Arc::ptr_eq(&second.await.expect("converted"), &object));
    }

    #[tokio::test]
    async fn a_conversion_ends_with_the_last_that_waits() {
        let (conversions, _) = new();
        let object = object(1, "a");
        let (end, conversion) = told(&object);
        let mut first = Box::pin(conversions.get_or_convert(&object, conversion));
        assert!((&mut first).now_or_never().is_none());
        drop(first);
        assert!(end.is_closed());
        let same = ready(Ok(Arc::clone(&object)));
        let second = conversions.get_or_convert(&object, same).await;
        assert!(Arc::ptr_eq(&second.expect("converted"), &object));
    }

    #[tokio::test]
    async fn memory_is_counted_and_bounded() {
        let (conversions, ledger) = new();
        let large = "x".repeat(1 << 20);
        let oldest = object(0, &large);
        let first = convert(&conversions, &oldest).await;
        for revision in 1..30 {
            convert(&conversions, &object(revision, &large)).await;
        }
        let kept = KEPT_BYTES_MAX as u64;
        let spent = ledger.spent(Account::Encodings);
        assert!((kept - (2 << 20)..=kept).contains(&spent), "{spent}");
        assert!(!Arc::ptr_eq(&convert(&conversions, &oldest).await, &first));
        let mut objects = ledger.share(Account::Objects);
        objects.set(ledger.limit());
        convert(&conversions, &object(31, "a")).await;
        let spent = ledger.spent(Account::Encodings);
        assert!(spent < 10_000, "memory is short: {spent}");
        drop(conversions);
        assert_eq!(ledger.spent(Account::Encodings), 0);
    }
}
