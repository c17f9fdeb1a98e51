//! One resource at its upstream: the requests that its source of changes and its store have in common.

use std::sync::Arc;

use ringwatch::budget::Share;
use ringwatch::storage::StorageError;
use ringwatch_offload::{Work, offload_if_large};

use super::list_page::ListPage;
use super::query::Query;
use super::refusal::{Refusal, RefusedRequest};
use super::resource::{ResourcePath, ResourceType};
use super::upstream::{StreamAnswer, Upstream};

/// A resource and the upstream that has it.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) resource: Arc<ResourceType>,
}

impl Remote {
    /// Reads a list, or a page of one, with its share of the memory budget.
    ///
    /// # Errors
    /// The upstream's refusal; the errors of the connection; an answer that is no list;
    /// [`StorageError::OutOfMemory`] when the budget has no room for it.
    pub(crate) async fn list(
        &self,
        namespace: Option<&str>,
        query: Query,
        continued: bool,
    ) -> Result<(ListPage, Share), StorageError> {
        let place = ResourcePath {
            namespace,
            name: None,
        };
        let path = query.after(&self.resource.path(place));
        let (answer, mut memory) = self.upstream.list(&path, self.resource.accept()).await?;
        if !answer.status.is_success() {
            return Err(Refusal::answer(&answer).error(RefusedRequest::List { continued }));
        }
        let work = match answer.is_protobuf {
            true => Work::ProtobufBody,
            false => Work::Body,
        };
        // It is decoded in one go, of which the client has chosen the size.
        offload_if_large(work, &answer.body).await;
        let page = ListPage::decode(&answer, &self.resource, &mut memory)?;
        Ok((page, memory))
    }

    /// Returns the version that the upstream has at some moment after the call. No write of this resource that was
    /// acknowledged before has a higher one.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(crate) async fn current_revision(&self) -> Result<u64, StorageError> {
        let (page, _) = self
            .list(None, Query::new().with("limit", 1), false)
            .await?;
        Ok(page.revision)
    }

    /// Opens a watch.
    ///
    /// # Errors
    /// The upstream's refusal; the errors of the connection.
    pub(crate) async fn watch(
        &self,
        namespace: Option<&str>,
        query: Query,
    ) -> Result<StreamAnswer, StorageError> {
        let place = ResourcePath {
            namespace,
            name: None,
        };
        let path = query.after(&self.resource.path(place));
        self.upstream
            .open(&path, self.resource.accept_stream())
            .await
    }
}
