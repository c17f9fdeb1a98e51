//! The group `batch`: Jobs and CronJobs.

mod defaults;
mod failure_policy;
mod indexes;
mod job;
mod job_status;
mod schedule;
mod success_policy;
pub(crate) mod table;
pub(crate) mod validation;
mod warnings;

use ringwatch_registry::GarbageCollection;
use ringwatch_registry::subresource::SubresourceMetadata;
use ringwatch_registry::subresource::SubresourceStrategy;

use self::job::Jobs;
use self::job_status::job_status_update;
use self::warnings::CronJobs;
use super::cluster_options::ClusterOptions;
use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup, field_or};
use super::strategy::stored;
use super::{
    core::pod::{off_features, validation::security, warnings::name_of_pods},
    validation::found_in_change,
};

const V1: RowGroup = RowGroup::new("batch", "v1");

pub(super) fn rows(options: &ClusterOptions) -> Vec<RowBuilder> {
    let mut successful = field_or("status.successful", "0");
    successful.from = &["status.succeeded"];
    vec![
        V1.namespaced("cronjobs", "CronJob")
            .short(&["cj"])
            .category("all")
            .status()
            .strategy(
                Generic::with_status()
                    .defaults(defaults::CRON_JOB)
                    .defaults_on_read(stored::job_template)
                    .check_on_create(validation::cron_job)
                    .check_on_update(validation::cron_job_update)
                    .off_fields(off_features::of_cron_job)
                    .check_if(!options.allow_privileged, security::unprivileged_cron_job)
                    .warn_of_new(name_of_pods)
                    .warn_always(warnings::cron_job)
                    .hooks(CronJobs)
                    .generation(&["spec"]),
            ),
        V1.namespaced("jobs", "Job")
            .category("all")
            .fields([successful])
            .status()
            .strategy(
                Generic::with_status()
                    .names_on_update()
                    .defaults(defaults::JOB)
                    .defaults_on_read(stored::spec_template)
                    .hooks(Jobs)
                    .part("status", status())
                    .check_on_create(validation::job)
                    .check_on_update(validation::job_update)
                    .off_fields(off_features::of_template)
                    .check_if(!options.allow_privileged, security::unprivileged_template)
                    .warn_of_new(name_of_pods)
                    .warn_always(warnings::job)
                    .generation(&["spec"])
                    .garbage_collection(GarbageCollection::OrphanDependents)
                    .warn_on_default_deletion(PODS_STAY),
            ),
    ]
}

/// The warning about the default of deletions of Jobs.
const PODS_STAY: &str = "child pods are preserved by default when jobs are deleted; set \
     propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this \
     warning";

/// Returns the strategy of a job's status subresource, which validates changes of the status. A job that lost its
/// labels gets those of its template, as when kube-apiserver reads it again.
fn status() -> SubresourceStrategy {
    let part = SubresourceStrategy::new("status", SubresourceMetadata::Free);
    part.finish(|_, job, _| defaults::label_like_the_template(job))
        .validate_update(|job, old| found_in_change(job_status_update, job, old))
}
