//! Tests of the tables of Jobs and CronJobs.

use serde_json::json;

use super::{NOW, cells};

#[test]
fn jobs_show_how_far_they_are() {
    let spec = json!({"completions": 3, "selector": {"matchLabels": {"j": "1"}},
        "template": {"spec": {"containers": [{"name": "a", "image": "i"}]}}});
    let started = json!({"succeeded": 1, "startTime": "2026-11-22T11:58:00Z"});
    let job = json!({"spec": spec, "status": started});
    assert_eq!(
        cells("batch", "Job", job),
        json!(["Running", "1/3", "2m", "a", "i", "j=1"])
    );
    for (condition, deleted, status) in [
        ("Complete", false, "Complete"),
        ("Failed", true, "Failed"),
        ("Suspended", true, "Terminating"),
        ("Suspended", false, "Suspended"),
        ("FailureTarget", false, "FailureTarget"),
    ] {
        let mut job = json!({"metadata": {}, "spec": {"parallelism": 2}, "status": {
            "startTime": "2026-11-22T11:00:00Z", "completionTime": "2026-11-22T11:00:09Z",
            "conditions": [{"type": condition, "status": "True"}]}});
        if deleted {
            job["metadata"]["deletionTimestamp"] = json!(NOW);
        }
        let expected = json!([status, "0/1 of 2", "9s", "", "", "<none>"]);
        assert_eq!(cells("batch", "Job", job), expected);
    }
    let cron = json!({"spec": {"schedule": "* * * * *", "suspend": false, "timeZone": "Etc/UTC",
            "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "i"}]}}}}},
        "status": {"active": [{}, {}], "lastScheduleTime": "2026-11-22T11:59:30Z"}});
    assert_eq!(
        cells("batch", "CronJob", cron),
        json!([
            "* * * * *",
            "Etc/UTC",
            "False",
            2,
            "30s",
            "a",
            "i",
            "<none>"
        ])
    );
    let bare = cells("batch", "CronJob", json!({"spec": {"schedule": "@daily"}}));
    assert_eq!(
        bare,
        json!(["@daily", "<none>", "<unset>", 0, "<none>", "", "", "<none>"])
    );
}
