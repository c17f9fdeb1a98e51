//! Tables of Jobs and CronJobs.

use ringwatch_registry::human_duration::human;

use crate::apps::table::containers;
use crate::core::service::table::selector;
use crate::table::{Column, TableConvertor, cells, subject::RowSubject};

const NONE: &str = "<none>";

const SELECTOR: Column = Column::text("Selector", "Selects the pods of the job.").wide();

/// Types of conditions that are the job's status if they are true, in the order of precedence. Deletion ranks between
/// [`ENDS`] and [`STATES`].
const ENDS: [&str; 2] = ["Complete", "Failed"];
const STATES: [&str; 2] = ["Suspended", "FailureTarget"];

/// Table of Jobs, with status, completions and duration.
pub(crate) static JOBS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Status", "Status of the job."),
        Column::text("Completions", "How many pods have succeeded, of how many."),
        Column::text("Duration", "Time required to complete the job."),
        Column::AGE,
        Column::CONTAINERS.wide(),
        Column::IMAGES.wide(),
        SELECTOR,
    ],
    |job| {
        let (names, images) = containers(job, "spec.template.spec.containers");
        cells![
            job.name(),
            status(job),
            completions(job),
            duration(job),
            job.age(),
            names,
            images,
            selector(job, "spec.selector"),
        ]
    },
);

/// Table of CronJobs, with their schedule and active jobs.
pub(crate) static CRON_JOBS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Schedule", "When jobs are begun, as cron writes it."),
        Column::text("Timezone", "The time zone of the schedule."),
        Column::boolean("Suspend", "Whether no more jobs are begun."),
        Column::number("Active", "How many jobs run."),
        Column::text("Last Schedule", "For how long no job has been begun."),
        Column::AGE,
        Column::CONTAINERS.wide(),
        Column::IMAGES.wide(),
        SELECTOR,
    ],
    |cron| {
        let template = "spec.jobTemplate.spec.template.spec.containers";
        let (names, images) = containers(cron, template);
        let last = "status.lastScheduleTime";
        let last = cron.has(last).then(|| cron.since(last));
        cells![
            cron.name(),
            cron.text("spec.schedule"),
            cron.text_or("spec.timeZone", NONE),
            match cron.boolean("spec.suspend") {
                Some(true) => "True",
                Some(false) => "False",
                None => "<unset>",
            },
            cron.count("status.active"),
            last.unwrap_or_else(|| NONE.to_owned()),
            cron.age(),
            names,
            images,
            selector(cron, "spec.jobTemplate.spec.selector"),
        ]
    },
);

fn status(job: &RowSubject<'_>) -> &'static str {
    let is = |kind: &&str| {
        let mut conditions = job.list("status.conditions");
        let found = conditions.find(|condition| condition.text("type") == *kind);
        found.is_some_and(|condition| condition.text("status") == "True")
    };
    if let Some(end) = ENDS.into_iter().find(is) {
        end
    } else if job.is_being_deleted() {
        "Terminating"
    } else {
        STATES.into_iter().find(is).unwrap_or("Running")
    }
}

fn completions(job: &RowSubject<'_>) -> String {
    let succeeded = job.number("status.succeeded");
    match (
        job.shown("spec.completions"),
        job.number("spec.parallelism"),
    ) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallel @ 2..) => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

/// Returns the time from the job's start to its completion, or until now; empty if the job has not started.
fn duration(job: &RowSubject<'_>) -> String {
    let Some(start) = job.time("status.startTime") else {
        return String::new();
    };
    job.time("status.completionTime")
        .map_or_else(|| job.ago(start), |end| human(end.duration_since(start)))
}
