//! The parameters of deletions: metav1.DeleteOptions, in the query or in the body.

use ringwatch_apimachinery::go_json;
use ringwatch_registry::{
    DeleteOptions, IGNORE_STORE_READ_ERROR, PropagationPolicy, orphaned_twice,
};
use serde_json::Value;

use super::query::Query;
use super::write_options::read_dry_run;
use crate::errors::Failure;

/// The place of the types of options in Kubernetes, as errors name it.
pub(crate) const SCHEME: &str = "pkg/apis/meta/internalversion/scheme/register.go:27";

/// DeleteOptions as a client sends them.
#[derive(Debug, Default)]
struct SentOptions {
    grace_period_seconds: Option<i64>,
    precondition_uid: Option<String>,
    precondition_resource_version: Option<String>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
    dry_run: Vec<String>,
    ignore_store_read_error: Option<bool>,
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
    let policy = sent.propagation_policy.as_deref();
    if let (Some(_), Some(policy)) = (sent.orphan_dependents, policy) {
        errors.push(orphaned_twice(policy));
    }
    let propagation_policy = policy.and_then(|policy| {
        let parsed = PropagationPolicy::parse(policy);
        parsed.map_err(|error| errors.push(error)).ok()
    });
    let dry_run = read_dry_run(&sent.dry_run, &mut errors);
    let options = DeleteOptions {
        dry_run,
        grace_period_seconds: sent.grace_period_seconds,
        precondition_uid: sent.precondition_uid,
        precondition_resource_version: sent.precondition_resource_version,
        orphan_dependents: sent.orphan_dependents,
        propagation_policy,
        ignore_store_read_error: may_ignore_errors && sent.ignore_store_read_error == Some(true),
    };
    errors.extend(options.excluded_by_ignored_errors());
    if errors.is_empty() {
        Ok(options)
    } else {
        Err(Failure::invalid_options("DeleteOptions", errors))
    }
}

fn read_body(body: Value) -> Result<SentOptions, Failure> {
    let Value::Object(members) = body else {
        return Ok(SentOptions::default());
    };
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    match text("kind") {
        None | Some("" | "DeleteOptions") => {}
        Some(other) => {
            let version = text("apiVersion").filter(|it| !it.is_empty());
            let version = version.unwrap_or("meta.k8s.io/v1");
            return Err(Failure::bad_request(format!(
                "no kind \"{other}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""
            )));
        }
    }
    let mut sent = SentOptions::default();
    for (name, value) in &members {
        sent.set(name, value).map_err(Failure::bad_request)?;
    }
    Ok(sent)
}

impl SentOptions {
    /// Sets a member of the body; null leaves it as it is, and unknown members are nobody's.
    ///
    /// # Errors
    /// The words of Go's decoder about a value of another type.
    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        let kind = "DeleteOptions";
        match name {
            "gracePeriodSeconds" => self.grace_period_seconds = Some(integer(value, kind, name)?),
            "preconditions" => {
                let members = value.as_object();
                let members =
                    members.ok_or_else(|| go_json::wrong(value, kind, name, "v1.Preconditions"))?;
                for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                    self.set_precondition(name, value)?;
                }
            }
            "orphanDependents" => self.orphan_dependents = Some(boolean(value, kind, name)?),
            "propagationPolicy" => {
                let policy = string(value, kind, name, "v1.DeletionPropagation")?;
                self.propagation_policy = Some(policy);
            }
            "dryRun" => {
                let values = value.as_array();
                let values = values.ok_or_else(|| go_json::wrong(value, kind, name, "[]string"))?;
                let values = values.iter().map(|it| match it {
                    Value::Null => Ok(String::new()),
                    other => string(other, kind, name, "string"),
                });
                self.dry_run = values.collect::<Result<_, _>>()?;
            }
            IGNORE_STORE_READ_ERROR => {
                self.ignore_store_read_error = Some(boolean(value, kind, name)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn set_precondition(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let kind = "Preconditions";
        match name {
            "uid" => {
                let uid = string(value, kind, "preconditions.uid", "types.UID")?;
                self.precondition_uid = Some(uid);
            }
            "resourceVersion" => {
                let version = string(value, kind, "preconditions.resourceVersion", "string")?;
                self.precondition_resource_version = Some(version);
            }
            _ => {}
        }
        Ok(())
    }
}

fn string(value: &Value, kind: &str, field: &str, expected: &str) -> Result<String, String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| go_json::wrong(value, kind, field, expected))
}

fn boolean(value: &Value, kind: &str, field: &str) -> Result<bool, String> {
    let found = value.as_bool();
    found.ok_or_else(|| go_json::wrong(value, kind, field, "bool"))
}

/// Returns a number of 64 bits. The words about another number show it.
fn integer(value: &Value, kind: &str, field: &str) -> Result<i64, String> {
    value.as_i64().ok_or_else(|| match value {
        Value::Number(number) => format!(
            "json: cannot unmarshal number {number} into Go struct field {kind}.{field} of type int64"
        ),
        other => go_json::wrong(other, kind, field, "int64"),
    })
}

fn read_query(query: &Query) -> Result<SentOptions, Failure> {
    let said = |name| Some(query.first(name).to_owned()).filter(|it| !it.is_empty());
    Ok(SentOptions {
        grace_period_seconds: query.integer("gracePeriodSeconds")?,
        precondition_uid: said("uid"),
        precondition_resource_version: said("resourceVersion"),
        orphan_dependents: query.switch("orphanDependents"),
        propagation_policy: query
            .has("propagationPolicy")
            .then(|| query.first("propagationPolicy").to_owned()),
        dry_run: query.all("dryRun"),
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
    fn values_of_other_types_are_told_in_gos_words() {
        let wrong = "json: cannot unmarshal";
        for (body, expected) in [
            (
                json!({"dryRun": "All"}),
                format!(
                    "{wrong} string into Go struct field DeleteOptions.dryRun of type []string"
                ),
            ),
            (
                json!({"dryRun": [5]}),
                format!("{wrong} number into Go struct field DeleteOptions.dryRun of type string"),
            ),
            (
                json!({"gracePeriodSeconds": 1.5}),
                format!(
                    "{wrong} number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
                ),
            ),
            (
                json!({"preconditions": []}),
                format!(
                    "{wrong} array into Go struct field DeleteOptions.preconditions of type v1.Preconditions"
                ),
            ),
            (
                json!({"preconditions": {"uid": 5}}),
                format!(
                    "{wrong} number into Go struct field Preconditions.preconditions.uid of type types.UID"
                ),
            ),
            (
                json!({"orphanDependents": "true"}),
                format!(
                    "{wrong} string into Go struct field DeleteOptions.orphanDependents of type bool"
                ),
            ),
        ] {
            let failure = read_delete_options(&Query::parse(""), Some(body), false);
            let failure = failure.expect_err("another type");
            assert_eq!(failure.status().message, expected);
        }
        let nulls =
            json!({"dryRun": null, "preconditions": {"uid": null}, "orphanDependents": null});
        assert!(read_delete_options(&Query::parse(""), Some(nulls), false).is_ok());
    }

    #[test]
    fn values_are_checked_in_kube_apiservers_order() {
        let query = Query::parse("propagationPolicy=x&orphanDependents=FALSE&dryRun=&dryRun=All");
        let failure = read_delete_options(&query, None, false).expect_err("invalid");
        let details = failure.status().details.clone().expect("details");
        let told: Vec<_> = details
            .causes
            .iter()
            .map(|it| it.message.as_str())
            .collect();
        assert_eq!(
            told,
            [
                r#"Invalid value: "x": orphanDependents and deletionPropagation cannot be both set"#,
                r#"Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil""#,
                r#"Unsupported value: ["","All"]: supported values: "All""#,
            ]
        );
        let empty = read_delete_options(&Query::parse("propagationPolicy="), None, false);
        assert!(empty.is_err());
        let empty = read_delete_options(&Query::parse("gracePeriodSeconds="), None, false);
        let message = &empty.expect_err("no number").status().message.clone();
        assert_eq!(message, r#"strconv.ParseInt: parsing "": invalid syntax"#);
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
