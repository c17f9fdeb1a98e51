//! The built-in resources: a table with a row for each, and the strategies by which they are written.
//!
//! All that only one kind has belongs here: defaults, validation, printer columns, allocation. The order of a write
//! does not, which is `ringwatch-registry`'s for all kinds.
//!
//! A file per group holds its rows, which `row` builds. The strategy of a kind is a `generic::Generic` with a few
//! switches, a table of `defaults`, `checks` for its validation, and a `strategy::kind_hooks::KindHooks` in a file of
//! its own for anything else.

mod admissionregistration;
pub mod allocation;
mod apiextensions;
mod apiregistration;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
mod batch;
mod certificates;
mod cluster_options;
mod coordination;
mod core;
pub mod default_objects;
mod defaults;
mod discovery;
mod events;
mod flowcontrol;
#[cfg(test)]
mod golden;
mod networking;
mod node;
mod policy;
mod printer;
mod rbac;
mod resource;
mod resource_list;
mod scheduling;
pub mod service_ranges;
mod storage;
mod strategy;
pub mod table;
mod validation;

pub use self::apiregistration::registrations::{
    Availability, local_priorities, publish_built_in_apis, publish_custom_apis, tell_availability,
};
pub use self::cluster_options::ClusterOptions;
pub(crate) use self::core::pod::usage::resources_of_containers;
pub use self::core::pod::usage::{
    RequestsOrLimits, container_resources, pod_resources, resources_without_overhead,
};
pub use self::default_objects::flow_control::{default_flows, ensure_flow_control};
pub use self::default_objects::role_reconciliation::{RolesAndBindings, ensure_default_roles};
pub use self::default_objects::service_range::ensure_service_range;
pub use self::default_objects::{
    ensure_kubernetes_service, ensure_system_namespaces, ensure_system_priorities,
    ensure_token_tracking,
};
pub use self::policy::disruption_budget;
pub use self::printer::Printer;
pub use self::resource_list::ResourceList;

use std::sync::Arc;

pub use self::certificates::pem::SigningRequest;
pub use self::core::pod::quality_class;
pub use self::core::pod::{bind as bind_pod, can_ignore_budgets, mark_evicted};
use ringwatch_registry::Resource;

/// Returns all built-in resources in the order of discovery: the core group, then the others by their priority,
/// the preferred version of a group first, and by plural within a version. Their rules are those of default options.
#[must_use]
pub fn built_in() -> Vec<Arc<Resource>> {
    built_in_with(&ClusterOptions::default())
}

/// Returns all built-in resources as [`built_in`] does, with the rules of a cluster.
#[must_use]
pub fn built_in_with(options: &ClusterOptions) -> Vec<Arc<Resource>> {
    let core_group = core::rows(options).into_iter();
    let core_group = core_group.chain([apps::replication_controller::row(options)]);
    let groups = [
        core_group.collect(),
        apiregistration::rows(),
        apps::rows(options),
        events::rows(),
        authentication::rows(),
        authorization::rows(),
        autoscaling::rows(),
        batch::rows(options),
        certificates::rows(),
        networking::rows(),
        policy::rows(),
        rbac::rows(),
        storage::rows(),
        admissionregistration::rows(),
        apiextensions::rows(),
        scheduling::rows(),
        coordination::rows(),
        node::rows(),
        discovery::rows(),
        resource::rows(),
        flowcontrol::rows(),
    ];
    let mut resources = Vec::new();
    for rows in groups {
        let mut group: Vec<Resource> = rows
            .into_iter()
            .map(strategy::row::RowBuilder::done)
            .collect();
        // The sort is stable, so the versions of one kind keep their order.
        group.sort_by(|one, other| one.plural.cmp(&other.plural));
        resources.extend(group.into_iter().map(Arc::new));
    }
    resources
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::{NameRule, User};
    use ringwatch_registry::{DeleteOptions, RequestContext, ServedBy};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn keys_and_names_are_unique() {
        let resources = built_in();
        let names: BTreeSet<_> = resources
            .iter()
            .map(|one| (one.group_version.clone(), one.plural.clone()))
            .collect();
        assert_eq!(names.len(), resources.len());
        for one in &resources {
            for other in &resources {
                let same_store = one.served == ServedBy::Store
                    && other.served == ServedBy::Store
                    && one.storage_prefix == other.storage_prefix;
                if same_store {
                    assert_eq!(one.plural, other.plural);
                    assert_eq!(one.storage_version, other.storage_version);
                    assert_eq!(
                        one.schema.names().collect::<Vec<_>>(),
                        other.schema.names().collect::<Vec<_>>()
                    );
                }
            }
        }
    }

    #[test]
    fn a_write_of_the_status_changes_metadata_of_definitions_but_not_of_api_services() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let old = json!({"metadata": {"name": "a"}, "status": {}});
        for (plural, labels) in [
            ("customresourcedefinitions", json!({"a": "b"})),
            ("apiservices", Value::Null),
        ] {
            let resources = built_in();
            let mut named = resources.iter().filter(|one| one.plural == plural);
            let resource = named.next().expect("a built-in resource");
            let status = resource.strategy.subresource("status").expect("a status");
            let mut new = old.clone();
            new["metadata"]["labels"] = json!({"a": "b"});
            status.prepare_for_update(&context, &mut new, &old);
            assert_eq!(new["metadata"]["labels"], labels, "{plural}");
        }
    }

    #[test]
    fn generated_names_are_checked_on_updates_where_the_kind_checks_all_metadata() {
        for (plural, part, rule) in [
            ("volumeattachments", "", NameRule::DnsSubdomain),
            ("volumeattachments", "status", NameRule::DnsSubdomain),
            ("pods", "", NameRule::DnsSubdomain),
            ("pods", "ephemeralcontainers", NameRule::DnsSubdomain),
            ("pods", "resize", NameRule::DnsSubdomain),
            ("pods", "status", NameRule::PathSegment),
            ("jobs", "", NameRule::DnsSubdomain),
            ("jobs", "status", NameRule::PathSegment),
            ("nodes", "status", NameRule::PathSegment),
            ("services", "", NameRule::PathSegment),
            ("services", "status", NameRule::PathSegment),
            ("statefulsets", "", NameRule::PathSegment),
        ] {
            let resources = built_in();
            let mut named = resources.iter().filter(|one| one.plural == plural);
            let resource = named.next().expect("a built-in resource");
            let strategy = match part {
                "" => resource.strategy.as_ref(),
                part => resource.strategy.subresource(part).expect("a part"),
            };
            assert_eq!(strategy.name_rule_on_update(), rule, "{plural} {part}");
        }
    }

    #[test]
    fn what_the_store_serves_below_an_object_has_a_strategy() {
        for resource in built_in() {
            for part in &resource.subresources {
                let strategy = resource.strategy.subresource(&part.name);
                let name = format!("{}/{}", resource.qualified_name(), part.name);
                match part.served {
                    ServedBy::Store => assert!(strategy.is_some(), "{name}"),
                    ServedBy::Handler | ServedBy::Computed => {}
                }
            }
        }
    }

    #[test]
    fn no_strategy_minds_odd_shapes() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let odd = |filler: Value| {
            let mut object = json!({"metadata": {"name": "a"}});
            for member in [
                "spec", "status", "data", "template", "webhooks", "subjects", "rules",
            ] {
                object[member] = filler.clone();
            }
            object
        };
        let nested = json!({"template": {"spec": [], "metadata": 1}, "containers": [1, {"ports": 2}],
            "ports": {"x": 1}, "selector": [], "type": 3, "limits": [null], "versions": "v1",
            "clusterIP": 4, "names": [], "conversion": 5, "behavior": "x", "metrics": {},
            "conditions": 7, "finalizers": {}, "tolerations": "x", "volumes": [[]]});
        let fillers = [
            json!(null),
            json!([1]),
            json!("x"),
            json!(1.5),
            json!({}),
            nested,
        ];
        for resource in built_in() {
            let strategy = &resource.strategy;
            for filler in &fillers {
                let old = odd(json!({}));
                let mut object = strategy.to_stored(odd(filler.clone()));
                strategy.default(&mut object);
                let mut parts = vec![object.clone(); resource.subresources.len()];
                strategy.prepare_for_create(&context, &mut object);
                drop(strategy.validate(&object));
                strategy.prepare_for_update(&context, &mut object, &old);
                drop(strategy.validate_update(&object, &old));
                strategy.canonicalize(&mut object);
                strategy.prepare_for_deletion(&mut object);
                let mut options = DeleteOptions::default();
                strategy.check_graceful_delete(&context, &object, &mut options);
                for (part, object) in resource.subresources.iter().zip(&mut parts) {
                    if let Some(strategy) = strategy.subresource(&part.name) {
                        strategy.prepare_for_update(&context, object, &old);
                        drop(strategy.validate_update(object, &old));
                    }
                }
                let served = strategy.to_served(object);
                let name = &served["metadata"]["name"];
                assert_eq!(name, "a", "{} {filler}", resource.qualified_name());
            }
        }
    }

    #[test]
    fn served_names_of_fields_lead_to_stored_ones() {
        let resources = built_in();
        let find = |group: &str| {
            resources
                .iter()
                .find(|it| it.plural == "events" && it.group_version.group == group)
                .expect("events")
        };
        let newer = find("events.k8s.io");
        assert_eq!(
            newer.selectable_field("regarding.kind"),
            Some("involvedObject.kind")
        );
        assert_eq!(newer.selectable_field("involvedObject.kind"), None);
        assert_eq!(
            newer.selectable_field("metadata.name"),
            Some("metadata.name")
        );
        assert_eq!(find("").selectable_field("source"), Some("source"));
        assert_eq!(find("").selectable_field("regarding.kind"), None);
    }
}
