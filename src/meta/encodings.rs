//! The encodings of an object, cached with it so that each is made once.
//!
//! Live watches, replays of history, initial states and lists all hold the same object, so they find each other's
//! encodings on it. The callers decide which encodings there are and how many are kept. An object without any costs two
//! words.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;

use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};

/// The bytes of an encoding beside its content: its record here and in the cache that evicts it.
const ENCODING_OVERHEAD_BYTES: usize = 128;

/// The name of an encoding, whose meaning only its callers know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingKey(pub u32);

/// The total bytes of the encodings of many objects. Clones share the total.
#[derive(Clone, Debug, Default)]
pub struct EncodedBytes(Arc<AtomicUsize>);

/// An encoding, with its origin.
#[derive(Clone, Debug)]
pub struct EncodedObject {
    /// The encoded object.
    pub bytes: Bytes,
    /// True if it was made by this call.
    pub is_new: bool,
}

/// The encodings of one object.
#[derive(Debug, Default)]
pub(super) struct Encodings(Mutex<Option<Box<Encoding>>>);

#[derive(Debug)]
struct Encoding {
    key: EncodingKey,
    bytes: Bytes,
    /// The total in which it is counted until it is dropped.
    sum: EncodedBytes,
    /// The encoding made before. There are as many as encodings that clients request, which is few.
    older: Option<Box<Self>>,
}

impl EncodedBytes {
    /// Returns the sum of the bytes of the encodings.
    #[must_use]
    pub fn get(&self) -> usize {
        // Relaxed: a figure by itself, which orders nothing; so are the others below.
        self.0.load(Ordering::Relaxed)
    }
}

impl Encodings {
    /// Returns the encoding of a key, made by `make` if it is missing. Callers that want an encoding of the same object
    /// meanwhile wait, which takes no longer than making it again.
    pub(super) fn get_or_make<E>(
        &self,
        key: EncodingKey,
        sum: &EncodedBytes,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<EncodedObject, E> {
        let mut newest = self.lock();
        let mut next = newest.as_deref();
        while let Some(encoding) = next {
            if encoding.key == key {
                return Ok(EncodedObject {
                    bytes: encoding.bytes.clone(),
                    is_new: false,
                });
            }
            next = encoding.older.as_deref();
        }
        let bytes = make()?;
        let older = newest.take();
        *newest = Some(Encoding::new(key, bytes.clone(), sum, older));
        Ok(EncodedObject {
            bytes,
            is_new: true,
        })
    }

    /// Drops the encoding of a key. Callers that hold its bytes keep them.
    pub(super) fn forget(&self, key: EncodingKey) {
        let mut newest = self.lock();
        let mut next = &mut *newest;
        while let Some(mut encoding) = next.take() {
            if encoding.key == key {
                *next = encoding.older.take();
                return;
            }
            next = &mut next.insert(encoding).older;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Encoding>>> {
        // A panic in `make` came before any change of the list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A clone is another object, which has no encodings yet.
impl Clone for Encodings {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Encoding {
    fn new(
        key: EncodingKey,
        bytes: Bytes,
        sum: &EncodedBytes,
        older: Option<Box<Self>>,
    ) -> Box<Self> {
        let encoding = Self {
            key,
            bytes,
            sum: sum.clone(),
            older,
        };
        encoding.sum.0.fetch_add(encoding.cost(), Ordering::Relaxed);
        Box::new(encoding)
    }

    fn cost(&self) -> usize {
        self.bytes.len() + ENCODING_OVERHEAD_BYTES
    }
}

impl Drop for Encoding {
    fn drop(&mut self) {
        self.sum.0.fetch_sub(self.cost(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn get(encodings: &Encodings, key: u32, sum: &EncodedBytes) -> EncodedObject {
        let make = || Ok::<_, Infallible>(Bytes::from(vec![0; key as usize]));
        let encoded = encodings.get_or_make(EncodingKey(key), sum, make);
        encoded.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn each_is_made_once_and_counted_until_it_is_forgotten() {
        let encodings = Encodings::default();
        let sum = EncodedBytes::default();
        for key in [1, 2, 3] {
            assert!(get(&encodings, key, &sum).is_new);
            let again = get(&encodings, key, &sum);
            assert!(!again.is_new);
            assert_eq!(again.bytes.len(), key as usize);
        }
        assert_eq!(sum.get(), 6 + 3 * ENCODING_OVERHEAD_BYTES);
        for (forgotten, left) in [(2, 4), (2, 4), (3, 1), (1, 0)] {
            encodings.forget(EncodingKey(forgotten));
            assert_eq!(sum.get() % ENCODING_OVERHEAD_BYTES, left);
        }
        assert_eq!(sum.get(), 0);
        assert!(get(&encodings, 2, &sum).is_new);
        assert!(get(&encodings.clone(), 2, &sum).is_new);
        drop(encodings);
        assert_eq!(sum.get(), 0);
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let encodings = Encodings::default();
        let sum = EncodedBytes::default();
        let failed = encodings.get_or_make(EncodingKey(1), &sum, || Err("no"));
        assert_eq!(failed.expect_err("a failure"), "no");
        assert_eq!(sum.get(), 0);
        assert!(get(&encodings, 1, &sum).is_new);
    }
}
