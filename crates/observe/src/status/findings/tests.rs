//! Each rule finds its fault, and nothing that is usual.

use super::*;
use crate::status::{
    AccountState, CertificateState, RequestRecord, WaitingReads, WatcherCounts, WindowState,
};

fn calm() -> ServerState {
    let mut state = ServerState::unknown("ringwatch", "2026-01-01T00:00:00Z".to_owned());
    state.uptime_seconds = 100.0;
    state.feed.lag_seconds = Some(0.0);
    state.feed.store_seconds = Some(0.001);
    state.feed.silent_seconds = Some(0.0);
    state.types.push(TypeState {
        name: "pods".to_owned(),
        objects: Some(10),
        bytes: Some(1_000),
        window: Some(WindowState {
            events: 1_000,
            ..WindowState::default()
        }),
        changes: Some(500),
        watchers: WatcherCounts::default(),
        reads: WaitingReads::default(),
        revision: Some(7),
        ready: true,
    });
    state.fairness.push(LevelState {
        level: "catch-all".to_owned(),
        seats: Some(5),
        executing: 0,
        taken: 0,
        waiting: 0,
        rejected: 3,
    });
    state
}

fn client(verb: &str, everything: bool, requests: u64, failed: u64) -> ClientState {
    ClientState {
        others: false,
        user: "jane".to_owned(),
        user_agent: "nosy/1.2 (linux)".to_owned(),
        address: Some("10.0.0.1".to_owned()),
        verb: verb.to_owned(),
        resource: "pods".to_owned(),
        everything,
        requests,
        failed,
        bytes: 3 << 20,
        seconds: 1.0,
    }
}

fn webhook(running_seconds: f64, calls: u64, failed: u64, seconds: f64) -> WebhookState {
    WebhookState {
        name: "deny.example.com".to_owned(),
        target: "https://127.0.0.1:1/".to_owned(),
        running: u64::from(running_seconds > 0.0),
        running_seconds,
        calls,
        failed,
        seconds,
        longest_seconds: seconds,
    }
}

/// Requests, so many of which are slow.
fn request(verb: &str, running: bool, seconds: f64, slow: u64) -> RequestRecord {
    RequestRecord {
        verb: verb.to_owned(),
        path: "/api/v1/pods".to_owned(),
        user: "jane".to_owned(),
        user_agent: String::new(),
        address: None,
        times: 100,
        slow,
        seconds,
        running,
        code: None,
    }
}

fn watcher(behind: u64) -> Watcher {
    Watcher {
        id: "1".to_owned(),
        type_name: "pods".to_owned(),
        user: "jane".to_owned(),
        user_agent: "curl/8".to_owned(),
        address: None,
        namespace: None,
        selector: String::new(),
        kind: "everything".to_owned(),
        age_seconds: 1.0,
        sent: 0,
        revision: None,
        behind: Some(behind),
        parked: true,
    }
}

/// Returns the findings of a calm state after a change.
fn after(change: impl FnOnce(&mut ServerState)) -> Vec<(Severity, String)> {
    let before = calm();
    let mut state = calm();
    state.uptime_seconds += 2.0;
    change(&mut state);
    let found = findings(&state, Some(&before)).into_iter();
    found.map(|it| (it.level, it.text)).collect()
}

/// Returns the one finding after a change.
fn one(change: impl FnOnce(&mut ServerState)) -> (Severity, String) {
    let mut found = after(change);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn nothing_is_found_of_a_calm_server() {
    assert_eq!(after(|_| {}), []);
    assert_eq!(after(|state| state.types[0].changes = Some(10_000)), []);
}

#[test]
fn certificates_stores_and_webhooks_are_found() {
    let with = |seconds_left, level| {
        after(|state| {
            state.certificates.push(CertificateState {
                name: "serving certificate".to_owned(),
                expires: "2026-01-02T00:00:00Z".to_owned(),
                seconds_left,
                level,
            });
        })
    };
    let text = "The serving certificate expires in 23h00m".to_owned();
    let expected = [(Severity::Warn, text)];
    assert_eq!(with(82_800.0, Some(Severity::Warn)), expected);
    let expired = with(-1.0, Some(Severity::Bad));
    assert!(expired[0].1.contains("has expired, at 2026-01-02"));
    assert_eq!(with(82_800.0, None), []);

    let silent = one(|state| {
        state.feed.silent_seconds = Some(2.5);
        state.feed.store_seconds = None;
    });
    let text = "The store has not answered for 2.50s".to_owned();
    assert_eq!(silent, (Severity::Bad, text));
    let slow = |store_revision| {
        one(|state| {
            state.feed.store_revision = store_revision;
            state.feed.store_seconds = Some(0.2);
        })
    };
    assert!(slow(Some(7)).1.contains("takes 0.20s"));
    let late = "The store has not told its newest revision within 0.20s";
    assert_eq!(slow(None).1, late);
    let lag = one(|state| state.feed.lag_seconds = Some(3.0));
    assert!(lag.1.contains("behind the store for 3.00s"));

    let hangs = one(|state| state.webhooks.push(webhook(7.0, 0, 0, 0.0)));
    let text = "Webhook deny.example.com has not answered for 7.00s: 1 call waits".to_owned();
    assert_eq!(hangs, (Severity::Bad, text));
    let fails = one(|state| state.webhooks.push(webhook(0.0, 4, 3, 0.1)));
    assert!(fails.1.starts_with("3 of 4 calls of webhook deny"));
    let slow = one(|state| state.webhooks.push(webhook(0.0, 4, 0, 8.0)));
    assert!(slow.1.ends_with("takes 2.00s to answer"));
}

#[test]
fn memory_levels_clients_and_requests_are_found() {
    let memory = one(|state| {
        state.memory.budget_bytes = Some(1 << 30);
        state.memory.accounts.push(AccountState {
            name: "windows".to_owned(),
            bytes: 900 << 20,
        });
    });
    let text = "Memory is at 88 % of its budget of 1.0 GiB".to_owned();
    assert_eq!(memory, (Severity::Bad, text));

    let rejects = one(|state| state.fairness[0].rejected += 14);
    let text = "Level catch-all has just rejected 14 requests with 429".to_owned();
    assert_eq!(rejects, (Severity::Bad, text));
    let queued = one(|state| state.fairness[0].waiting = 5);
    assert_eq!(queued.1, "5 requests wait for a seat of level catch-all");

    let lists = one(|state| state.clients.push(client("list", true, 58, 0)));
    let text = "nosy/1.2 (user jane at 10.0.0.1) listed all pods 58 times within the last minute, 3.0 MiB: it should watch";
    assert_eq!(lists, (Severity::Warn, text.to_owned()));
    let watches = one(|state| state.clients.push(client("watch", false, 90, 0)));
    assert!(
        watches
            .1
            .ends_with("began 90 watches of pods within the last minute")
    );
    let fails = one(|state| state.clients.push(client("get", false, 100, 95)));
    assert!(fails.1.starts_with("95 of 100 requests of nosy/1.2"));

    let waits = one(|state| {
        state.types[0].reads = WaitingReads {
            waiting: 2,
            longest_seconds: 3.5,
        };
    });
    assert_eq!(waits.0, Severity::Bad);
    let cold = one(|state| state.types[0].ready = false);
    assert_eq!(cold.1, "The cache of pods is not ready");

    let parked = one(|state| {
        state.types[0].watchers.parked = 1;
        state.types[0].watchers.behind_max = 800;
        state.slowest.push(watcher(800));
    });
    let text = "1 watcher of pods cannot keep up (parked), the furthest 800 events behind: curl/8 (user jane)";
    assert_eq!(parked, (Severity::Bad, text.to_owned()));
    let behind = one(|state| state.types[0].watchers.behind_max = 200);
    assert_eq!(behind.1, "A watcher of pods is 200 events behind");

    let runs = one(|state| {
        state.requests.push(request("list", true, 12.0, 1));
        state.requests.push(request("list", true, 1.0, 2));
    });
    let text = "list /api/v1/pods of a client without a user agent (user jane) has run for 12.00s, \
                and 2 others for 0.50s or longer";
    assert_eq!(runs, (Severity::Bad, text.to_owned()));
    let writes = one(|state| state.requests.push(request("update", false, 0.7, 3)));
    let text = "3 writes of the last minute took 0.50s or longer: the store is slow";
    assert_eq!(writes, (Severity::Warn, text.to_owned()));
}

#[test]
fn slow_writes_name_what_they_wait_for_where_it_is_known() {
    let culprit = |webhook| {
        let found = one(|state| {
            state.requests.push(request("update", false, 0.7, 3));
            state.webhooks.push(webhook);
        });
        found.1.split(": ").last().map(str::to_owned)
    };
    let slow = culprit(webhook(0.9, 0, 0, 0.0));
    assert_eq!(
        slow.as_deref(),
        Some("the store or webhook deny.example.com is slow")
    );
    let quick = culprit(webhook(0.0, 1, 0, 0.1));
    assert_eq!(quick.as_deref(), Some("the store is slow"));
}

#[test]
fn what_is_usual_is_not_found() {
    let found = after(|state| {
        state.clients.push(client("list", true, LISTS - 1, 0));
        state.clients.push(client("list", false, 1_000, 0));
        state.clients.push(client("get", false, 1_000, 500));
        state.clients.push(ClientState {
            others: true,
            ..client("list", true, 1_000, 1_000)
        });
        state.webhooks.push(webhook(0.9, 1_000, 9, 10.0));
        state.requests.push(request("list", false, 30.0, 5));
        state.requests.push(request("update", false, 0.7, 2));
        // Two thousand changes in two seconds explain it.
        state.types[0].watchers.behind_max = 300;
        state.types[0].changes = Some(2_500);
        // No cache serves them.
        state.types.push(TypeState {
            name: "tokenreviews".to_owned(),
            window: None,
            ready: false,
            watchers: WatcherCounts::default(),
            ..state.types[0].clone()
        });
    });
    assert_eq!(found, []);
}

#[test]
fn the_worst_come_first_and_no_rule_takes_all_places() {
    let found = after(|state| {
        for _ in 0..FINDINGS_MAX {
            state.clients.push(client("list", true, 60, 0));
            state.webhooks.push(webhook(0.0, 4, 3, 0.1));
        }
        state.types[0].ready = false;
        state.feed.silent_seconds = Some(3.0);
    });
    assert_eq!(found.len(), 2 * OF_RULE_MAX + 2, "{found:?}");
    assert_eq!(found[0].0, Severity::Bad);
    assert!(found[1..].iter().all(|it| it.0 == Severity::Warn));
    assert!(found.iter().any(|it| it.1.contains("is not ready")));
}

#[test]
fn a_watcher_is_not_behind_as_long_as_no_rate_is_known() {
    let mut state = calm();
    state.types[0].watchers.behind_max = 300;
    assert_eq!(findings(&state, None), []);
}

#[test]
fn a_finding_says_where_there_is_more() {
    let mut state = calm();
    state.types[0].ready = false;
    state.webhooks.push(webhook(6.0, 0, 0, 0.0));
    let json = serde_json::to_value(findings(&state, None)).expect("JSON");
    assert_eq!(json[0]["level"], "bad");
    assert_eq!(json[0]["about"]["section"], "webhooks");
    assert_eq!(json[1]["about"]["type"], "pods");
}
