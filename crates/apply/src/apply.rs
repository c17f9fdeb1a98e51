//! Server-side apply: merges a configuration, which has only the fields that its manager wants, into the live object.
//!
//! The hard part are fields that the configuration no longer has. A field that this manager applied before is removed,
//! unless another manager owns it; a field without an owner stays as long as the object or item around it does.

use std::collections::BTreeMap;

use ringwatch::codec;
use ringwatch_apimachinery::Error;
use serde_json::{Value, json};

use super::last_applied;
use super::managed_fields::{EntryOperation, Identity, ManagedFields, ManagerEntry};
use super::merge::{merge, remove};
use super::merging::MergeSchema;
use super::reconcile::reconcile;
use super::schema::Schema;
use super::set::FieldSet;
use super::typed::{ApplySide, ERROR_BYTES_MAX, complaints, complaints_of_live};
use super::update::{comparable, note};
use super::value::equal;
use super::walk::{Comparison, field_set};
use super::{Manager, UNTRACKED_FIELDS};

/// The manager of the fields of objects that were written before fields were tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Applies a configuration to the live object, if there is one, and returns the new content with its managed fields,
/// without defaults. What the schema of a custom resource refuses, such as a null, is left for validation.
///
/// Follows `Updater.Apply` of structured-merge-diff. The live object is compared as Go has it, with all members that
/// its type always has, and the merged one as it was sent, in which null is a value.
///
/// The time of the manager's entry is renewed unless the content is the live one.
///
/// # Errors
/// [`Error::ApplyConflict`] when fields would change that others manage, unless forced; [`Error::BadRequest`] when the
/// configuration is of another version or carries managed fields; [`Error::Untranslated`] when a value of it is of
/// another type, it has two items with one key or one without, or the live object is not of its type;
/// [`Error::Internal`] when the live entries cannot be read.
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Value, Error> {
    check_version(config, manager.api_version)?;
    let empty = json!({});
    let live_object = live.unwrap_or(&empty);
    let mut managed = ManagedFields::decode(live_object)
        .map_err(|why| Error::Internal(format!("failed to decode managed fields: {why}")))?;
    let schema = manager.schema(config);
    let is_managed = live.is_none() || !managed.entries.is_empty();
    if is_managed {
        check_configuration(config, manager.custom)?;
        check_live(schema, live_object, is_managed)?;
    } else {
        // kube-apiserver makes entries of such an object before it looks at the configuration.
        check_live(schema, live_object, is_managed)?;
        check_configuration(config, manager.custom)?;
    }
    let before = comparable(schema, live_object);
    if live.is_some() && managed.entries.is_empty() {
        note(&empty, &before, &mut managed, BEFORE_FIRST_APPLY, manager);
    }
    reconcile(schema, &mut managed);

    let reset = manager.reset_fields(schema);
    let mut wanted = field_set(schema, config);
    wanted.subtract_recursively(&reset);
    let identity = Identity::new(manager.name, EntryOperation::Apply, "", manager.subresource);
    let last = managed.entries.remove(&identity);
    let merged = merge(schema, &mut Vec::new(), &before, config);
    let mut claimed = wanted.clone();
    for entry in managed.entries.values() {
        claimed.unite(entry.fields.clone());
    }
    let mut next = match &last {
        Some(last) => prune(schema, merged, &last.fields, &claimed),
        None => merged,
    };
    let is_same = equal(&before, &next);

    let mut comparison = Comparison::new(schema, &before, &next).excluding(&reset);
    let removed = std::mem::take(&mut comparison.removed);
    let changed = comparison.into_changed();
    if !force {
        let agreed = || match last_applied::follows(manager) {
            true => last_applied::agreed_fields(schema, &before, manager.api_version),
            false => FieldSet::default(),
        };
        refuse_conflicts(&managed, &changed, agreed)?;
    }
    managed.take(&removed);
    managed.take(&changed);
    wanted.subtract(&UNTRACKED_FIELDS);
    if !wanted.is_empty() {
        let time = match is_same {
            true => last.and_then(|last| last.time),
            false => manager.time_text(),
        };
        let entry = ManagerEntry {
            api_version: manager.api_version.to_owned(),
            time,
            fields: wanted,
        };
        managed.entries.insert(identity, entry);
    }
    if is_same {
        // Numbers keep their form.
        next = before;
    }
    if last_applied::follows(manager) {
        last_applied::renew(&mut next, config);
    }
    convert_applied(config, &mut next)?;
    managed.encode(&mut next);
    Ok(next)
}

/// Refuses configurations of another version, or of none.
///
/// # Errors
/// [`Error::BadRequest`] if they differ; it names both.
fn check_version(config: &Value, expected: &str) -> Result<(), Error> {
    let version = version(config);
    if version == expected {
        return Ok(());
    }
    Err(Error::BadRequest(format!(
        "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {expected}"
    )))
}

fn version(config: &Value) -> &str {
    let version = config.get("apiVersion").and_then(Value::as_str);
    version.unwrap_or_default()
}

/// Refuses configurations that have managed fields, and those whose values are of other types than their schema has.
///
/// # Errors
/// [`Error::BadRequest`] for managed fields; [`Error::Untranslated`] with all that is wrong with the types.
pub fn check_configuration(config: &Value, custom: Option<&dyn MergeSchema>) -> Result<(), Error> {
    check_unmanaged(config)?;
    let kind = config.get("kind").and_then(Value::as_str);
    let schema = Schema::new(version(config), kind.unwrap_or_default(), custom);
    let complaints = complaints(schema, config, ApplySide::Applied, ERROR_BYTES_MAX);
    if complaints.is_empty() {
        return Ok(());
    }
    let why = joined(&complaints);
    let about = about(config);
    Err(Error::Untranslated(format!(
        "failed to create typed patch object ({about}): {why}"
    )))
}

/// Refuses configurations with managed fields. Entries that Go's type cannot hold are none.
fn check_unmanaged(config: &Value) -> Result<(), Error> {
    let sent = config.pointer("/metadata/managedFields");
    let sent = sent.and_then(Value::as_array);
    if !sent.is_some_and(|it| codec::are_managed_fields(it)) {
        return Ok(());
    }
    Err(Error::BadRequest(
        "metadata.managedFields must be nil".to_owned(),
    ))
}

/// Puts what an apply of a configuration made into its type.
///
/// # Errors
/// [`Error::Untranslated`] when a value is of another type, although its schema takes it.
pub fn convert_applied(config: &Value, object: &mut Value) -> Result<(), Error> {
    let kind = config.get("kind").and_then(Value::as_str);
    let schema = Schema::new(version(config), kind.unwrap_or_default(), None);
    schema.convert(object).map_err(|error| {
        let (about, kind) = (about(config), type_of(config));
        Error::Untranslated(format!(
            "failed to convert new object ({about}) to proper version: unable to convert unstructured object to \
             {kind}: {error}"
        ))
    })
}

/// Refuses a stored object that is not of its type, such as a custom resource whose schema has changed. Nothing can be
/// merged with it.
fn check_live(schema: Schema<'_>, live: &Value, is_managed: bool) -> Result<(), Error> {
    let complaints = complaints_of_live(schema, live);
    if complaints.is_empty() {
        return Ok(());
    }
    let (about, why) = (about(live), joined(&complaints));
    Err(Error::Untranslated(match is_managed {
        true => format!("failed to create typed live object ({about}): {why}"),
        false => format!(
            "failed to create manager for existing fields: failed to convert new object ({about}) to smd typed: {why}"
        ),
    }))
}

/// Returns the complaints about an object as one text.
fn joined(complaints: &[String]) -> String {
    match complaints {
        [complaint] => complaint.clone(),
        complaints => format!("errors:\n  {}", complaints.join("\n  ")),
    }
}

/// Returns the namespace, the name and the type of an object.
fn about(object: &Value) -> String {
    let text = |pointer: &str| {
        let value = object.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    format!("{namespace}/{name}; {}", type_of(object))
}

/// Returns the version and the kind of an object, as Go shows them.
fn type_of(object: &Value) -> String {
    let version = version(object);
    let kind = object.get("kind").and_then(Value::as_str);
    // Go writes the core group as an empty one.
    let core = if version.contains('/') { "" } else { "/" };
    format!("{core}{version}, Kind={}", kind.unwrap_or_default())
}

/// Removes from the merged object the fields that the manager applied last and nobody owns now. Follows
/// `Updater.prune`.
///
/// A field counts as applied and as owned with any field in it, so that a struct is removed as a whole, with its
/// defaults, once nothing in it is owned. One that the configuration leaves empty is owned, and stays; but a list
/// counts by its items alone, so that it goes with the last of them.
fn prune(schema: Schema<'_>, merged: Value, last: &FieldSet, claimed: &FieldSet) -> Value {
    let names_at = |path: &[_]| schema.names_at(path);
    let named = |set: &FieldSet| set.with_named_fields(&mut Vec::new(), &names_at);
    let (last, claimed) = (named(last), named(claimed));
    if last.difference(&claimed).is_empty() && !has_empty_list(&merged) {
        return merged;
    }
    let fields = |value: &Value| named(&field_set(schema, value));
    let without = |paths: &FieldSet| remove(schema, &mut Vec::new(), &merged, paths);
    let all = fields(&merged);
    let mut owned = fields(&without(&last));
    owned.unite(claimed);
    // What others have not applied goes only if this manager has.
    let left = fields(&without(&all.difference(&owned)));
    without(&all.difference(&left).intersection(&last))
}

/// Returns true if there is an empty list in a value. A struct that has nothing else is not found to be there by its
/// fields, and so goes with what nobody owns in it, although its manager still wants it.
fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty_list),
        Value::Object(members) => members.values().any(has_empty_list),
        _ => false,
    }
}

/// Refuses changes of fields that others manage, but for those that `agreed` returns.
fn refuse_conflicts(
    managed: &ManagedFields,
    changed: &FieldSet,
    agreed: impl FnOnce() -> FieldSet,
) -> Result<(), Error> {
    let mut conflicts: BTreeMap<String, (String, FieldSet)> = BTreeMap::new();
    for (identity, entry) in &managed.entries {
        let common = entry.fields.intersection(changed);
        if !common.is_empty() {
            conflicts.insert(identity.in_json(), (identity.show(), common));
        }
    }
    if !conflicts.is_empty() {
        let agreed = agreed();
        let fields = conflicts.values_mut().map(|(_, fields)| fields);
        fields.for_each(|it| it.subtract(&agreed));
    }
    let causes: Vec<_> = conflicts
        .values()
        .flat_map(|(manager, fields)| {
            let paths = fields.show(ERROR_BYTES_MAX).into_iter();
            paths.map(move |path| (format!("conflict with {manager}"), path))
        })
        .collect();
    if causes.is_empty() {
        Ok(())
    } else {
        Err(Error::ApplyConflict { causes })
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::{Merging, update};

    fn manager(name: &'static str) -> Manager<'static> {
        Manager::for_tests(name, "v1", "")
    }

    fn config(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "c", "labels": {"app": "x"}}})
    }

    fn applied(live: Option<&Value>, name: &'static str, data: Value, force: bool) -> Value {
        apply(live, &config(data), &manager(name), force).expect("an object")
    }

    fn message(result: Result<Value, Error>) -> String {
        result.expect_err("a refusal").to_string()
    }

    fn entries(object: &Value) -> Vec<(&str, &str, &Value)> {
        let list = object
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .map(|entry| {
                let text = |name: &str| entry[name].as_str().unwrap_or_default();
                (text("manager"), text("operation"), &entry["fieldsV1"])
            })
            .collect()
    }

    #[test]
    fn managers_take_turns_at_one_object() {
        let first = applied(None, "alpha", json!({"a": "1", "b": "2"}), false);
        let owned =
            json!({"f:data": {"f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {"f:app": {}}}});
        assert_eq!(entries(&first), [("alpha", "Apply", &owned)]);

        let nine = config(json!({"a": "9"}));
        let refused = apply(Some(&first), &nine, &manager("beta"), false);
        assert_eq!(
            message(refused),
            "Apply failed with 1 conflict: conflict with \"alpha\": .data.a"
        );

        let second = applied(Some(&first), "beta", json!({"a": "9"}), true);
        assert_eq!(second["data"], json!({"a": "9", "b": "2"}));
        let third = applied(Some(&second), "alpha", json!({"x": "1"}), false);
        assert_eq!(third["data"], json!({"a": "9", "x": "1"}));
        let alphas = json!({"f:data": {"f:x": {}}, "f:metadata": {"f:labels": {"f:app": {}}}});
        let betas = json!({"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:app": {}}}});
        assert_eq!(
            entries(&third),
            [("alpha", "Apply", &alphas), ("beta", "Apply", &betas)]
        );
    }

    #[test]
    fn several_conflicts_are_listed_by_manager() {
        let first = applied(None, "alpha", json!({"a": "1", "b": "1"}), false);
        let mut second = first.clone();
        second["data"]["c"] = "1".into();
        update(Some(&first), &mut second, &manager("edit"));
        let all = config(json!({"a": "2", "b": "2", "c": "2"}));
        assert_eq!(
            message(apply(Some(&second), &all, &manager("beta"), false)),
            "Apply failed with 3 conflicts: conflicts with \"alpha\":\n- .data.a\n- .data.b\n\
             conflicts with \"edit\" using v1:\n- .data.c"
        );
    }

    /// The version of who updates comes before the subresource, and neither is there of who applies to an object.
    #[test]
    fn conflicts_are_sorted_by_managers_in_json() {
        let entry = |operation: &str, subresource: &str, key: &str| {
            json!({"manager": "m", "operation": operation, "apiVersion": "v1", "subresource": subresource,
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {key: {}}}})
        };
        let mut live = config(json!({"a": "1", "b": "1", "c": "1"}));
        live["metadata"]["managedFields"] = json!([
            entry("Apply", "scale", "f:a"),
            entry("Update", "", "f:b"),
            entry("Update", "status", "f:c"),
        ]);
        let all = config(json!({"a": "2", "b": "2", "c": "2"}));
        assert_eq!(
            message(apply(Some(&live), &all, &manager("beta"), false)),
            "Apply failed with 3 conflicts: conflicts with \"m\" with subresource \"scale\":\n- .data.a\n\
             conflicts with \"m\" with subresource \"status\" using v1:\n- .data.c\n\
             conflicts with \"m\" using v1:\n- .data.b"
        );
    }

    #[test]
    fn the_same_value_is_shared_and_the_last_owner_removes_it() {
        let first = applied(None, "alpha", json!({"a": "1"}), false);
        let second = applied(Some(&first), "beta", json!({"a": "1"}), false);
        let third = applied(Some(&second), "alpha", json!({"b": "1"}), false);
        assert_eq!(third["data"], json!({"a": "1", "b": "1"}));
        let fourth = applied(Some(&third), "beta", json!({}), false);
        assert_eq!(fourth["data"], json!({"b": "1"}));
    }

    #[test]
    fn an_apply_without_change_keeps_the_time() {
        let live = applied(None, "alpha", json!({"a": "1"}), false);
        let mut later = manager("alpha");
        later.time = "2027-01-01T00:00:00Z".parse().ok();
        let again = apply(Some(&live), &config(json!({"a": "1"})), &later, false);
        assert_eq!(again.expect("an object"), live);
    }

    #[test]
    fn the_form_of_a_number_is_no_change() {
        let deployments = |name| Manager::for_tests(name, "apps/v1", "");
        let deployment = |replicas: Value, port: Value| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                "spec": {"replicas": replicas, "template": {"spec": {"containers": [
                    {"name": "c", "ports": [{"containerPort": port}]}]}}}})
        };
        let first = deployment(json!(2), json!(80));
        let live = apply(None, &first, &deployments("alpha"), false).expect("an object");
        let second = deployment(json!(2.0), json!(8e1));
        let next = apply(Some(&live), &second, &deployments("beta"), false).expect("no conflict");
        let port = "/spec/template/spec/containers/0/ports/0/containerPort";
        assert_eq!(next["spec"]["replicas"], 2);
        assert_eq!(next.pointer(port), Some(&json!(80)));
        assert_eq!(entries(&next).len(), 2);
        let all = entries(&live)[0].2;
        assert!(entries(&next).iter().all(|(_, _, fields)| *fields == all));

        let revision = |data| {
            json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
                "metadata": {"name": "r"}, "data": data})
        };
        let mut live = revision(json!({"a": [5.0]}));
        live["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Update",
            "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]);
        let config = revision(json!({"a": [5]}));
        let next = apply(Some(&live), &config, &deployments("alpha"), false).expect("no conflict");
        assert_eq!(next["data"], live["data"], "it keeps its form");
    }

    #[test]
    fn conflicts_are_in_the_order_of_structured_merge_diff() {
        let pods = |name| Manager::for_tests(name, "v1", "");
        let pod = |image: &str| {
            let ports: Vec<_> = [9, 80, 443]
                .map(|port| json!({"containerPort": port, "name": image}))
                .into();
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
                "containers": [{"name": "c<\u{7}", "image": image, "ports": ports}],
                "hostname": image}})
        };
        let live = apply(None, &pod("a"), &pods("alpha"), false).expect("an object");
        let refused = apply(Some(&live), &pod("b"), &pods("beta"), false);
        let Err(Error::ApplyConflict { causes }) = refused else {
            panic!("no conflict: {refused:?}");
        };
        let fields: Vec<_> = causes.into_iter().map(|(_, field)| field).collect();
        let container = r#".spec.containers[name="c<\a"]"#;
        let port =
            |port: u8| format!("{container}.ports[containerPort={port},protocol=\"TCP\"].name");
        let ports = [format!("{container}.image"), port(9), port(80)];
        assert_eq!(fields[0], ".spec.hostname");
        assert_eq!(fields[1..4], ports);
        let names = entries(&live)[0].2.pointer("/f:spec/f:containers").cloned();
        let names = names.expect("containers");
        assert!(
            names.get(r#"k:{"name":"c\u003c\u0007"}"#).is_some(),
            "{names}"
        );
    }

    #[test]
    fn repeated_items_are_told_in_the_order_of_the_list() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p",
            "finalizers": ["b", "a", "b", "a", "b"]}});
        let complaint = ".metadata.finalizers: duplicate entries for key";
        assert_eq!(
            message(apply(None, &pod, &manager("alpha"), false)),
            format!(
                "failed to create typed patch object (/p; /v1, Kind=Pod): errors:\n  {complaint} [=\"b\"]\n  \
                 {complaint} [=\"a\"]\n  {complaint} [=\"b\"]"
            )
        );
    }

    #[test]
    fn what_was_defaulted_into_a_struct_goes_with_it() {
        let deployments = Manager::for_tests("alpha", "apps/v1", "");
        let deployment = |spec| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                "spec": spec})
        };
        let config = deployment(json!({"replicas": 2, "strategy": {"type": "RollingUpdate"},
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}));
        let mut live = apply(None, &config, &deployments, false).expect("an object");
        let owned = json!({"f:spec": {"f:replicas": {}, "f:strategy": {"f:type": {}},
            "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
                ".": {}, "f:image": {}, "f:name": {}}}}}}});
        assert_eq!(entries(&live), [("alpha", "Apply", &owned)]);
        live["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": "25%"});
        live["spec"]["template"]["spec"]["containers"][0]["tty"] = false.into();

        let config = deployment(json!({"replicas": 2,
            "template": {"spec": {"containers": [{"name": "d"}]}}}));
        let next = apply(Some(&live), &config, &deployments, false).expect("an object");
        let expected = json!({"replicas": 2, "selector": null,
            "template": {"metadata": {}, "spec": {"containers": [{"name": "d"}]}}});
        assert_eq!(next["spec"], expected);
    }

    /// A type with a set beside other fields.
    #[derive(Debug)]
    struct WithSet;

    impl MergeSchema for WithSet {
        fn merging(&self, steps: &mut dyn Iterator<Item = Option<&str>>) -> Option<Merging<'_>> {
            let names: Vec<_> = steps.flatten().collect();
            Some(match names.as_slice() {
                ["spec", "set"] => Merging::Set,
                _ => Merging::Members { named: true },
            })
        }
    }

    #[test]
    fn a_struct_with_but_an_empty_list_goes_with_what_nobody_owns_in_it() {
        let manager = |name| Manager {
            custom: Some(&WithSet),
            ..Manager::for_tests(name, "example.com/v1", "")
        };
        let thing = |spec| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec});
        let empty = thing(json!({}));
        let mut live = apply(None, &empty, &manager("one"), false).expect("an object");
        live["spec"]["default"] = "x".into();
        let with_set = thing(json!({"set": []}));
        let live = apply(Some(&live), &with_set, &manager("two"), false).expect("an object");
        assert_eq!(live["spec"], json!({"default": "x", "set": []}));
        let next = apply(Some(&live), &empty, &manager("one"), false).expect("an object");
        assert_eq!(next["spec"], Value::Null, "as in kube-apiserver");
        let owned = json!({"f:spec": {}});
        assert_eq!(entries(&next), [("one", "Apply", &owned)]);
    }

    #[test]
    fn who_owns_repeated_items_is_in_conflict_with_one_that_takes_their_place() {
        let node = |addresses| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"addresses": addresses}});
        let status = |name| Manager::for_tests(name, "v1", "status");
        let address = |it: &str| json!({"type": "InternalIP", "address": it});
        let mut live = node(json!([address("10.0.0.1"), address("fd00::1")]));
        update(None, &mut live, &status("kubelet"));
        let one = node(json!([address("10.0.0.1")]));
        let conflict = "Apply failed with 1 conflict: conflict with \"kubelet\" with subresource \"status\" using v1: \
                        .status.addresses[type=\"InternalIP\"]";
        assert_eq!(
            message(apply(Some(&live), &one, &status("other"), false)),
            conflict
        );
        let taken = apply(Some(&live), &one, &status("other"), true).expect("an object");
        assert_eq!(taken["status"]["addresses"], one["status"]["addresses"]);
        let names: Vec<_> = entries(&taken).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["other", "kubelet"]);
    }

    #[test]
    fn what_was_there_before_tracking_has_a_manager() {
        let mut live = config(json!({"a": "1"}));
        live["metadata"]["uid"] = "u".into();
        let refused = apply(
            Some(&live),
            &config(json!({"a": "2"})),
            &manager("alpha"),
            false,
        );
        assert_eq!(
            message(refused),
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a"
        );
        let next = applied(Some(&live), "alpha", json!({"b": "2"}), false);
        assert_eq!(next["data"], json!({"a": "1", "b": "2"}));
        let names: Vec<_> = entries(&next).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["alpha", "before-first-apply"]);
    }

    #[test]
    fn what_cannot_be_applied_is_refused() {
        let mut tracked = config(json!({}));
        tracked["metadata"]["managedFields"] = json!([{"manager": "x"}]);
        assert_eq!(
            message(apply(None, &tracked, &manager("a"), true)),
            "metadata.managedFields must be nil"
        );
        let beta = Manager::for_tests("a", "v1beta1", "");
        assert_eq!(
            message(apply(None, &config(json!({})), &beta, true)),
            "Incorrect version specified in apply patch. Specified patch version: v1, expected: v1beta1"
        );
        let twice = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"},
            "spec": {"containers": [{"name": "c"}, {"name": "c"}]}});
        assert_eq!(
            message(apply(None, &twice, &manager("a"), true)),
            "failed to create typed patch object (n/p; /v1, Kind=Pod): .spec.containers: \
             duplicate entries for key [name=\"c\"]"
        );
        let twice = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
            "containers": [{"name": "c", "env": [{"name": "A"}, {"name": "A"}]}],
            "volumes": [{"name": "v"}, {"name": "v"}, {"name": "v"}]}});
        assert_eq!(
            message(apply(None, &twice, &manager("a"), true)),
            "failed to create typed patch object (/p; /v1, Kind=Pod): errors:\n  \
             .spec.containers[name=\"c\"].env: duplicate entries for key [name=\"A\"]\n  \
             .spec.volumes: duplicate entries for key [name=\"v\"]\n  \
             .spec.volumes: duplicate entries for key [name=\"v\"]"
        );
    }

    #[test]
    fn the_status_is_out_of_reach_of_the_object_itself() {
        let mut widgets = Manager::for_tests("alpha", "example.com/v1", "");
        widgets.has_status_subresource = true;
        let config = json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w"}, "spec": {"color": "green"}, "status": {"phase": "x"}});
        let object = apply(None, &config, &widgets, false).expect("an object");
        let owned = json!({"f:spec": {"f:color": {}}});
        assert_eq!(entries(&object), [("alpha", "Apply", &owned)]);
    }
}
