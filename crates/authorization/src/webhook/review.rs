//! Writes SubjectAccessReviews, and reads their answers.

use ringwatch::meta::selector::{Operator, Requirement};
use ringwatch::meta::{FieldSelector, LabelSelector};
use serde_json::{Map, Value, json};

use super::{AccessAnswer, ReviewVersion};
use crate::Attributes;

/// The members of `resourceAttributes` that are text; below, those of `nonResourceAttributes`.
const RESOURCE_ATTRIBUTES: [&str; 7] = [
    "namespace",
    "verb",
    "group",
    "version",
    "resource",
    "subresource",
    "name",
];
const PATH_ATTRIBUTES: [&str; 2] = ["path", "verb"];

const GROUP: &str = "authorization.k8s.io";

/// Builds the spec of a SubjectAccessReview. v1beta1 has `group` where v1 has `groups`.
pub(super) fn spec(attributes: &Attributes<'_>, version: ReviewVersion) -> Value {
    let set = |members: &[(&str, &str)]| -> Value {
        let set = members.iter().filter(|(_, value)| !value.is_empty());
        let set: Map<_, _> = set
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        Value::Object(set)
    };
    let mut spec = set(&[
        ("user", &attributes.user.name),
        ("uid", &attributes.user.uid),
    ]);
    if attributes.is_resource {
        spec["resourceAttributes"] = set(&[
            ("namespace", attributes.namespace),
            ("verb", attributes.verb),
            ("group", attributes.group),
            ("version", attributes.version),
            ("resource", attributes.resource),
            ("subresource", attributes.subresource),
            ("name", attributes.name),
        ]);
        let fields = attributes.fields.map_or_else(Vec::new, by_fields);
        let labels = attributes.labels.map_or_else(Vec::new, by_labels);
        for (member, requirements) in [("fieldSelector", fields), ("labelSelector", labels)] {
            if !requirements.is_empty() {
                spec["resourceAttributes"][member] = json!({"requirements": requirements});
            }
        }
    } else {
        spec["nonResourceAttributes"] =
            set(&[("path", attributes.path), ("verb", attributes.verb)]);
    }
    if !attributes.user.groups.is_empty() {
        let member = match version {
            ReviewVersion::V1 => "groups",
            ReviewVersion::V1Beta1 => "group",
        };
        spec[member] = json!(attributes.user.groups);
    }
    if !attributes.user.extra.is_empty() {
        spec["extra"] = json!(attributes.user.extra);
    }
    spec
}

/// Builds the variable `request` of match conditions: empty fields are there all the same.
pub(super) fn shown(attributes: &Attributes<'_>) -> Value {
    let fill = |object: &mut Value, names: &[&str], empty: Value| {
        for name in names {
            if object.get(name).is_none() {
                object[*name] = empty.clone();
            }
        }
    };
    let mut shown = spec(attributes, ReviewVersion::V1);
    fill(&mut shown, &["user", "uid"], json!(""));
    fill(&mut shown, &["groups"], json!([]));
    fill(&mut shown, &["extra"], json!({}));
    let (member, names) = if attributes.is_resource {
        ("resourceAttributes", &RESOURCE_ATTRIBUTES[..])
    } else {
        ("nonResourceAttributes", &PATH_ATTRIBUTES[..])
    };
    fill(&mut shown[member], names, json!(""));
    shown
}

fn by_fields(selector: &FieldSelector) -> Vec<Value> {
    let requirement = |(key, equal, value): (&str, bool, &str)| {
        let operator = if equal { "In" } else { "NotIn" };
        json!({"key": key, "operator": operator, "values": [value]})
    };
    selector.terms().map(requirement).collect()
}

/// Returns the requirements of a selector. Comparisons of numbers, which reviews cannot express, are left out: the
/// review then asks for more than the request does.
fn by_labels(selector: &LabelSelector) -> Vec<Value> {
    let requirement = |requirement: &Requirement| {
        let operator = match requirement.operator() {
            Operator::In | Operator::Equals | Operator::DoubleEquals => "In",
            Operator::NotIn | Operator::NotEquals => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            Operator::GreaterThan | Operator::LessThan => return None,
        };
        let mut written = json!({"key": requirement.key(), "operator": operator});
        if !requirement.values().is_empty() {
            written["values"] = json!(requirement.values());
        }
        Some(written)
    };
    let requirements = selector.requirements().iter();
    requirements.filter_map(requirement).collect()
}

/// Returns the SubjectAccessReview of a spec.
pub(super) fn subject_access_review(spec: Value, version: ReviewVersion) -> Value {
    json!({"kind": "SubjectAccessReview", "apiVersion": version.of_group(GROUP),
        "metadata": {}, "spec": spec, "status": {"allowed": false}})
}

/// Reads the answer out of a SubjectAccessReview that came back, whose values have the right types.
pub(super) fn answer(review: &Value) -> AccessAnswer {
    let status = &review["status"];
    let flag = |name: &str| status[name].as_bool().unwrap_or_default();
    let reason = status["reason"].as_str().unwrap_or_default().to_owned();
    match (flag("allowed"), flag("denied")) {
        (true, true) => AccessAnswer::Contradictory(reason),
        (true, false) => AccessAnswer::Allowed(reason),
        (false, true) => AccessAnswer::Denied(reason),
        (false, false) => AccessAnswer::NoOpinion(reason),
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::User;

    use super::*;

    #[test]
    fn reviews_say_what_is_asked_in_both_versions() {
        let user = User {
            name: "ann".to_owned(),
            groups: vec!["devs".to_owned()],
            ..User::default()
        };
        let attributes = Attributes {
            namespace: "a",
            version: "v1",
            ..Attributes::of_resource(&user, "get", "apps", "deployments")
        };
        let resource = json!({"namespace": "a", "verb": "get", "group": "apps", "version": "v1",
            "resource": "deployments"});
        assert_eq!(
            spec(&attributes, ReviewVersion::V1),
            json!({"user": "ann", "groups": ["devs"], "resourceAttributes": resource})
        );
        assert_eq!(
            spec(&attributes, ReviewVersion::V1Beta1),
            json!({"user": "ann", "group": ["devs"], "resourceAttributes": resource})
        );
        let fields = FieldSelector::parse("a=b,c!=d").unwrap();
        let labels = LabelSelector::parse("e in (f,g),!h,i,j!=k,l>1").unwrap();
        let selecting = Attributes {
            fields: Some(&fields),
            labels: Some(&labels),
            ..attributes
        };
        let attributes = &spec(&selecting, ReviewVersion::V1)["resourceAttributes"];
        assert_eq!(
            attributes["fieldSelector"],
            json!({"requirements": [{"key": "a", "operator": "In", "values": ["b"]},
                {"key": "c", "operator": "NotIn", "values": ["d"]}]})
        );
        assert_eq!(
            attributes["labelSelector"],
            json!({"requirements": [{"key": "e", "operator": "In", "values": ["f", "g"]},
                {"key": "h", "operator": "DoesNotExist"}, {"key": "i", "operator": "Exists"},
                {"key": "j", "operator": "NotIn", "values": ["k"]}]})
        );
        let path = Attributes::of_path(&user, "get", "/metrics");
        assert_eq!(
            spec(&path, ReviewVersion::V1)["nonResourceAttributes"],
            json!({"path": "/metrics", "verb": "get"})
        );
    }

    #[test]
    fn answers_are_believed_when_they_make_sense() {
        let of = |status: Value| answer(&json!({"status": status}));
        let reason = || "r".to_owned();
        assert_eq!(
            of(json!({"allowed": true, "reason": "r"})),
            AccessAnswer::Allowed(reason())
        );
        assert_eq!(
            of(json!({"denied": true, "reason": "r"})),
            AccessAnswer::Denied(reason())
        );
        assert_eq!(
            of(json!({"reason": "r"})),
            AccessAnswer::NoOpinion(reason())
        );
        assert_eq!(
            of(json!({"allowed": true, "denied": true, "reason": "r"})),
            AccessAnswer::Contradictory(reason())
        );
    }
}
