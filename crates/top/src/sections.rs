//! Makes of a state what is shown: some lines, and tables of types, watchers, requests, clients, webhooks and levels.

use std::cmp::Reverse;

use ringwatch_observe::status::thresholds::Severity;
use ringwatch_observe::status::values::{UNKNOWN, bytes, number, rate, seconds};
use ringwatch_observe::status::{
    ClientState, LevelState, RequestRecord, ServerState, StoreKind, TypeState, Watcher,
    WebhookState,
};

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// The title.
    pub(crate) title: String,
    /// The names of the columns; numbers stand at the right if they end with a space.
    pub(crate) columns: &'static [&'static str],
    /// The rows, with a cell for each column.
    pub(crate) rows: Vec<TableRow>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRow {
    /// The page that opens from the row.
    pub(crate) leads_to: LeadsTo,
    pub(crate) cells: Vec<String>,
}

/// The page that opens from a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeadsTo {
    Nothing,
    /// The watchers of a type.
    Type(String),
    /// A watcher, by its number.
    Watcher(String),
}

const TYPE_COLUMNS: [&str; 13] = [
    "TYPE",
    "OBJECTS ",
    "SIZE ",
    "CHANGES/S ",
    "EVENTS ",
    "OF ",
    "OLDEST ",
    "WATCHERS ",
    "OWN ",
    "PARKED ",
    "BEHIND ",
    "WAITING ",
    "LONGEST ",
];

const WATCHER_COLUMNS: [&str; 10] = [
    "WATCHER ",
    "TYPE",
    "USER",
    "SELECTION",
    "AGE ",
    "SENT ",
    "BEHIND ",
    "PARKED",
    "ADDRESS",
    "CLIENT",
];

const REQUEST_COLUMNS: [&str; 8] = [
    "SECONDS ", "TIMES ", "STATUS", "VERB", "PATH", "USER", "ADDRESS", "CLIENT",
];

const CLIENT_COLUMNS: [&str; 9] = [
    "REQUESTS ",
    "FAILED ",
    "BYTES ",
    "SECONDS ",
    "VERB",
    "RESOURCE",
    "USER",
    "ADDRESS",
    "CLIENT",
];

const WEBHOOK_COLUMNS: [&str; 8] = [
    "RUNNING ", "FOR ", "CALLS ", "FAILED ", "MEAN ", "LONGEST ", "WEBHOOK", "ADDRESS",
];

const LEVEL_COLUMNS: [&str; 6] = [
    "LEVEL",
    "SEATS ",
    "TAKEN ",
    "EXECUTING ",
    "WAITING ",
    "REJECTED ",
];

/// Returns the lines about the whole server.
pub(crate) fn head(address: &str, state: &ServerState) -> Vec<String> {
    let store = match state.store {
        StoreKind::Etcd => "etcd",
        StoreKind::Embedded => "embedded store",
        StoreKind::Upstream => "another API server",
    };
    let (feed, memory) = (&state.feed, &state.memory);
    let is_late = feed.store_revision.is_none() && feed.store_seconds.is_some();
    let accounts = memory.accounts.iter();
    let accounts: Vec<_> = accounts
        .map(|it| format!("{} {}", it.name, bytes(Some(it.bytes))))
        .collect();
    let mut lines = vec![
        format!(
            "{} {} at {address}, up {}, over {store}, {}",
            state.name,
            state.version,
            seconds(Some(state.uptime_seconds)),
            state.time
        ),
        format!(
            "revision {}, of the store {}, behind it for {}; the store answers in {}{}",
            number(feed.revision),
            number(feed.store_revision),
            seconds(feed.lag_seconds),
            if is_late { "more than " } else { "" },
            seconds(feed.store_seconds)
        ),
        format!(
            "memory {} resident, budget {}: {}",
            bytes(memory.resident_bytes),
            bytes(memory.budget_bytes),
            accounts.join(", ")
        ),
    ];
    lines.extend(state.certificates.iter().map(|it| {
        let left = Some(it.seconds_left.max(0.0));
        format!("{}: until {}, {} left", it.name, it.expires, seconds(left))
    }));
    lines
}

/// Returns a line for each thing that stands out, the worst first, or one that says that nothing does.
pub(crate) fn stands_out(state: &ServerState) -> Vec<String> {
    let lines = state.findings.iter().map(|it| match it.level {
        Severity::Bad => format!("!! {}", it.text),
        Severity::Warn => format!("!  {}", it.text),
    });
    let lines: Vec<_> = lines.collect();
    match lines.is_empty() {
        true => vec!["nothing stands out".to_owned()],
        false => lines,
    }
}

/// Returns the tables of a state. The one before it, if there is one, makes rates.
pub(crate) fn sections(state: &ServerState, before: Option<&ServerState>) -> Vec<Section> {
    vec![
        types(state, before),
        Section {
            title: "watchers that are furthest behind".to_owned(),
            ..watchers(&state.slowest)
        },
        Section {
            title: "slowest requests".to_owned(),
            columns: &REQUEST_COLUMNS,
            rows: state.requests.iter().map(request).collect(),
        },
        Section {
            title: "busiest clients of the last minute".to_owned(),
            columns: &CLIENT_COLUMNS,
            rows: state.clients.iter().map(client).collect(),
        },
        Section {
            title: "webhooks".to_owned(),
            columns: &WEBHOOK_COLUMNS,
            rows: state.webhooks.iter().map(webhook).collect(),
        },
        Section {
            title: "priority levels".to_owned(),
            columns: &LEVEL_COLUMNS,
            rows: state.fairness.iter().map(level).collect(),
        },
    ]
}

/// Returns the table of watchers.
pub(crate) fn watchers(watchers: &[Watcher]) -> Section {
    Section {
        title: "watchers".to_owned(),
        columns: &WATCHER_COLUMNS,
        rows: watchers.iter().map(watcher).collect(),
    }
}

/// Returns what is known of one watcher, a line for each fact.
pub(crate) fn story(watcher: &Watcher) -> Vec<String> {
    let namespace = watcher.namespace.as_deref().unwrap_or("all namespaces");
    vec![
        format!(
            "watcher {} of {} in {namespace}",
            watcher.id, watcher.type_name
        ),
        format!("selects {}: {}", watcher.kind, shown(&watcher.selector)),
        format!("user {}", watcher.user),
        format!("client {}", shown(&watcher.user_agent)),
        format!("address {}", known(watcher.address.as_deref())),
        format!("open for {}", seconds(Some(watcher.age_seconds))),
        format!(
            "{} events sent, the last of revision {}",
            watcher.sent,
            number(watcher.revision)
        ),
        format!(
            "{} events of the type not looked at",
            number(watcher.behind)
        ),
        match watcher.parked {
            true => {
                "its channel has overflowed: the client reads too slowly, or not at all".to_owned()
            }
            false => "its channel has not overflowed".to_owned(),
        },
    ]
}

/// Returns the table of the types in which something is or happens; those with trouble first.
fn types(state: &ServerState, before: Option<&ServerState>) -> Section {
    let passed = before.map_or(0.0, |it| state.uptime_seconds - it.uptime_seconds);
    let rise = |of_type: &TypeState| {
        let before = before?.types.iter().find(|it| it.name == of_type.name)?;
        of_type.changes?.checked_sub(before.changes?)
    };
    let shown = state.types.iter().filter(|it| it.is_used());
    let mut shown: Vec<_> = shown.map(|it| (it, rise(it))).collect();
    shown.sort_by_key(|(it, rise)| {
        let trouble = (it.watchers.behind_max, it.reads.waiting);
        Reverse((trouble, rise.unwrap_or_default(), it.objects))
    });
    Section {
        title: "types".to_owned(),
        columns: &TYPE_COLUMNS,
        rows: shown
            .into_iter()
            .map(|(it, rise)| type_row(it, &rate(rise, passed)))
            .collect(),
    }
}

fn type_row(it: &TypeState, rate: &str) -> TableRow {
    let window = it.window.as_ref();
    let longest = Some(it.reads.longest_seconds).filter(|_| it.reads.waiting > 0);
    TableRow {
        leads_to: LeadsTo::Type(it.name.clone()),
        cells: vec![
            it.name.clone(),
            number(it.objects),
            bytes(it.bytes),
            rate.to_owned(),
            // Metrics tell the size of a window, and not what is in it.
            number(window.filter(|it| it.bytes.is_some()).map(|it| it.events)),
            number(window.map(|it| it.capacity)),
            seconds(window.and_then(|it| it.oldest_seconds)),
            it.watchers.total.to_string(),
            it.watchers.internal.to_string(),
            it.watchers.parked.to_string(),
            it.watchers.behind_max.to_string(),
            it.reads.waiting.to_string(),
            seconds(longest),
        ],
    }
}

fn watcher(it: &Watcher) -> TableRow {
    let selection = match (&it.namespace, &*it.selector) {
        (None, "") => "everything".to_owned(),
        (Some(namespace), "") => format!("namespace {namespace}"),
        (None, selector) => selector.to_owned(),
        (Some(namespace), selector) => format!("namespace {namespace}, {selector}"),
    };
    TableRow {
        leads_to: LeadsTo::Watcher(it.id.clone()),
        cells: vec![
            it.id.clone(),
            it.type_name.clone(),
            it.user.clone(),
            selection,
            seconds(Some(it.age_seconds)),
            it.sent.to_string(),
            number(it.behind),
            if it.parked { "parked" } else { "" }.to_owned(),
            known(it.address.as_deref()),
            shown(&it.user_agent).to_owned(),
        ],
    }
}

fn request(it: &RequestRecord) -> TableRow {
    let status = match (it.running, it.code) {
        (true, None) => "runs".to_owned(),
        (true, Some(code)) => format!("{code} is sent"),
        (false, Some(code)) => code.to_string(),
        (false, None) => "gone".to_owned(),
    };
    TableRow {
        leads_to: LeadsTo::Nothing,
        cells: vec![
            format!("{:.3}", it.seconds),
            it.times.to_string(),
            status,
            it.verb.clone(),
            it.path.clone(),
            it.user.clone(),
            known(it.address.as_deref()),
            shown(&it.user_agent).to_owned(),
        ],
    }
}

fn client(it: &ClientState) -> TableRow {
    let resource = match (it.everything, it.others) {
        (true, _) => format!("all {}", it.resource),
        (false, true) => "all others".to_owned(),
        (false, false) => it.resource.clone(),
    };
    TableRow {
        leads_to: LeadsTo::Nothing,
        cells: vec![
            it.requests.to_string(),
            it.failed.to_string(),
            bytes(Some(it.bytes)),
            format!("{:.2}", it.seconds),
            shown(&it.verb).to_owned(),
            resource,
            shown(&it.user).to_owned(),
            known(it.address.as_deref()),
            shown(&it.user_agent).to_owned(),
        ],
    }
}

fn webhook(it: &WebhookState) -> TableRow {
    #[allow(clippy::cast_precision_loss, reason = "two digits are shown")]
    let mean = Some(it.seconds / it.calls as f64).filter(|_| it.calls > 0);
    let running_for = Some(it.running_seconds).filter(|_| it.running > 0);
    TableRow {
        leads_to: LeadsTo::Nothing,
        cells: vec![
            it.running.to_string(),
            seconds(running_for),
            it.calls.to_string(),
            it.failed.to_string(),
            seconds(mean),
            seconds(Some(it.longest_seconds).filter(|_| it.calls > 0)),
            shown(&it.name).to_owned(),
            it.target.clone(),
        ],
    }
}

fn level(it: &LevelState) -> TableRow {
    TableRow {
        leads_to: LeadsTo::Nothing,
        cells: vec![
            it.level.clone(),
            number(it.seats),
            it.taken.to_string(),
            it.executing.to_string(),
            it.waiting.to_string(),
            it.rejected.to_string(),
        ],
    }
}

fn known(text: Option<&str>) -> String {
    shown(text.unwrap_or_default()).to_owned()
}

fn shown(text: &str) -> &str {
    match text {
        "" => UNKNOWN,
        text => text,
    }
}
