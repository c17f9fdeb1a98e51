//! DaemonSets, which count the changes of their template in an annotation for older controllers. The number is nowhere
//! else in the API.

use ringwatch_apimachinery::path::{get, get_mut};
use ringwatch_registry::RequestContext;
use ringwatch_registry::subresource::{SubresourceMetadata, SubresourceStrategy};
use serde_json::{Map, Value, json};

use super::status;
use crate::core::pod::warnings;
use crate::strategy::kind_hooks::KindHooks;
use crate::strategy::stored::TEMPLATE_GENERATION;
use crate::validation::Field;

/// The behaviour of DaemonSets: an annotation counts the changes of the template.
#[derive(Debug)]
pub(super) struct DaemonSets;

impl KindHooks for DaemonSets {
    /// Writes the annotation as a default, so that the field manager of the write owns it.
    fn default(&self, object: &mut Value) {
        set_template_generation(object, template_generation(object));
    }

    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        set_template_generation(object, template_generation(object).max(1));
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        let changed = get(object, "spec.template") != get(old, "spec.template");
        let generation = template_generation(old).saturating_add(changed.into());
        set_template_generation(object, generation);
    }

    /// Warns of the template, on an update if it changes.
    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let mut told = Vec::new();
        let template = |it| get(it, "spec.template");
        if old.is_none_or(|old| template(object) != template(old)) {
            warnings::template(&Field::root(object), &mut told);
        }
        told
    }
}

/// Returns the strategy of the status subresource, through which the count stays as it is.
pub(super) fn status_part() -> SubresourceStrategy {
    SubresourceStrategy::new("status", SubresourceMetadata::Free)
        .finish(|_, object, old| set_template_generation(object, template_generation(old)))
        .validate_update(status::daemon_set)
}

/// Returns the status of a new DaemonSet, which no controller has observed yet.
pub(super) fn initial_status() -> Value {
    json!({
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    })
}

fn template_generation(object: &Value) -> i64 {
    let annotations = get(object, "metadata.annotations");
    let annotation = annotations.and_then(|it| it.get(TEMPLATE_GENERATION)?.as_str());
    annotation.and_then(|it| it.parse().ok()).unwrap_or(0)
}

fn set_template_generation(object: &mut Value, generation: i64) {
    let metadata = get_mut(object, "metadata").and_then(Value::as_object_mut);
    let annotations = metadata.and_then(|metadata| {
        let annotations = metadata.entry("annotations").or_insert(Value::Null);
        if annotations.is_null() {
            *annotations = Map::new().into();
        }
        annotations.as_object_mut()
    });
    if let Some(annotations) = annotations {
        annotations.insert(
            TEMPLATE_GENERATION.to_owned(),
            generation.to_string().into(),
        );
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;
    use ringwatch_registry::Strategy;

    use super::*;

    #[test]
    fn a_template_is_warned_of_when_it_changes() {
        let with = |grace: i64| {
            json!({"spec": {"minReadySeconds": grace, "template": {"spec": {
                "terminationGracePeriodSeconds": grace}}}})
        };
        let (old, new) = (with(-1), with(-2));
        assert_eq!(DaemonSets.warnings(&new, None).len(), 1);
        assert_eq!(DaemonSets.warnings(&new, Some(&old)).len(), 1);
        let mut other = old.clone();
        other["spec"]["minReadySeconds"] = json!(5);
        assert!(DaemonSets.warnings(&other, Some(&old)).is_empty());
    }

    #[test]
    fn changes_of_the_template_are_counted() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let strategy = DaemonSets;
        let mut object = json!({"metadata": {"name": "d"}, "spec": {"template": {"a": 1}}});
        strategy.default(&mut object);
        strategy.prepare_for_create(&context, &mut object);
        assert_eq!(template_generation(&object), 1);

        let update = |change: Value| {
            let mut next = object.clone();
            next["spec"] = change;
            next["metadata"]["annotations"] = json!({"mine": "too"});
            strategy.default(&mut next);
            strategy.prepare_for_update(&context, &mut next, &object);
            assert_eq!(next["metadata"]["annotations"]["mine"], "too");
            template_generation(&next)
        };
        assert_eq!(
            update(json!({"template": {"a": 1}, "minReadySeconds": 1})),
            1
        );
        assert_eq!(update(json!({"template": {"a": 2}})), 2);

        let mut written = json!({"metadata": {"name": "d"}, "status": {"numberReady": 1}});
        status_part().prepare_for_update(&context, &mut written, &object);
        assert_eq!(template_generation(&written), 1);
    }
}
