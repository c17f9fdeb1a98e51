//! Deleting what a list selects.

use super::Store;
use crate::registry::{DeleteOptions, Error, RequestContext};
use crate::storage::{List, ListOptions};

/// How many objects are listed at a time, unless the client says.
const PAGE_OBJECTS: u64 = 10_000;

impl Store {
    /// Deletes what a list selects, one after the other, and returns the list. With a limit it
    /// deletes one page. Not atomic: what was deleted before an error stays deleted.
    ///
    /// # Errors
    /// Those of [`Store::list`] and [`Store::delete`]; objects that are gone are no error.
    pub async fn delete_collection(
        &self,
        context: &RequestContext,
        namespace: &str,
        options: DeleteOptions,
        mut list: ListOptions,
    ) -> Result<List, Error> {
        let one_page = list.predicate.limit > 0;
        if !one_page {
            list.predicate.limit = PAGE_OBJECTS;
        }
        let mut deleted: Option<List> = None;
        loop {
            let page = self.list(namespace, list.clone()).await?;
            for object in &page.items {
                let (namespace, name) = (object.namespace(), object.name());
                let result = self.delete(context, namespace, name, options.clone()).await;
                match result {
                    Ok(_) | Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            if one_page {
                return Ok(page);
            }
            let next = page.continue_token.clone();
            list.resource_version = None;
            list.version_match = None;
            let all = match &mut deleted {
                None => deleted.insert(List {
                    continue_token: None,
                    remaining_item_count: None,
                    ..page
                }),
                Some(all) => {
                    all.items.extend(page.items);
                    all
                }
            };
            match next {
                Some(next) => list.predicate.continue_token = next,
                None => return Ok(std::mem::take(all)),
            }
        }
    }
}
