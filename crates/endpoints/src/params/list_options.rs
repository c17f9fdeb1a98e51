//! The parameters of lists, watches and collection deletions: metav1.ListOptions.
//!
//! The hard part is the order of kube-apiserver's checks, since only the first kind of error is reported: values that
//! cannot be parsed, numbers before selectors (400), invalid combinations (422), then the fields of selectors (400),
//! then shard selectors (500).
//! Versions are parsed last, because their error depends on the verb.

use std::collections::HashSet;
use std::time::Duration;

use ringwatch::meta::{
    FieldSelector, LabelSelector, ParseError, ResourceVersion, ShardSelector, VersionMatch,
};
use ringwatch::storage::{ListOptions, SelectionPredicate};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_registry::{Resource, ServedBy};

use super::query::Query;
use crate::errors::{About, Failure};

/// Maximum number of seconds that a watch may ask for, 30 years; more would pass the end of the clock.
const WATCH_SECONDS_MAX: u64 = 30 * 365 * 24 * 3_600;

/// metav1.ListOptions as sent, with its defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListParams {
    label: LabelSelector,
    field: FieldSelector,
    /// The text of the shard selector; empty if there is none, or if shards cannot be selected.
    shard: String,
    resource_version: String,
    version_match: String,
    limit: i64,
    continue_token: String,
    send_initial_events: Option<bool>,
    allow_watch_bookmarks: bool,
    watch: bool,
    timeout_seconds: Option<i64>,
}

impl ListParams {
    /// Reads the parameters of a list or watch of a resource. The shard selector is ignored unless `sharded_lists`.
    ///
    /// # Errors
    /// 400 for what cannot be read and for fields that the resource cannot be selected by, 422 for what must not be
    /// combined.
    pub(crate) fn read(
        query: &Query,
        resource: &Resource,
        sharded_lists: bool,
    ) -> Result<Self, Failure> {
        let unreadable = |error: ParseError| Failure::bad_request(error.to_string());
        let timeout_seconds = query.integer("timeoutSeconds")?;
        let limit = query.integer("limit")?.unwrap_or(0);
        let mut params = Self {
            label: LabelSelector::parse(query.first("labelSelector")).map_err(unreadable)?,
            field: FieldSelector::parse(query.first("fieldSelector")).map_err(unreadable)?,
            shard: if sharded_lists {
                query.first("shardSelector").to_owned()
            } else {
                String::new()
            },
            watch: query.switch("watch").unwrap_or(false),
            allow_watch_bookmarks: query.switch("allowWatchBookmarks").unwrap_or(false),
            resource_version: query.first("resourceVersion").to_owned(),
            version_match: query.first("resourceVersionMatch").to_owned(),
            timeout_seconds,
            limit,
            continue_token: query.first("continue").to_owned(),
            send_initial_events: query.switch("sendInitialEvents"),
        };
        params.default();
        let errors = if params.watch {
            params.validate_watch()
        } else {
            params.validate_list()
        };
        if !errors.is_empty() {
            return Err(Failure::invalid_options("ListOptions", errors));
        }
        params.field = stored_fields(params.field, resource)?;
        Ok(params)
    }

    /// Narrows the selection to one name, which the path has given.
    ///
    /// # Errors
    /// 400 when the field selector names another.
    pub(crate) fn select_name(&mut self, name: &str) -> Result<(), Failure> {
        if !self.field.is_empty() {
            return if self.field.requires_exact("metadata.name") == Some(name) {
                Ok(())
            } else {
                Err(Failure::bad_request(
                    "fieldSelector metadata.name doesn't match requested name",
                ))
            };
        }
        self.field = std::mem::take(&mut self.field).and_exact("metadata.name", name);
        Ok(())
    }

    /// Returns the maximum duration of a watch, if the client sets one.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let seconds = u64::try_from(self.timeout_seconds?).ok()?;
        (seconds > 0).then(|| Duration::from_secs(seconds.min(WATCH_SECONDS_MAX)))
    }

    /// Returns the options for the store. Objects that are made when they are read have neither versions nor shards.
    ///
    /// # Errors
    /// 500 for a bad shard selector; what a bad version means to the verb.
    pub(crate) fn into_options(mut self, about: About<'_>) -> Result<ListOptions, Failure> {
        if about.resource.served == ServedBy::Computed {
            self.shard.clear();
            self.resource_version.clear();
        }
        let shard =
            shard_selector(&self.shard).map_err(|error| Failure::invalid_shard_selector(&error))?;
        let resource_version = match ResourceVersion::parse(&self.resource_version) {
            // The store says what is wrong with the token, or that there can be no version beside it.
            Err(_) if !self.watch && !self.continue_token.is_empty() => Some(ResourceVersion(1)),
            parsed => parsed.map_err(|error| Failure::invalid_version(&error, about.verb))?,
        };
        let version_match = match self.version_match.as_str() {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        };
        Ok(ListOptions {
            resource_version,
            version_match,
            predicate: SelectionPredicate {
                label: self.label,
                field: self.field,
                shard,
                limit: u64::try_from(self.limit).unwrap_or(0),
                continue_token: self.continue_token,
                allow_watch_bookmarks: self.allow_watch_bookmarks,
            },
            recursive: true,
            selects_later: false,
            with_previous: false,
            send_initial_events: self.send_initial_events,
            progress_notify: self.allow_watch_bookmarks,
            deadline: None,
            observer: None,
            skip_corrupt: false,
            memory: None,
        })
    }

    /// Sets the defaults of a watch: without a version it begins with the current state.
    fn default(&mut self) {
        let any = matches!(self.resource_version.as_str(), "" | "0");
        if self.watch && any && self.send_initial_events.is_none() && self.version_match.is_empty()
        {
            self.send_initial_events = Some(true);
            self.version_match = "NotOlderThan".to_owned();
        }
    }

    fn validate_list(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let matching = self.version_match.as_str();
        let mut forbid = |why: &str| errors.push(forbidden_match(why));
        if !matching.is_empty() {
            if self.resource_version.is_empty() {
                forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid("resourceVersionMatch is forbidden when continue is provided");
            }
            if matching == "Exact" && self.resource_version == "0" {
                forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                errors.push(unsupported_match(
                    matching,
                    r#""Exact", "NotOlderThan", """#,
                ));
            }
        }
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }

    fn validate_watch(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let matching = self.version_match.as_str();
        if self.send_initial_events.is_some() && matching != "NotOlderThan" {
            errors.push(forbidden_match(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if matching.is_empty() {
            return errors;
        }
        if self.send_initial_events.is_none() {
            errors.push(forbidden_match(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if matching != "NotOlderThan" {
            errors.push(unsupported_match(matching, r#""NotOlderThan""#));
        }
        if !self.continue_token.is_empty() {
            errors.push(forbidden_match(
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        errors
    }
}

fn forbidden_match(why: &str) -> FieldError {
    FieldError::forbidden("resourceVersionMatch", why)
}

fn unsupported_match(value: &str, supported: &str) -> FieldError {
    FieldError::new(
        FieldErrorKind::NotSupported,
        "resourceVersionMatch",
        format!("{value:?}: supported values: {supported}"),
    )
}

/// Reads a shard selector. The empty text selects everything.
fn shard_selector(text: &str) -> Result<ShardSelector, ParseError> {
    if text.is_empty() {
        return Ok(ShardSelector::default());
    }
    ShardSelector::parse(text)
}

/// Translates a selector to the names under which the resource's fields are stored.
fn stored_fields(selector: FieldSelector, resource: &Resource) -> Result<FieldSelector, Failure> {
    // The name under which a field is stored is the resource's, or the client's own.
    let names = selector.names().into_iter().map(str::to_owned);
    let names: HashSet<String> = names.collect();
    let translate = |name: &str| resource.selectable_field(names.get(name)?);
    selector.renamed(translate).map_err(|name| {
        let has_fields = resource.is_custom() || resource.schema.names().next().is_some();
        let version = &resource.group_version;
        // The words are each kind's own.
        Failure::bad_request(match resource.plural.as_str() {
            _ if !has_fields => format!(
                "{name:?} is not a known field selector: only \"metadata.name\", \
                 \"metadata.namespace\""
            ),
            "jobs" if version.group == "batch" => {
                format!("field label {name:?} not supported for Job")
            }
            "resourceslices" if version.group == "resource.k8s.io" => {
                format!("field label not supported for {version}, Kind=ResourceSlice: {name}")
            }
            _ => format!("field label not supported: {name}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<ListParams, Failure> {
        let built_in = ringwatch_resources::built_in();
        let resource = built_in.iter().find(|it| it.plural == "configmaps");
        ListParams::read(&Query::parse(query), resource.expect("a resource"), false)
    }

    fn message(query: &str) -> String {
        let error = read(query).expect_err(query);
        error.status().message.clone()
    }

    #[test]
    fn forbidden_combinations_are_told_in_kube_apiservers_words() {
        let prefix = "ListOptions.meta.k8s.io \"\" is invalid: ";
        for (query, expected) in [
            (
                "resourceVersionMatch=Exact",
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (
                "resourceVersion=1&resourceVersionMatch=Bogus",
                "resourceVersionMatch: Unsupported value: \"Bogus\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
            ),
            (
                "sendInitialEvents=true",
                "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
            ),
            (
                "watch=1&resourceVersionMatch=NotOlderThan",
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ),
            (
                "watch=1&sendInitialEvents=true",
                "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ),
        ] {
            assert_eq!(message(query), format!("{prefix}{expected}"));
        }
    }

    #[test]
    fn fields_that_are_not_selected_by_are_told_in_the_words_of_their_kind() {
        let built_in = ringwatch_resources::built_in();
        for (plural, expected) in [
            ("pods", "field label not supported: x"),
            ("jobs", "field label \"x\" not supported for Job"),
            (
                "resourceslices",
                "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x",
            ),
            (
                "replicasets",
                "\"x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
            ),
        ] {
            let resource = built_in.iter().find(|it| it.plural == plural);
            let query = Query::parse("fieldSelector=x%3Dy");
            let failure = ListParams::read(&query, resource.expect(plural), false);
            assert_eq!(failure.expect_err(plural).status().message, expected);
        }
    }

    #[test]
    fn numbers_are_read_before_selectors() {
        assert!(message("labelSelector=(&limit=").starts_with("strconv.ParseInt"));
        assert!(message("fieldSelector=x&timeoutSeconds=x").starts_with("strconv.ParseInt"));
    }

    #[test]
    fn a_watch_from_anywhere_begins_with_the_state() {
        for query in ["watch=1", "watch=1&resourceVersion=0"] {
            let params = read(query).expect(query);
            assert_eq!(params.send_initial_events, Some(true));
        }
        let params = read("watch=1&resourceVersion=5").expect("fine");
        assert_eq!(params.send_initial_events, None);
    }

    #[test]
    fn a_watch_ends_at_an_instant_that_there_is() {
        let now = ringwatch::clock::Clock::real().now();
        for (seconds, expected) in [
            ("-5", None),
            ("0", None),
            ("30", Some(30)),
            ("9223372036854775807", Some(WATCH_SECONDS_MAX)),
        ] {
            let query = format!("watch=1&timeoutSeconds={seconds}");
            let params = read(&query).expect("a number");
            let timeout = params.timeout();
            assert_eq!(timeout.map(|it| it.as_secs()), expected, "{seconds}");
            assert!(now.checked_add(timeout.unwrap_or_default()).is_some());
        }
    }
}
