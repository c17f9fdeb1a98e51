//! Jobs: labels and a selector with the job's uid tell its pods from all others.

use ringwatch_apimachinery::path::{get, remove, set, text};
use ringwatch_registry::RequestContext;
use serde_json::{Value, json};

use crate::strategy::kind_hooks::KindHooks;

/// The labels that a selector matches, and that which tells the pods of one job from all others.
const CONTROLLER_UID: (&str, &str) = (
    "spec.selector.matchLabels",
    "batch.kubernetes.io/controller-uid",
);

const LABELS: &str = "metadata.labels";
const TEMPLATE_LABELS: &str = "spec.template.metadata.labels";

/// The behaviour of jobs: the server generates the selector and the labels of the pods. Follows `generateSelector`.
#[derive(Debug)]
pub(super) struct Jobs;

impl KindHooks for Jobs {
    /// Removes the labels of the template. In kube-apiserver those by default are no copy, but the same map, which gets
    /// the generated labels as well.
    fn forget_default_labels(&self, object: &mut Value) {
        if get(object, LABELS) == get(object, TEMPLATE_LABELS) {
            drop(remove(object, LABELS));
        }
    }

    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        if get(object, "spec.manualSelector") != Some(&Value::Bool(true)) {
            generate_selector(object);
        }
        // The template's labels are the job's by default, and kube-apiserver fills in defaults once more when
        // it reads what it has stored.
        super::defaults::label_like_the_template(object);
    }
}

/// Gives the template's labels and the selector what tells the pods of this job from all others.
fn generate_selector(object: &mut Value) {
    let uid = text(object, "metadata.uid").to_owned();
    let name = text(object, "metadata.name").to_owned();
    let labels = get(object, TEMPLATE_LABELS).cloned();
    let mut labels = labels.unwrap_or_else(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        for prefix in ["", "batch.kubernetes.io/"] {
            // Values that the client gave stay, and validation refuses wrong ones.
            for (label, value) in [("controller-uid", &uid), ("job-name", &name)] {
                let label = format!("{prefix}{label}");
                labels.entry(label).or_insert_with(|| json!(value));
            }
        }
    }
    set(object, TEMPLATE_LABELS, labels);
    // What the client selects besides stays, so that an empty selector does not select every pod.
    if get(object, CONTROLLER_UID.0)
        .and_then(|it| it.get(CONTROLLER_UID.1))
        .is_none()
    {
        let mut labels = get(object, CONTROLLER_UID.0).cloned().unwrap_or_default();
        labels[CONTROLLER_UID.1] = json!(uid);
        set(object, CONTROLLER_UID.0, labels);
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;

    use super::*;

    #[test]
    fn a_job_tells_its_pods_by_its_uid() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {}}});
        Jobs.prepare_for_create(&context, &mut job);
        assert_eq!(
            job["spec"]["selector"],
            json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}})
        );
        assert_eq!(
            job["spec"]["template"]["metadata"]["labels"]["job-name"],
            "j"
        );
        assert_eq!(job["metadata"]["labels"]["job-name"], "j");
    }

    #[test]
    fn labels_by_default_are_those_of_the_template_with_the_generated_ones() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        for (labels, manual, count) in [
            (json!({"a": "b"}), false, 5),
            (json!({"a": "b"}), true, 1),
            (json!({"c": "d"}), false, 1),
        ] {
            let mut job = json!({"metadata": {"name": "j", "uid": "u", "labels": labels},
                "spec": {"manualSelector": manual, "template": {"metadata": {"labels": {"a": "b"}}}}});
            Jobs.forget_default_labels(&mut job);
            Jobs.prepare_for_create(&context, &mut job);
            let labels = job["metadata"]["labels"].as_object().expect("labels");
            assert_eq!(labels.len(), count);
        }
    }

    #[test]
    fn a_selector_gets_the_uid_unless_it_is_manual() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let selected = |selector: Value, manual: bool| {
            let mut job = json!({"metadata": {"name": "j", "uid": "u"},
                "spec": {"manualSelector": manual, "selector": selector, "template": {}}});
            Jobs.prepare_for_create(&context, &mut job);
            job["spec"]["selector"].take()
        };
        let uid = "batch.kubernetes.io/controller-uid";
        let generated = json!({"matchLabels": {uid: "u"}});
        for selector in [
            json!({}),
            json!({"matchLabels": {}}),
            json!({"matchLabels": null}),
            Value::Null,
        ] {
            assert_eq!(selected(selector.clone(), false), generated, "{selector}");
            assert_eq!(selected(selector.clone(), true), selector);
        }
        assert_eq!(
            selected(json!({"matchExpressions": []}), false),
            json!({"matchExpressions": [], "matchLabels": {uid: "u"}})
        );
        assert_eq!(
            selected(json!({"matchLabels": {"a": "b"}}), false),
            json!({"matchLabels": {"a": "b", uid: "u"}})
        );
        // Validation refuses another's.
        let wrong = json!({"matchLabels": {uid: "w"}});
        assert_eq!(selected(wrong.clone(), false), wrong);
    }
}
