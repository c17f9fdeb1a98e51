//! Deletes Jobs, with their pods, once the time is over that `ttlSecondsAfterFinished` gives a finished one.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_apimachinery::{Error, path};
use ringwatch_registry::informer::InformerChange;
use ringwatch_registry::{DeleteOptions, PropagationPolicy};
use serde_json::Value;

use crate::ServedStores;
use crate::controller::{self, Controller, Next};
use crate::objects::ControllerObjects;

/// The service account of the controller.
const ACCOUNT: &str = "ttl-after-finished-controller";

/// The conditions of which one is true when a Job has finished.
const FINISHED: [&str; 2] = ["Complete", "Failed"];

/// The controller of finished Jobs.
#[derive(Debug)]
pub(crate) struct FinishedJobs<'a> {
    jobs: ControllerObjects<'a>,
    clock: &'a Clock,
}

impl FinishedJobs<'_> {
    /// Runs the controller until it is dropped.
    pub(crate) async fn run(stores: &ServedStores, clock: &Clock) {
        let Some(jobs) = ControllerObjects::new(stores, ("batch", "jobs"), ACCOUNT, clock) else {
            return;
        };
        let sources = vec![((), jobs.source())];
        let controller = FinishedJobs { jobs, clock };
        controller::run(&controller, "finished jobs", sources, clock).await;
    }
}

#[async_trait]
impl Controller for FinishedJobs<'_> {
    type Source = ();
    type Key = (String, String);

    fn keys(&self, (): (), change: &InformerChange) -> Vec<(String, String)> {
        match change {
            InformerChange::Upserted(job) => {
                vec![(job.namespace().to_owned(), job.name().to_owned())]
            }
            InformerChange::Deleted(_) => Vec::new(),
        }
    }

    async fn reconcile(&self, (namespace, name): &(String, String)) -> Result<Next, Error> {
        let Some(job) = self.jobs.get(namespace, name).await? else {
            return Ok(Next::Done);
        };
        let Some(ends) = ends(&job).filter(|_| !is_terminating(&job)) else {
            return Ok(Next::Done);
        };
        let left = ends.duration_since(self.clock.wall());
        if let Ok(left) = Duration::try_from(left)
            && !left.is_zero()
        {
            return Ok(Next::At(self.clock.now() + left));
        }
        let options = DeleteOptions {
            precondition_resource_version: Some(accessor::text(&job, "resourceVersion").to_owned()),
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteOptions::default()
        };
        self.jobs.delete(&job, options).await?;
        Ok(Next::Done)
    }
}

/// Returns when the time of a Job is over; `None` if it has not finished, or has no such time.
fn ends(job: &Value) -> Option<Timestamp> {
    let seconds = path::get(job, "spec.ttlSecondsAfterFinished")?.as_i64()?;
    let conditions = path::list(job, "status.conditions").iter();
    let mut finished = conditions
        .filter(|it| it["status"] == "True" && FINISHED.iter().any(|name| it["type"] == *name));
    let finished = finished.next()?["lastTransitionTime"].as_str()?;
    Some(accessor::later(finished.parse().ok()?, seconds))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_finished_job_with_a_time_ends() {
        let job = |seconds: Value, condition: &str, status: &str| {
            json!({
                "spec": {"ttlSecondsAfterFinished": seconds},
                "status": {"conditions": [
                    {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                    {"type": condition, "status": status, "lastTransitionTime": "2026-01-02T03:04:05Z"},
                ]},
            })
        };
        let end = |job: &Value| ends(job).map(|it| it.to_string());
        let expected = Some("2026-01-02T03:04:15Z".to_owned());
        assert_eq!(end(&job(json!(10), "Complete", "True")), expected);
        assert_eq!(end(&job(json!(10), "Failed", "True")), expected);
        assert_eq!(end(&job(json!(10), "Failed", "False")), None);
        assert_eq!(end(&job(json!(10), "SuccessCriteriaMet", "True")), None);
        assert_eq!(end(&job(Value::Null, "Complete", "True")), None);
    }
}
