//! Lists of converted objects.
//!
//! With selectors a page of stored objects may contain few that are selected once they are converted, or none. So pages
//! are read until there are as many as the client's limit, and they grow, as those of `src/storage/etcd3/list.rs` do.

use std::sync::Arc;

use ringwatch::budget::{Account, Ledger, Share};
use ringwatch::meta::Object;
use ringwatch::storage::{ContinueToken, Interface, List, ListOptions, StorageError};

use super::selection::Selection;
use super::served_version::{BATCH_BYTES_MAX, ServedVersion};

/// The largest page, in objects, up to which pages grow while selectors drop most of them.
const PAGE_OBJECTS_MAX: u64 = 1_000;

/// A list of converted objects that is being read.
pub(super) struct ConvertedList<'a> {
    inner: &'a dyn Interface,
    shown: &'a ServedVersion,
    key: &'a str,
    options: &'a ListOptions,
    selection: Selection,
    /// The share of the memory budget for what was converted, and for pages that the store has read.
    memory: Option<Share>,
}

impl<'a> ConvertedList<'a> {
    /// Creates the list under a key of `inner`, as the options select.
    pub(super) fn new(
        inner: &'a dyn Interface,
        shown: &'a ServedVersion,
        key: &'a str,
        options: &'a ListOptions,
    ) -> Self {
        let ledger = options.memory.as_ref();
        let share = |ledger: &Ledger| ledger.share(Account::Requests);
        Self {
            inner,
            shown,
            key,
            options,
            selection: Selection::new(&options.predicate, shown.converter().changes_content()),
            memory: ledger.map(share),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// Those of [`Interface::get_list`], and of the conversion.
    pub(super) async fn read(mut self) -> Result<List, StorageError> {
        let limit = self.options.predicate.limit;
        let first = ListOptions {
            predicate: self.selection.stored().clone(),
            selects_later: self.selection.looks_at_content(),
            ..self.options.clone()
        };
        let mut list = self.inner.get_list(self.key, first).await?;
        let mut objects = list.items.iter();
        if !self.selection.looks_at_content()
            && objects.all(|object| self.shown.is_served_as_stored(object))
        {
            return Ok(list);
        }
        let stored = std::mem::take(&mut list.items);
        let count = stored.len();
        self.take(stored, &mut list.items).await?;
        self.hold(list.memory.take(), list.items.len(), count);
        if self.selection.looks_at_content() {
            list.remaining_item_count = None;
        }
        let mut page = limit;
        while (list.items.len() as u64) < limit
            && let Some(token) = list.continue_token.take()
        {
            page = page.saturating_mul(2).min(PAGE_OBJECTS_MAX).max(limit);
            let wanted = usize::try_from(limit).unwrap_or(usize::MAX) - list.items.len();
            let next = self.inner.get_list(self.key, self.next(token, page)).await;
            let next = next.map_err(|error| self.explain(error))?;
            list.corrupt.extend(next.corrupt);
            list.continue_token = next.continue_token;
            let mut selected = Vec::new();
            let count = next.items.len();
            self.take(next.items, &mut selected).await?;
            self.hold(next.memory, selected.len(), count);
            if selected.len() > wanted {
                selected.truncate(wanted);
                let last = selected.last().map(Arc::as_ref);
                list.continue_token = last.map(|it| self.token(it, list.revision)).transpose()?;
            }
            list.items.append(&mut selected);
        }
        list.memory = self.memory.map(Arc::new);
        Ok(list)
    }

    /// Takes over the memory of a page that is held by this list alone, for as many of its objects as are selected.
    fn hold(&mut self, page: Option<Arc<Share>>, selected: usize, count: usize) {
        if let (Some(memory), Some(page)) = (&mut self.memory, page) {
            let bytes = page.bytes() / (count.max(1) as u64) * selected as u64;
            memory.set(memory.bytes() + bytes);
        }
    }

    /// Returns the options of a page that is not the first.
    fn next(&self, token: String, limit: u64) -> ListOptions {
        let mut predicate = self.selection.stored().clone();
        predicate.continue_token = token;
        predicate.limit = limit;
        ListOptions {
            predicate,
            selects_later: self.selection.looks_at_content(),
            resource_version: None,
            version_match: None,
            ..self.options.clone()
        }
    }

    /// Converts stored objects, and appends those that are selected.
    async fn take(
        &mut self,
        mut stored: Vec<Arc<Object>>,
        selected: &mut Vec<Arc<Object>>,
    ) -> Result<(), StorageError> {
        let mut stored = stored.drain(..).peekable();
        while stored.peek().is_some() {
            let mut bytes = 0;
            let mut batch = Vec::new();
            while let Some(object) = stored
                .next_if(|it| batch.is_empty() || bytes + it.stored().len() <= BATCH_BYTES_MAX)
            {
                bytes += object.stored().len();
                batch.push(object);
            }
            let originals = batch.clone();
            self.shown.objects(&mut batch).await?;
            let mut converted = 0;
            for (object, original) in batch.into_iter().zip(&originals) {
                if self.selection.selects(&object) {
                    if !Arc::ptr_eq(&object, original) {
                        converted += object.stored().len() as u64;
                    }
                    selected.push(object);
                }
            }
            if let Some(memory) = &mut self.memory {
                memory.admit(converted)?;
            }
        }
        Ok(())
    }

    /// Returns the token of the list after an object.
    fn token(&self, last: &Object, revision: u64) -> Result<String, StorageError> {
        let prefix = &self.shown.resource().storage_prefix;
        let namespace = match last.namespace() {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        };
        let token = ContinueToken {
            start: format!("/{prefix}/{namespace}{}\0", last.name()),
            revision: Some(revision),
        };
        Ok(token.encode(self.key)?)
    }

    /// Returns the error of a page that is not the first, as one of the whole list: the client does not know the token
    /// of that page.
    fn explain(&self, error: StorageError) -> StorageError {
        let StorageError::ContinueExpired { .. } = error else {
            return error;
        };
        let token = &self.options.predicate.continue_token;
        if token.is_empty() {
            return StorageError::ListExpired;
        }
        let again = ContinueToken::decode(token, self.key).and_then(|token| {
            let newest = ContinueToken {
                revision: None,
                ..token
            };
            newest.encode(self.key)
        });
        again.map_or(StorageError::ListExpired, |token| {
            StorageError::ContinueExpired { token }
        })
    }
}
