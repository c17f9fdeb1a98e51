//! Requests, those who make them, and what they wait for.

use ringwatch_flowcontrol::fairness::LevelFigures;
use ringwatch_observe::running_requests::RequestSummary;
use ringwatch_observe::status::thresholds::SLOW_SECONDS;
use ringwatch_observe::status::{ClientState, LevelState, RequestRecord, WebhookState, type_name};
use ringwatch_observe::traffic::ClientTraffic;
use ringwatch_observe::webhook_calls::WebhookFigures;

pub(super) fn level(figures: LevelFigures) -> LevelState {
    LevelState {
        level: figures.name,
        seats: figures.seats.map(u64::from),
        executing: figures.executing,
        taken: figures.taken,
        waiting: figures.waiting,
        rejected: figures.rejected,
    }
}

/// Returns requests, equal ones of a client as one: those that run first, the slowest of each first.
pub(super) fn requests(mut shown: Vec<RequestSummary>, max: usize) -> Vec<RequestRecord> {
    shown.sort_by_key(|it| (!it.running, std::cmp::Reverse(it.took)));
    let mut rows: Vec<RequestRecord> = Vec::new();
    for request in shown {
        let row = request_row(&request);
        // They are few: the slowest that are kept.
        match rows.iter_mut().find(|it| is_alike(it, &row)) {
            Some(slowest) => {
                slowest.times += row.times;
                slowest.slow += row.slow;
            }
            None => rows.push(row),
        }
    }
    rows.truncate(max);
    rows
}

fn request_row(shown: &RequestSummary) -> RequestRecord {
    let client = &shown.client;
    let seconds = shown.took.as_secs_f64();
    RequestRecord {
        verb: shown.verb.clone(),
        path: shown.path.to_string(),
        user: client.user.to_string(),
        user_agent: client.user_agent.to_string(),
        address: client.address.map(|it| it.ip().to_canonical().to_string()),
        times: 1,
        slow: u64::from(seconds >= SLOW_SECONDS),
        seconds,
        running: shown.running,
        code: shown.code.map(|it| it.as_u16()),
    }
}

fn is_alike(one: &RequestRecord, other: &RequestRecord) -> bool {
    fn key(it: &RequestRecord) -> ([&str; 4], bool, Option<u16>) {
        let texts = [&*it.verb, &*it.path, &*it.user, &*it.user_agent];
        (texts, it.running, it.code)
    }
    key(one) == key(other)
}

pub(super) fn client(traffic: ClientTraffic) -> ClientState {
    let sums = traffic.sums;
    let others = traffic.client.is_none();
    let of_type = type_name((&traffic.group, &traffic.resource));
    let (user, user_agent, address) = traffic.client.unwrap_or_default();
    ClientState {
        others,
        user: user.into(),
        user_agent: user_agent.into(),
        address: address.map(|it| it.to_string()),
        verb: traffic.verb.into(),
        resource: match &*traffic.subresource {
            "" => of_type,
            subresource => format!("{of_type}/{subresource}"),
        },
        everything: traffic.everything,
        requests: sums.requests,
        failed: sums.failed,
        bytes: sums.bytes,
        seconds: sums.took.as_secs_f64(),
    }
}

pub(super) fn webhook(figures: WebhookFigures) -> WebhookState {
    let ended = figures.ended;
    WebhookState {
        name: figures.webhook.name.into(),
        target: figures.webhook.target.into(),
        running: figures.running,
        running_seconds: figures.running_for.as_secs_f64(),
        calls: ended.calls,
        failed: ended.failed,
        seconds: ended.took.as_secs_f64(),
        longest_seconds: ended.longest.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringwatch_observe::ClientSummary;

    use super::*;

    fn update(milliseconds: u64) -> RequestSummary {
        RequestSummary {
            verb: "update".to_owned(),
            path: "/api/v1/nodes/a".into(),
            client: ClientSummary {
                user: "jane".into(),
                user_agent: "kubelet/1.36".into(),
                address: None,
            },
            took: Duration::from_millis(milliseconds),
            running: false,
            code: None,
        }
    }

    #[test]
    fn equal_requests_are_one_row_that_counts_the_slow_ones_apart() {
        let rows = requests([120, 600, 499, 500].map(update).into(), 10);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((row.times, row.slow, row.seconds), (4, 2, 0.6));
    }
}
