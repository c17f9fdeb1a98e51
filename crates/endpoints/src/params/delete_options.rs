//! The parameters of deletions: metav1.DeleteOptions, in the query or in the body.

use ringwatch_registry::{DeleteOptions, IGNORE_STORE_READ_ERROR, PropagationPolicy};
use serde::Deserialize;
use serde_json::Value;

use super::query::Query;
use super::write_options::read_dry_run;
use crate::errors::Failure;

/// The place of the types of options in Kubernetes, as errors name it.
const SCHEME: &str = "pkg/apis/meta/internalversion/scheme/register.go:27";

/// DeleteOptions as a client sends them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SentOptions {
    kind: Option<String>,
    api_version: Option<String>,
    grace_period_seconds: Option<i64>,
    preconditions: Option<SentPreconditions>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
    dry_run: Option<Vec<String>>,
    #[serde(rename = "ignoreStoreReadErrorWithClusterBreakingPotential")]
    ignore_store_read_error: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SentPreconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// Reads the options from the body, or from the query if there is no body. Errors of the store cannot
/// be ignored unless `may_ignore_errors`.
///
/// # Errors
/// 400 for what cannot be read, 422 for values that are not allowed.
pub(crate) fn read_delete_options(
    query: &Query,
    body: Option<Value>,
    may_ignore_errors: bool,
) -> Result<DeleteOptions, Failure> {
    let sent = match body {
        Some(body) => read_body(body)?,
        None => read_query(query)?,
    };
    let mut errors = Vec::new();
    let propagation_policy = match sent.propagation_policy.as_deref() {
        None => None,
        Some(policy) => PropagationPolicy::parse(policy)
            .map_err(|error| errors.push(error))
            .ok(),
    };
    let dry_run = read_dry_run(&sent.dry_run.unwrap_or_default(), &mut errors);
    let preconditions = sent.preconditions.unwrap_or_default();
    let options = DeleteOptions {
        dry_run,
        grace_period_seconds: sent.grace_period_seconds,
        precondition_uid: preconditions.uid,
        precondition_resource_version: preconditions.resource_version,
        orphan_dependents: sent.orphan_dependents,
        propagation_policy,
        ignore_store_read_error: may_ignore_errors && sent.ignore_store_read_error == Some(true),
    };
    errors.extend(options.validate());
    if errors.is_empty() {
        Ok(options)
    } else {
        Err(Failure::invalid_options("DeleteOptions", errors))
    }
}

fn read_body(body: Value) -> Result<SentOptions, Failure> {
    let sent: SentOptions = serde_json::from_value(body).map_err(|error| {
        Failure::bad_request(format!("unable to decode DeleteOptions: {error}"))
    })?;
    match sent.kind.as_deref() {
        None | Some("" | "DeleteOptions") => Ok(sent),
        Some(other) => {
            let version = sent.api_version.as_deref().filter(|it| !it.is_empty());
            let version = version.unwrap_or("meta.k8s.io/v1");
            Err(Failure::bad_request(format!(
                "no kind \"{other}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""
            )))
        }
    }
}

fn read_query(query: &Query) -> Result<SentOptions, Failure> {
    let said = |name| Some(query.first(name).to_owned()).filter(|it| !it.is_empty());
    Ok(SentOptions {
        kind: None,
        api_version: None,
        grace_period_seconds: query.integer("gracePeriodSeconds")?,
        preconditions: Some(SentPreconditions {
            uid: said("uid"),
            resource_version: said("resourceVersion"),
        }),
        orphan_dependents: query.switch("orphanDependents"),
        propagation_policy: said("propagationPolicy"),
        dry_run: Some(query.all("dryRun")),
        ignore_store_read_error: query.switch(IGNORE_STORE_READ_ERROR),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_body_wins_over_the_query() {
        let query = Query::parse("gracePeriodSeconds=5&dryRun=All");
        let options = read_delete_options(&query, None, false).expect("options");
        assert_eq!(options.grace_period_seconds, Some(5));
        assert!(options.dry_run);
        let body = json!({"kind": "DeleteOptions", "preconditions": {"uid": "u"},
            "propagationPolicy": "Orphan"});
        let options = read_delete_options(&query, Some(body), false).expect("options");
        assert_eq!(options.grace_period_seconds, None);
        assert_eq!(options.precondition_uid.as_deref(), Some("u"));
        assert_eq!(options.propagation_policy, Some(PropagationPolicy::Orphan));
    }

    #[test]
    fn errors_are_ignored_where_that_is_allowed() {
        let query =
            Query::parse("ignoreStoreReadErrorWithClusterBreakingPotential=true&dryRun=All");
        let dropped = read_delete_options(&query, None, false).expect("options");
        assert!(!dropped.ignore_store_read_error);
        let body = json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true});
        let options = read_delete_options(&query, Some(body), true).expect("options");
        assert!(options.ignore_store_read_error);
        let failure = read_delete_options(&query, None, true).expect_err("not with a dry run");
        assert!(
            failure
                .status()
                .message
                .ends_with("cannot be set together with .dryRun"),
            "{}",
            failure.status().message
        );
    }

    #[test]
    fn an_unknown_policy_is_told_with_the_known_ones() {
        let query = Query::parse("propagationPolicy=Nope");
        let failure = read_delete_options(&query, None, false).expect_err("invalid");
        assert_eq!(
            failure.status().message,
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Nope\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
        );
    }
}
