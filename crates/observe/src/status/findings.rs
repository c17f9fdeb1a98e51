//! Findings: what of a state an operator should look at first. Each rule names one thing that is not as it should be.

pub use super::finding::{About, Finding, Section};
use super::thresholds::{SLOW_SECONDS, Severity, Thresholds};
use super::values::{bytes, seconds};
use super::{ClientState, LevelState, ServerState, TypeState, Watcher, WebhookState};

/// Maximum number of findings.
pub const FINDINGS_MAX: usize = 10;

/// Maximum number of findings of one rule, so that it leaves room for others.
const OF_RULE_MAX: usize = 3;

/// The seconds that the calls of a webhook take on average, and their number, from which on it is slow.
const SLOW_CALLS: (f64, u64) = (0.5, 3);
/// A watcher is found to be behind by so many events, if they are those of so many seconds.
const BEHIND: (u64, f64) = (100, 10.0);
/// The number of slow writes of single objects, by any clients, from which on the store or a webhook is found. Fewer
/// may have had bad luck.
const SLOW_WRITES: u64 = 3;
const WRITES: [&str; 4] = ["create", "update", "patch", "delete"];
/// The calls of a webhook that fail within a minute from which on it is found, and the part of all calls that they are.
const FAILED_CALLS: (u64, f64) = (3, 0.01);
/// The number of requests rejected at once from which on the finding is bad: so many are more than bad luck.
const REJECTED: u64 = 10;
/// The number of lists of everything within a minute from which on a client is found: it should watch instead.
const LISTS: u64 = 12;
/// The number of watches begun within a minute from which on a client is found: its watches do not last.
const WATCHES: u64 = 60;
/// The number of failed requests within a minute from which on a client is found, if nearly all of its requests fail:
/// it is misled.
const FAILURES: u64 = 60;

/// Returns the findings of a state, the worst first. The one before it, if there is one, makes rates.
#[must_use]
pub fn findings(state: &ServerState, before: Option<&ServerState>) -> Vec<Finding> {
    let rates = Rates::of(state, before);
    let mut all = Vec::new();
    all.extend(certificates(state).take(OF_RULE_MAX));
    all.extend(store(state));
    all.extend(some_of(&state.webhooks, |it| {
        webhook(it, &state.thresholds)
    }));
    all.extend(memory(state));
    all.extend(some_of(&state.fairness, |it| level(it, before)));
    all.extend(some_of(&state.clients, client));
    all.extend(some_of(&state.types, |it| reads(it, &state.thresholds)));
    all.extend(some_of(&state.types, not_ready));
    all.extend(some_of(&state.types, |it| behind(it, state, rates)));
    all.extend(running(state));
    all.extend(slow_writes(state));
    // The sort keeps the order of the rules.
    all.sort_by_key(|it| it.level);
    all.truncate(FINDINGS_MAX);
    all
}

/// Returns what a rule finds of a list, so many findings at most.
fn some_of<T>(list: &[T], rule: impl Fn(&T) -> Option<Finding>) -> impl Iterator<Item = Finding> {
    list.iter().filter_map(rule).take(OF_RULE_MAX)
}

fn found(level: Severity, section: Section, text: String) -> Option<Finding> {
    let about = About::Section(section);
    Some(Finding { level, text, about })
}

fn of_type(level: Severity, name: &str, text: String) -> Option<Finding> {
    let about = About::Type(name.to_owned());
    Some(Finding { level, text, about })
}

fn certificates(state: &ServerState) -> impl Iterator<Item = Finding> {
    state.certificates.iter().filter_map(|it| {
        let (level, left) = (it.level?, it.seconds_left);
        let text = match left > 0.0 {
            true => format!("The {} expires in {}", it.name, seconds(Some(left))),
            false => format!("The {} has expired, at {}", it.name, it.expires),
        };
        found(level, Section::Server, text)
    })
}

/// Finds a store that is silent or slow, and caches that are behind it.
fn store(state: &ServerState) -> Option<Finding> {
    let (feed, thresholds) = (&state.feed, &state.thresholds);
    if let Some(silent) = feed.silent_seconds
        && let Some(level) = thresholds.silent_seconds.level(silent)
    {
        let text = format!("The store has not answered for {}", seconds(Some(silent)));
        return found(level, Section::Server, text);
    }
    if let Some(lag) = feed.lag_seconds
        && let Some(level) = thresholds.lag_seconds.level(lag)
    {
        let text = format!(
            "The caches have been behind the store for {}",
            seconds(Some(lag))
        );
        return found(level, Section::Server, text);
    }
    let took = feed.store_seconds?;
    let level = thresholds.store_seconds.level(took)?;
    let took = seconds(Some(took));
    let text = match feed.store_revision {
        Some(_) => format!("The store takes {took} to tell its newest revision"),
        None => format!("The store has not told its newest revision within {took}"),
    };
    found(level, Section::Server, text)
}

fn webhook(it: &WebhookState, thresholds: &Thresholds) -> Option<Finding> {
    let name = webhook_name(it);
    if let Some(level) = thresholds.webhook_seconds.level(it.running_seconds) {
        let text = format!(
            "Webhook {name} has not answered for {}: {}",
            seconds(Some(it.running_seconds)),
            things(it.running, "call waits", "calls wait")
        );
        return found(level, Section::Webhooks, text);
    }
    let mean = it.seconds / per(it.calls);
    let (failed_min, part_min) = FAILED_CALLS;
    if it.failed >= failed_min && per(it.failed) >= part_min * per(it.calls) {
        let calls = things(it.calls, "call", "calls");
        let text = format!(
            "{} of {calls} of webhook {name} failed within the last minute; a call takes {}",
            it.failed,
            seconds(Some(mean))
        );
        return found(Severity::Warn, Section::Webhooks, text);
    }
    if it.calls >= SLOW_CALLS.1 && mean >= SLOW_CALLS.0 {
        let text = format!("Webhook {name} takes {} to answer", seconds(Some(mean)));
        return found(Severity::Warn, Section::Webhooks, text);
    }
    None
}

fn webhook_name(it: &WebhookState) -> &str {
    match it.name.is_empty() {
        true => &it.target,
        false => &it.name,
    }
}

fn memory(state: &ServerState) -> Option<Finding> {
    let budget = state.memory.budget_bytes.filter(|it| *it > 0)?;
    let counted: u64 = state.memory.accounts.iter().map(|it| it.bytes).sum();
    let part = per(counted) / per(budget);
    let level = state.thresholds.memory_part.level(part)?;
    let text = format!(
        "Memory is at {:.0} % of its budget of {}",
        part * 100.0,
        bytes(Some(budget))
    );
    found(level, Section::Memory, text)
}

fn level(it: &LevelState, before: Option<&ServerState>) -> Option<Finding> {
    let was = before.and_then(|state| state.fairness.iter().find(|was| was.level == it.level));
    let rejected = was.map_or(0, |was| it.rejected.saturating_sub(was.rejected));
    if rejected > 0 {
        let requests = things(rejected, "request", "requests");
        let text = format!("Level {} has just rejected {requests} with 429", it.level);
        let level = match rejected >= REJECTED {
            true => Severity::Bad,
            false => Severity::Warn,
        };
        return found(level, Section::Fairness, text);
    }
    if it.waiting > 0 && it.waiting >= it.seats.unwrap_or_default() {
        let requests = things(it.waiting, "request waits", "requests wait");
        let text = format!("{requests} for a seat of level {}", it.level);
        return found(Severity::Warn, Section::Fairness, text);
    }
    None
}

fn client(it: &ClientState) -> Option<Finding> {
    if it.others {
        return None;
    }
    let who = who(&it.user_agent, &it.user, it.address.as_deref());
    let text = if it.verb == "list" && it.everything && it.requests >= LISTS {
        format!(
            "{who} listed all {} {} times within the last minute, {}: it should watch",
            it.resource,
            it.requests,
            bytes(Some(it.bytes))
        )
    } else if it.verb == "watch" && it.requests >= WATCHES {
        format!(
            "{who} began {} watches of {} within the last minute",
            it.requests, it.resource
        )
    } else if it.failed >= FAILURES && it.failed >= it.requests - it.requests / 10 {
        format!(
            "{} of {} requests of {who} to {} {} failed within the last minute",
            it.failed, it.requests, it.verb, it.resource
        )
    } else {
        return None;
    };
    found(Severity::Warn, Section::Clients, text)
}

fn reads(it: &TypeState, thresholds: &Thresholds) -> Option<Finding> {
    let level = thresholds.read_seconds.level(it.reads.longest_seconds)?;
    let reads = things(it.reads.waiting, "read", "reads");
    let text = format!(
        "{reads} of {} waiting for the cache, the first for {}",
        it.name,
        seconds(Some(it.reads.longest_seconds))
    );
    of_type(level, &it.name, text)
}

fn not_ready(it: &TypeState) -> Option<Finding> {
    if !it.is_unready() {
        return None;
    }
    let text = format!("The cache of {} is not ready", it.name);
    of_type(Severity::Warn, &it.name, text)
}

/// The state before, and the seconds since then.
#[derive(Clone, Copy)]
struct Rates<'a> {
    before: Option<&'a ServerState>,
    passed: f64,
}

impl<'a> Rates<'a> {
    fn of(state: &ServerState, before: Option<&'a ServerState>) -> Self {
        let passed = before.map_or(0.0, |it| state.uptime_seconds - it.uptime_seconds);
        Self { before, passed }
    }

    /// Returns how many changes of a type there are in a second; 0 if that is not known.
    fn changes(&self, it: &TypeState) -> f64 {
        let was = self.before.map(|state| &state.types).into_iter().flatten();
        let was = was.clone().find(|was| was.name == it.name);
        let rise = was.and_then(|was| it.changes?.checked_sub(was.changes?));
        match rise {
            Some(rise) if self.passed > 0.0 => per(rise) / self.passed,
            _ => 0.0,
        }
    }
}

/// Finds a type with watchers that are parked, or behind by more than its rate of changes explains.
fn behind(it: &TypeState, state: &ServerState, rates: Rates<'_>) -> Option<Finding> {
    let counts = &it.watchers;
    let events = things(counts.behind_max, "event", "events");
    let of = |watcher: &Watcher| watcher.type_name == it.name && watcher.behind.is_some();
    // They are sorted by how far they are behind.
    let last = state.slowest.iter().find(|watcher| of(watcher));
    let last = last.map_or_else(String::new, |last| {
        let who = who(&last.user_agent, &last.user, last.address.as_deref());
        format!(": {who}")
    });
    if counts.parked > 0 {
        let window = it.window.as_ref().map_or(0, |it| it.events);
        let part = per(counts.behind_max) / per(window.max(1));
        let level = state.thresholds.parked_part.level(part)?;
        let watchers = things(counts.parked, "watcher", "watchers");
        let text = format!(
            "{watchers} of {} cannot keep up (parked), the furthest {events} behind{last}",
            it.name
        );
        return of_type(level, &it.name, text);
    }
    let (events_min, seconds_min) = BEHIND;
    // Without a rate it is not known what is usual.
    let is_behind = rates.passed > 0.0
        && counts.behind_max >= events_min
        && per(counts.behind_max) > seconds_min * rates.changes(it);
    if !is_behind {
        return None;
    }
    let text = format!("A watcher of {} is {events} behind{last}", it.name);
    of_type(Severity::Warn, &it.name, text)
}

fn running(state: &ServerState) -> Option<Finding> {
    let threshold = state.thresholds.request_seconds;
    let running = state.requests.iter().filter(|it| it.running);
    let worst = running
        .clone()
        .max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    let level = threshold.level(worst.seconds)?;
    let others = match running.map(|it| it.slow).sum::<u64>().saturating_sub(1) {
        0 => String::new(),
        others => format!(
            ", and {} for {} or longer",
            things(others, "other", "others"),
            seconds(Some(SLOW_SECONDS))
        ),
    };
    let text = format!(
        "{} {} of {} has run for {}{others}",
        worst.verb,
        worst.path,
        who(&worst.user_agent, &worst.user, worst.address.as_deref()),
        seconds(Some(worst.seconds))
    );
    found(level, Section::Requests, text)
}

fn slow_writes(state: &ServerState) -> Option<Finding> {
    let requests = state.requests.iter();
    let writes = requests.filter(|it| WRITES.contains(&&*it.verb));
    let number: u64 = writes.map(|it| it.slow).sum();
    if number < SLOW_WRITES {
        return None;
    }
    let slowness = |it: &WebhookState| it.running_seconds.max(it.longest_seconds);
    let webhooks = state.webhooks.iter();
    let slowest = webhooks.max_by(|a, b| slowness(a).total_cmp(&slowness(b)));
    let culprit = match slowest {
        Some(it) if slowness(it) >= SLOW_SECONDS => {
            format!("the store or webhook {} is slow", webhook_name(it))
        }
        _ => "the store is slow".to_owned(),
    };
    let text = format!(
        "{number} writes of the last minute took {} or longer: {culprit}",
        seconds(Some(SLOW_SECONDS))
    );
    found(Severity::Warn, Section::Requests, text)
}

/// Returns how a client is called: by the start of its user agent, its user and its address.
#[must_use]
pub fn who(user_agent: &str, user: &str, address: Option<&str>) -> String {
    let agent = user_agent.split(' ').next().unwrap_or_default();
    let agent = match agent {
        "" => "a client without a user agent",
        agent => agent,
    };
    let at = address.map_or_else(String::new, |address| format!(" at {address}"));
    format!("{agent} (user {user}{at})")
}

fn things(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Returns a number as a divisor or dividend.
#[allow(
    clippy::cast_precision_loss,
    reason = "it is compared with thresholds, or shown in few digits"
)]
fn per(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
