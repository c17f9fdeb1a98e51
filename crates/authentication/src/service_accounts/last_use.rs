//! Labels the Secrets of tokens with the day on which they were last used.
//!
//! Ported from Kubernetes 1.36, pkg/serviceaccount/legacy.go `patchSecretWithLastUsedDate`.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch::meta::Object;
use ringwatch_registry::{FunctionUpdate, RequestContext, Store, UpdateOptions};
use serde_json::json;

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// Maximum number of Secrets that are labelled at a time. The use of further ones is noted when they are used again.
const UNDER_WAY_MAX: usize = 16;
/// Maximum time for which a request waits until the Secret of its token is labelled.
const WRITE_MAX: Duration = Duration::from_secs(5);

/// The labels that are being written.
#[derive(Debug, Default)]
pub(super) struct LastUses {
    /// The uids of the Secrets.
    under_way: Mutex<HashSet<String>>,
}

/// A label that is being written, until this is dropped.
struct Writing<'a> {
    uses: &'a LastUses,
    uid: &'a str,
}

impl LastUses {
    /// Labels a Secret with the day, unless it has that label or, by another clock, the next day's, or another request
    /// does it. A failure is logged, and the token is valid all the same.
    pub(super) async fn note(
        &self,
        secrets: &Store,
        secret: &Object,
        clock: &Clock,
        now: Timestamp,
    ) {
        let day = |seconds: i64| {
            let time = Timestamp::from_second(now.as_second() + seconds).unwrap_or(now);
            time.strftime("%Y-%m-%d").to_string()
        };
        let (today, tomorrow) = (day(0), day(24 * 60 * 60));
        let last = secret.attributes().labels().get(LAST_USED);
        let last = last.unwrap_or_default();
        if last == today || last == tomorrow {
            return;
        }
        let Some(_writing) = self.begin(secret.uid()) else {
            return;
        };
        let context = RequestContext::of_server(clock);
        let mut used = FunctionUpdate::new(|object| {
            if object["metadata"]["uid"] == secret.uid() {
                object["metadata"]["labels"][LAST_USED] = json!(today);
            }
            Ok(())
        });
        let (namespace, name) = (secret.namespace(), secret.name());
        let options = UpdateOptions::default();
        let update = secrets.update(&context, namespace, name, &mut used, &options);
        match clock.timeout(WRITE_MAX, update).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot label a Secret with the last use of its token");
            }
            Err(_) => {
                tracing::warn!("a Secret was not labelled with the last use of its token in time");
            }
        }
    }

    /// Begins to label the Secret of this uid; `None` if that is under way, or too many others are.
    fn begin<'a>(&'a self, uid: &'a str) -> Option<Writing<'a>> {
        let mut under_way = self.under_way();
        if under_way.len() >= UNDER_WAY_MAX || !under_way.insert(uid.to_owned()) {
            return None;
        }
        Some(Writing { uses: self, uid })
    }

    fn under_way(&self) -> MutexGuard<'_, HashSet<String>> {
        let under_way = self.under_way.lock();
        under_way.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.uses.under_way().remove(self.uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_labels_are_written_at_a_time_and_each_once() {
        let uses = LastUses::default();
        let uids: Vec<String> = (0..=UNDER_WAY_MAX)
            .map(|number| number.to_string())
            .collect();
        let mut writing: Vec<_> = uids[..UNDER_WAY_MAX]
            .iter()
            .map(|uid| uses.begin(uid))
            .collect();
        assert!(writing.iter().all(Option::is_some));
        let last = &uids[UNDER_WAY_MAX];
        assert!(uses.begin(last).is_none(), "there are too many");
        writing.pop();
        assert!(uses.begin(&uids[0]).is_none(), "another request does it");
        assert!(uses.begin(last).is_some());
        drop(writing);
        assert!(uses.under_way().is_empty());
    }
}
