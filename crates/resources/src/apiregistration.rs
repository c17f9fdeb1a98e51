//! The group `apiregistration.k8s.io`: APIServices.

pub(crate) mod registrations;
pub(crate) mod validation;

use jiff::Timestamp;
use ringwatch_apimachinery::NameRule;
use ringwatch_apimachinery::accessor::format_time;
use ringwatch_apimachinery::path::{get_mut, set};
use ringwatch_registry::RequestContext;
use ringwatch_registry::subresource::SubresourceMetadata;
use serde_json::{Value, json};

use super::admissionregistration::defaults;
use super::strategy::generic::Generic;
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup};
use crate::defaults::is_absent;
use crate::validation::found;

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        RowGroup::new("apiregistration.k8s.io", "v1")
            .cluster("apiservices", "APIService")
            .category("api-extensions")
            .prefix("apiregistration.k8s.io/apiservices")
            .status()
            .strategy(
                Generic::with_status()
                    .defaults(defaults::API_SERVICE)
                    .hooks(ApiServices)
                    .status_update(SubresourceMetadata::KeepsAll, |object, _| {
                        found(validation::status, object)
                    })
                    .name_rule(NameRule::StrictPathSegment)
                    .names_on_update()
                    .check(validation::api_service)
                    .conditional_update(),
            ),
    ]
}

/// The behaviour of APIServices, whose conditions have their times as Go writes them: whole seconds of UTC, null for
/// none. The codec, which does so for other kinds, does not know them.
#[derive(Debug)]
struct ApiServices;

/// Returns the condition of an APIService that this server serves itself, which is available from the start.
pub(crate) fn local_condition(now: Timestamp) -> Value {
    json!({"type": "Available", "status": "True", "lastTransitionTime": format_time(now),
        "reason": "Local", "message": "Local APIServices are always available"})
}

impl KindHooks for ApiServices {
    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        if is_absent(object, "spec.service") {
            let condition = local_condition(context.clock.wall());
            set(object, "status.conditions", json!([condition]));
        }
    }

    fn default(&self, object: &mut Value) {
        let conditions = get_mut(object, "status.conditions").and_then(Value::as_array_mut);
        let conditions = conditions.into_iter().flatten();
        for condition in conditions.filter_map(Value::as_object_mut) {
            let time = condition.entry("lastTransitionTime").or_insert(Value::Null);
            let text = time.as_str().unwrap_or_default();
            if let Ok(read) = text.parse::<Timestamp>() {
                *time = format_time(read).into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_registry::testing;

    use super::*;

    #[test]
    fn what_is_served_here_is_available_at_once() {
        let context = testing::context();
        for (spec, count) in [(json!({}), 1), (json!({"service": {"name": "s"}}), 0)] {
            let mut object = json!({"spec": spec, "status": {}});
            ApiServices.prepare_for_create(&context, &mut object);
            let conditions = object["status"]["conditions"].as_array();
            assert_eq!(conditions.map_or(0, Vec::len), count);
        }
    }

    #[test]
    fn times_are_written_as_by_go() {
        for (time, written) in [
            (
                json!("2020-01-01T00:00:00.123Z"),
                json!("2020-01-01T00:00:00Z"),
            ),
            (
                json!("2020-01-01T00:00:00+01:00"),
                json!("2019-12-31T23:00:00Z"),
            ),
            (json!(null), json!(null)),
        ] {
            let mut object = json!({"status": {"conditions": [{"lastTransitionTime": time}, {}]}});
            ApiServices.default(&mut object);
            let conditions = json!([{"lastTransitionTime": written}, {"lastTransitionTime": null}]);
            assert_eq!(object["status"]["conditions"], conditions);
        }
    }
}
