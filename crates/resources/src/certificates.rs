//! The group `certificates.k8s.io`: CertificateSigningRequests. The server writes the requesting user into them, and
//! the spec is immutable.

pub(crate) mod pem;
pub(crate) mod table;
mod validation;

use std::collections::HashMap;

use ringwatch_apimachinery::NameRule;
use ringwatch_apimachinery::accessor::format_time;
use ringwatch_apimachinery::path::{get, get_mut, keep, list, set, text};
use ringwatch_registry::RequestContext;
use ringwatch_registry::subresource::SubresourceMetadata;
use ringwatch_registry::subresource::SubresourceStrategy;
use serde_json::{Value, json};

use super::strategy::generic::Generic;
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup, field};

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        RowGroup::new("certificates.k8s.io", "v1")
            .cluster("certificatesigningrequests", "CertificateSigningRequest")
            .short(&["csr"])
            .fields([field("spec.signerName")])
            .part("approval")
            .status()
            .strategy(
                Generic::with_status()
                    .names_on_update()
                    .hooks(SigningRequests)
                    .check_on_create(validation::new_request)
                    .part("approval", approval())
                    .part("status", status())
                    .name_rule(NameRule::PathSegment),
            ),
    ]
}

/// The behaviour of CertificateSigningRequests: the spec names the requesting user and never changes.
#[derive(Debug)]
struct SigningRequests;

impl KindHooks for SigningRequests {
    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        let user = &context.user;
        for (path, value) in [
            ("spec.username", json!(user.name)),
            ("spec.uid", json!(user.uid)),
            ("spec.groups", json!(user.groups)),
            ("spec.extra", json!(user.extra)),
        ] {
            drop(ringwatch_apimachinery::path::remove(object, path));
            if !is_empty(&value) {
                set(object, path, value);
            }
        }
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
    }
}

/// Returns the strategy of the `approval` subresource, which writes the conditions.
fn approval() -> SubresourceStrategy {
    SubresourceStrategy::new("status.conditions", SubresourceMetadata::Free)
        .finish(date)
        .validate_update(validation::approval)
}

/// Fills in the times of conditions: a change of the status is dated as in the old object, if that has the same one,
/// and all else is of now. Follows `populateConditionTimestamps`.
fn date(context: &RequestContext, object: &mut Value, old: &Value) {
    const CHANGED: &str = "lastTransitionTime";
    const UPDATED: &str = "lastUpdateTime";
    let key = |condition: &Value| ["type", "status"].map(|name| text(condition, name).to_owned());
    let is_set =
        |condition: &Value, time: &str| get(condition, time).is_some_and(|it| !it.is_null());
    let mut before = HashMap::new();
    for condition in list(old, "status.conditions") {
        if is_set(condition, CHANGED) {
            let changed = &condition[CHANGED];
            before.entry(key(condition)).or_insert(changed);
        }
    }
    let now = Value::from(format_time(context.clock.wall()));
    let conditions = get_mut(object, "status.conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if !is_set(condition, UPDATED) {
            set(condition, UPDATED, now.clone());
        }
        if !is_set(condition, CHANGED) {
            let changed = before.get(&key(condition)).copied().unwrap_or(&now);
            set(condition, CHANGED, changed.clone());
        }
    }
}

/// Returns the strategy of the status subresource, which writes the certificate and conditions of failure. The
/// conditions `Approved` and `Denied` are kept, since an approver writes them and not the signer.
fn status() -> SubresourceStrategy {
    SubresourceStrategy::new("status", SubresourceMetadata::Free)
        .finish(|context, object, old| {
            for verdict in ["Approved", "Denied"] {
                keep_conditions(object, old, verdict);
            }
            date(context, object, old);
        })
        .validate_update(validation::status)
}

/// Restores the old conditions of a type. Does nothing if there are more or fewer of them, which validation refuses.
fn keep_conditions(object: &mut Value, old: &Value, kind: &str) {
    let of_kind = |condition: &&Value| condition["type"] == kind;
    let before: Vec<&Value> = list(old, "status.conditions")
        .iter()
        .filter(of_kind)
        .collect();
    let now = list(object, "status.conditions")
        .iter()
        .filter(of_kind)
        .count();
    if now != before.len() {
        return;
    }
    let conditions = get_mut(object, "status.conditions").and_then(Value::as_array_mut);
    let kept = conditions
        .into_iter()
        .flatten()
        .filter(|it| it["type"] == kind);
    for (condition, before) in kept.zip(before) {
        *condition = before.clone();
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::User;
    use ringwatch_registry::Strategy;
    use ringwatch_registry::testing::{self, NOW};

    use super::*;

    #[test]
    fn who_asks_and_who_decides_are_kept_apart() {
        let user = User {
            name: "kim".to_owned(),
            groups: vec!["g".to_owned()],
            ..User::default()
        };
        let context = RequestContext::new(user, String::new(), testing::context().clock);
        let mut request = json!({"spec": {"username": "root", "uid": "0", "request": "eA==",
            "usages": ["client auth"], "signerName": "s"}});
        SigningRequests.prepare_for_create(&context, &mut request);
        assert_eq!(
            request["spec"],
            json!({"username": "kim", "groups": ["g"], "request": "eA==",
                "usages": ["client auth"], "signerName": "s"})
        );

        let before = "2020-01-02T03:04:05Z";
        let dated = |kind: &str, time: &str| json!({"type": kind, "lastTransitionTime": time, "lastUpdateTime": time});
        let old = json!({"spec": {}, "status": {"conditions": [dated("Denied", before)]}});
        let mut issued = json!({"spec": {}, "status": {"certificate": "eA==",
            "conditions": [{"type": "Denied", "reason": "mine"}, {"type": "Failed"}]}});
        status().prepare_for_update(&context, &mut issued, &old);
        assert_eq!(
            issued["status"],
            json!({"certificate": "eA==", "conditions": [dated("Denied", before), dated("Failed", NOW)]})
        );
        let mut approved = json!({"status": {"certificate": "bad",
            "conditions": [{"type": "Approved"}]}});
        approval().prepare_for_update(&context, &mut approved, &old);
        assert_eq!(
            approved["status"],
            json!({"conditions": [dated("Approved", NOW)]})
        );
        let mut denied = json!({"status": {"conditions": [{"type": "Denied", "reason": "other"}]}});
        approval().prepare_for_update(&context, &mut denied, &old);
        let condition = &denied["status"]["conditions"][0];
        assert_eq!(condition["lastTransitionTime"], before);
        assert_eq!(condition["lastUpdateTime"], NOW);
        let mut again = json!({"status": {"conditions": [{"type": "Denied"}]}});
        approval().prepare_for_update(&context, &mut again, &old);
        let condition = &again["status"]["conditions"][0];
        assert_eq!(condition["lastTransitionTime"], before);
        assert_eq!(condition["lastUpdateTime"], NOW, "it has been sent anew");
    }
}
