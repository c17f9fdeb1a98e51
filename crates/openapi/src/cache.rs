//! An LRU cache of finished documents.
//!
//! Documents are keyed by their hash, so that a change of resources does not evict unaffected documents. An evicted
//! document is still found while a client reads it, so that concurrent readers of a large one share it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use ringwatch::budget::{Account, Ledger, Share};

use super::form::{OpenApiVersion, Syntax};

/// Maximum number of bytes of cached documents.
const BYTES_MAX: usize = 8 << 20;

/// A cache of finished documents by their hashes.
#[derive(Debug)]
pub(super) struct DocumentCache {
    kept: Mutex<CachedDocuments>,
    /// Serializes the building of documents, so that concurrent clients do not each build the same one.
    making: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct CachedDocuments {
    /// The cached documents, the most recently used first.
    documents: VecDeque<CachedDocument>,
    share: Share,
}

#[derive(Debug)]
struct CachedDocument {
    kind: (OpenApiVersion, Syntax),
    hash: String,
    content: Weak<DocumentBytes>,
    kept: Option<Arc<DocumentBytes>>,
}

/// The bytes of a document, which clients share.
#[derive(Debug)]
struct DocumentBytes(Vec<u8>);

/// A document's bytes as one response holds them.
struct SharedContent(Arc<DocumentBytes>);

impl AsRef<[u8]> for SharedContent {
    fn as_ref(&self) -> &[u8] {
        &self.0.0
    }
}

impl DocumentCache {
    /// Creates a cache without documents.
    pub(super) fn new(ledger: &Ledger) -> Self {
        Self {
            kept: Mutex::new(CachedDocuments {
                documents: VecDeque::new(),
                share: ledger.share(Account::Encodings),
            }),
            making: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the document of a hash, and builds it if it is not cached.
    pub(super) async fn get<M: Future<Output = Vec<u8>>>(
        &self,
        kind: (OpenApiVersion, Syntax),
        hash: &str,
        make: impl FnOnce() -> M,
    ) -> Bytes {
        if let Some(content) = self.lock().find(kind, hash) {
            return content;
        }
        let _making = self.making.lock().await;
        if let Some(content) = self.lock().find(kind, hash) {
            return content;
        }
        let content = Arc::new(DocumentBytes(make().await));
        self.lock().keep(CachedDocument {
            kind,
            hash: hash.to_owned(),
            content: Arc::downgrade(&content),
            kept: Some(Arc::clone(&content)),
        });
        Bytes::from_owner(SharedContent(content))
    }

    fn lock(&self) -> MutexGuard<'_, CachedDocuments> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedDocuments {
    fn find(&mut self, kind: (OpenApiVersion, Syntax), hash: &str) -> Option<Bytes> {
        let known = |it: &CachedDocument| it.kind == kind && it.hash == hash;
        let at = self.documents.iter().position(known)?;
        let document = self.documents.remove(at)?;
        let content = document.content.upgrade()?;
        self.documents.push_front(document);
        Some(Bytes::from_owner(SharedContent(content)))
    }

    fn keep(&mut self, document: CachedDocument) {
        self.documents.push_front(document);
        let mut bytes = 0;
        for document in &mut self.documents {
            let more = document.kept.as_ref().map_or(0, |it| it.0.len());
            if bytes + more > BYTES_MAX {
                document.kept = None;
            } else {
                bytes += more;
            }
        }
        self.documents.retain(|it| it.content.strong_count() > 0);
        self.share.set(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: (OpenApiVersion, Syntax) = (OpenApiVersion::V3, Syntax::Json);

    #[tokio::test]
    async fn a_document_is_made_once_while_it_is_kept() {
        let cache = DocumentCache::new(&Ledger::unlimited());
        let made = cache.get(KIND, "a", || async { vec![1] }).await;
        let again = cache.get(KIND, "a", || async { vec![2] }).await;
        assert_eq!((&made[..], &again[..]), (&[1][..], &[1][..]));
        let other = cache.get((OpenApiVersion::V2, Syntax::Json), "a", || async {
            vec![2]
        });
        assert_eq!(other.await[..], [2]);
    }

    #[tokio::test]
    async fn what_was_not_asked_for_longest_is_forgotten_first() {
        let ledger = Ledger::unlimited();
        let cache = DocumentCache::new(&ledger);
        let half = || async { vec![0; BYTES_MAX / 2] };
        for hash in ["a", "b", "a", "c"] {
            cache.get(KIND, hash, half).await;
        }
        assert_eq!(ledger.spent(Account::Encodings), BYTES_MAX as u64);
        assert!(cache.lock().find(KIND, "a").is_some());
        assert!(cache.lock().find(KIND, "b").is_none());
        let ask = || cache.get(KIND, "d", || async { vec![0; 2 * BYTES_MAX] });
        let (one, other) = (ask().await, ask().await);
        assert_eq!(
            one.as_ptr(),
            other.as_ptr(),
            "large ones are shared while they are read"
        );
        drop((one, other));
        assert!(cache.lock().find(KIND, "d").is_none());
        assert!(cache.lock().find(KIND, "a").is_some());
    }
}
