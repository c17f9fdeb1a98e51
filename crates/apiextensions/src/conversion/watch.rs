//! A watch of stored objects that shows them as they are served.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use ringwatch::meta::WatchEvent;
use ringwatch::storage::{StorageError, WatchStream};

use super::selection::Selection;
use super::served_version::ServedVersion;

/// An event that may be selected once it is converted.
type Conversion = BoxFuture<'static, Result<Option<WatchEvent>, StorageError>>;

/// A watch of converted objects. Events about objects that are served as they are stored pass unchanged.
pub(super) struct ConvertedWatch {
    /// The watch of stored objects; `None` after its end, or after an error.
    stored: Option<WatchStream>,
    shown: Arc<ServedVersion>,
    selection: Arc<Selection>,
    /// The conversion of the event that came last.
    conversion: Option<Conversion>,
}

impl ConvertedWatch {
    /// Makes the watch that shows what this one of stored objects sees, as far as it is selected.
    pub(super) fn new(
        stored: WatchStream,
        shown: Arc<ServedVersion>,
        selection: Selection,
    ) -> Self {
        Self {
            stored: Some(stored),
            shown,
            selection: Arc::new(selection),
            conversion: None,
        }
    }

    fn convert(&self, event: WatchEvent) -> Conversion {
        let (shown, selection) = (Arc::clone(&self.shown), Arc::clone(&self.selection));
        async move { shown.event(event, &selection).await }.boxed()
    }

    /// Returns true if an event about stored objects is shown unchanged.
    fn passes(&self, event: &WatchEvent) -> bool {
        match event {
            WatchEvent::Bookmark { .. } => true,
            WatchEvent::Added(object)
            | WatchEvent::Modified(object)
            | WatchEvent::Deleted(object) => {
                !self.selection.looks_at_content() && self.shown.is_served_as_stored(object)
            }
            WatchEvent::Replaced { .. } => false,
        }
    }
}

impl Stream for ConvertedWatch {
    type Item = Result<WatchEvent, StorageError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let item = if let Some(conversion) = &mut self.conversion {
                let shown = ready!(conversion.poll_unpin(context));
                self.conversion = None;
                match shown {
                    Ok(None) => continue,
                    Ok(Some(event)) => Some(Ok(event)),
                    Err(error) => Some(Err(error)),
                }
            } else {
                let Some(stored) = &mut self.stored else {
                    return Poll::Ready(None);
                };
                match ready!(stored.poll_next_unpin(context)) {
                    Some(Ok(event)) if !self.passes(&event) => {
                        self.conversion = Some(self.convert(event));
                        continue;
                    }
                    item => item,
                }
            };
            // An error is the last item, whoever makes it.
            if !matches!(item, Some(Ok(_))) {
                self.stored = None;
            }
            return Poll::Ready(item);
        }
    }
}
