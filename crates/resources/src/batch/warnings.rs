//! The warnings about Jobs and CronJobs.

use serde_json::Value;

use crate::core::pod::warnings::templates;
use crate::strategy::kind_hooks::KindHooks;
use crate::validation::field::Field;

/// Number of completions above which an indexed job is told of too many pods at a time, and the number of these.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const PARALLELISM_SOFT_MAX: i64 = 10_000;

/// Adds the warnings about a Job.
pub(super) fn job(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    job_spec(&object.at("spec"), warnings);
}

/// Adds the warnings about a CronJob.
pub(super) fn cron_job(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    job_spec(&object.at("spec.jobTemplate.spec"), warnings);
}

/// Adds the warnings about the spec of a job. Follows `WarningsForJobSpec` in pkg/api/job of Kubernetes 1.36.
fn job_spec(spec: &Field<'_, '_>, warnings: &mut Vec<String>) {
    const WHY: &str = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
    let count = |name: &str| spec.at(name).number().unwrap_or(0);
    let is_indexed = spec.at("completionMode").text() == "Indexed";
    let has_many = count("completions") > COMPLETIONS_SOFT_MAX;
    if is_indexed && has_many && count("parallelism") > PARALLELISM_SOFT_MAX {
        warnings.push(format!("{}: {WHY}", spec.field()));
    }
    templates(&spec.at("template"), warnings);
}

/// The behaviour of CronJobs: an update is told of a time zone in the schedule.
#[derive(Debug)]
pub(super) struct CronJobs;

impl KindHooks for CronJobs {
    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        const WHY: &str = "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
        let schedule = Field::root(object).at("spec.schedule").text();
        let is_told = old.is_some() && schedule.contains("TZ");
        is_told.then(|| WHY.to_owned()).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_pods_of_many_indexes_are_told() {
        let spec = |parallelism: i64| {
            json!({"completionMode": "Indexed", "completions": 100_001,
                "parallelism": parallelism, "template": {"spec": {}}})
        };
        let told = |parallelism: i64| {
            let mut warnings = Vec::new();
            let object = json!({"spec": {"jobTemplate": {"spec": spec(parallelism)}}});
            cron_job(&Field::root(&object), &mut warnings);
            job(
                &Field::root(&json!({"spec": spec(parallelism)})),
                &mut warnings,
            );
            warnings
        };
        assert_eq!(told(10_000), [""; 0]);
        let warnings = told(10_001);
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].starts_with("spec.jobTemplate.spec: In Indexed Jobs"));
        assert!(warnings[1].starts_with("spec: In Indexed Jobs"));
    }

    #[test]
    fn an_update_is_told_of_a_zone_in_the_schedule() {
        let object = json!({"spec": {"schedule": "TZ=UTC 0 0 * * *"}});
        assert_eq!(CronJobs.warnings(&object, None), [""; 0]);
        assert_eq!(CronJobs.warnings(&object, Some(&object)).len(), 1);
    }
}
