//! Records the manager of the fields that a write other than an apply has changed.

use serde_json::{Map, Value, json};

use super::changed_values::changed_values;
use super::managed_fields::{EntryOperation, Identity, ManagedFields, ManagerEntry};
use super::reconcile::reconcile;
use super::renewal::renew;
use super::schema::Schema;
use super::set::FieldSet;
use super::typed::complaints_of_live;
use super::walk::Comparison;
use super::{Manager, UNTRACKED_FIELDS};

/// Updates the managed fields of `new` after a write that is not an apply.
///
/// It is called on content with defaults, before the strategy resets fields that may not be written; `live` is the
/// content before the write in the same version, `None` on creation. The writer becomes the manager of the fields that
/// it changed and added, other managers lose them, and all lose removed fields. A write that changes nothing leaves the
/// entries as they are. A list of one empty entry in `new` removes all entries, and so does an empty list unless the
/// object is a custom resource; an existing object without entries gets none until something is applied to it. Where
/// the content before or after the write is not of its type nothing can be compared, and all entries go.
pub fn update(live: Option<&Value>, new: &mut Value, manager: &Manager<'_>) {
    if !is_typed(live, new, manager) {
        return remove_entries(new);
    }
    let is_done = live.is_some_and(|live| renew(live, new, manager));
    if !is_done {
        update_sets(live, new, manager);
    }
}

/// Returns true if an object is of its type, before and after a write.
fn is_typed(live: Option<&Value>, new: &Value, manager: &Manager<'_>) -> bool {
    let schema = manager.schema(new);
    let mut states = live.into_iter().chain([new]);
    states.all(|state| complaints_of_live(schema, state).is_empty())
}

/// Updates the managed fields as sets of fields.
fn update_sets(live: Option<&Value>, new: &mut Value, manager: &Manager<'_>) {
    let managed = entries_before(live, new, manager);
    remove_entries(new);
    let Some(mut managed) = managed else { return };
    if live.is_some() && managed.entries.is_empty() {
        return;
    }
    let empty = json!({});
    note(
        live.unwrap_or(&empty),
        new,
        &mut managed,
        manager.entry_name(),
        manager,
    );
    managed.encode(new);
}

/// Returns the entries to update: those that the client sent, or else those of the live object. `None` if the client
/// removes them.
fn entries_before(
    live: Option<&Value>,
    new: &Value,
    manager: &Manager<'_>,
) -> Option<ManagedFields> {
    if manager.subresource.is_empty() {
        let sent = new["metadata"]["managedFields"].as_array();
        // Go's decoder tells an empty list from none.
        let resets = match sent.map(Vec::as_slice) {
            Some([]) => manager.custom.is_none(),
            Some([only]) => is_empty_entry(only),
            _ => false,
        };
        if resets {
            // A new object has entries nevertheless.
            return live.is_none().then(ManagedFields::default);
        }
        let sent = ManagedFields::decode(new).unwrap_or_default();
        if !sent.entries.is_empty() {
            return Some(sent);
        }
    }
    let before = live.and_then(|live| ManagedFields::decode(live).ok());
    Some(before.unwrap_or_default())
}

/// Returns true if an entry has no member that says anything.
fn is_empty_entry(entry: &Value) -> bool {
    let says_nothing = |(name, value): (&String, &Value)| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() && name != "time",
        _ => false,
    };
    entry
        .as_object()
        .is_some_and(|it| it.iter().all(says_nothing))
}

/// Makes the manager `name` the owner of the fields that differ in `new`, and removes them from the others.
pub(super) fn note(
    old: &Value,
    new: &Value,
    managed: &mut ManagedFields,
    name: &str,
    manager: &Manager<'_>,
) {
    let schema = manager.schema(new);
    reconcile(schema, managed);
    let comparison = compare(schema, old, new).excluding(&manager.reset_fields(schema));
    managed.take(&comparison.removed);
    let mut changed = comparison.into_changed();
    managed.take(&changed);
    changed.subtract(&UNTRACKED_FIELDS);
    if !changed.is_empty() {
        let version = manager.api_version;
        let identity = Identity::new(name, EntryOperation::Update, version, manager.subresource);
        let entry = managed
            .entries
            .entry(identity)
            .or_insert_with(|| ManagerEntry {
                api_version: version.to_owned(),
                time: None,
                fields: FieldSet::default(),
            });
        entry.fields.unite(changed);
        entry.time = manager.time_text();
    }
    managed.cap();
}

/// Compares two objects without their entries, and with what their type always has.
///
/// Members that are the same in both are left out before anything is copied. That changes nothing: an object's members
/// are compared one by one or all as a whole, what its type always has is added to both alike, and lists are kept as
/// they are.
fn compare(schema: Schema<'_>, old: &Value, new: &Value) -> Comparison {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return Comparison::new(schema, &comparable(schema, old), &comparable(schema, new));
    };
    if let Some(comparison) = changed_values(schema, old, new) {
        return comparison;
    }
    let (mut old, mut new) = (differing(old, new), differing(new, old));
    schema.complete(&mut old);
    schema.complete(&mut new);
    Comparison::new(schema, &old, &new)
}

/// Returns a copy of the members of an object that are not the same in the other one. Of members that both have as
/// objects, the members that are the same are left out as well. Levels below are copied as they are, so that an
/// object's time is not looked at once for each of its levels.
fn differing(object: &Map<String, Value>, other: &Map<String, Value>) -> Value {
    let changed = object.iter().filter_map(|(name, member)| {
        let theirs = other.get(name);
        if theirs == Some(member) {
            return None;
        }
        let copied = match (member, theirs) {
            (Value::Object(members), Some(Value::Object(theirs))) => {
                let differs = |inner: &&String| {
                    let entries = name == "metadata" && *inner == "managedFields";
                    !entries && members.get(*inner) != theirs.get(*inner)
                };
                members
                    .keys()
                    .filter(differs)
                    .map(|inner| (inner.clone(), members[inner].clone()))
                    .collect()
            }
            _ => without_entries(name, member),
        };
        Some((name.clone(), copied))
    });
    changed.collect()
}

/// Returns the object as it is compared: without entries, and with what its type always has.
pub(super) fn comparable(schema: Schema<'_>, object: &Value) -> Value {
    let mut copied = match object.as_object() {
        Some(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), without_entries(name, member)))
            .collect(),
        None => object.clone(),
    };
    schema.complete(&mut copied);
    copied
}

/// Returns a copy of a member of an object, of `metadata` without the entries of managers. These may be half of an
/// object, so they are not copied first.
fn without_entries(name: &str, member: &Value) -> Value {
    match member.as_object().filter(|_| name == "metadata") {
        Some(metadata) => metadata
            .iter()
            .filter(|(name, _)| *name != "managedFields")
            .map(|(name, member)| (name.clone(), member.clone()))
            .collect(),
        None => member.clone(),
    }
}

/// Removes `metadata.managedFields`.
fn remove_entries(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Trees whose members often have the names and the forms for which there are rules.
    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            Just(json!(0)),
            Just(json!("")),
            Just(json!(false)),
            "[ab]".prop_map(Value::from),
        ];
        let names = prop::sample::select(vec![
            "metadata",
            "spec",
            "status",
            "data",
            "template",
            "labels",
            "managedFields",
            "containers",
            "name",
            "finalizers",
            "ownerReferences",
            "nodeSelector",
            "tolerations",
            "replicas",
            "a",
        ]);
        let inner = leaf.prop_recursive(5, 48, 5, move |inner| {
            prop_oneof![
                1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                4 => prop::collection::btree_map(names.clone(), inner, 0..5).prop_map(object),
            ]
        });
        prop::collection::btree_map(
            prop::sample::select(vec!["metadata", "spec", "status", "data", "rules"]),
            inner,
            0..5,
        )
        .prop_map(object)
    }

    fn object(members: std::collections::BTreeMap<&'static str, Value>) -> Value {
        members
            .into_iter()
            .map(|(name, member)| (name.to_owned(), member))
            .collect()
    }

    #[test]
    fn items_without_a_key_leave_no_managers() {
        let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": name}]});
        let level = |kind: &str| {
            json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
                "spec": {"matchingPrecedence": 5}, "status": {"conditions": [{"type": kind}]}})
        };
        for (object, is_tracked) in [
            (account("a"), true),
            (
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"kind": "a"}]}),
                false,
            ),
            (level("Dangling"), true),
            (
                json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
                    "spec": {"matchingPrecedence": 5}, "status": {"conditions": [{"status": "True"}]}}),
                false,
            ),
        ] {
            let mut new = object;
            let version = new["apiVersion"].as_str().expect("a version").to_owned();
            update(None, &mut new, &Manager::for_tests("a", &version, ""));
            let entries = &new["metadata"]["managedFields"];
            assert_eq!(entries.is_array(), is_tracked, "{new}");
        }
    }

    proptest! {
        /// Leaving members out before objects are copied makes no difference.
        #[test]
        fn objects_are_compared_as_if_they_were_copied_whole(
            old in tree(), other in tree(), taken in prop::collection::vec(any::<bool>(), 12),
            kind in prop::sample::select(vec![
                ("v1", "Pod"), ("v1", "ConfigMap"), ("apps/v1", "Deployment"), ("apps/v1", "ControllerRevision"),
                ("rbac.authorization.k8s.io/v1", "ClusterRole"), ("example.com/v1", "Widget"),
            ]),
        ) {
            let new = mixed(&old, &other, &mut taken.iter().copied().cycle());
            let schema = Schema::new(kind.0, kind.1, None);
            let revalued = revalued(&old, &mut taken.iter().copied().cycle());
            let pairs = [
                (&old, &new), (&new, &old), (&old, &other), (&old, &old), (&old, &revalued), (&revalued, &old),
            ];
            for (old, new) in pairs {
                let whole = Comparison::new(schema, &comparable(schema, old), &comparable(schema, new));
                prop_assert_eq!(compare(schema, old, new), whole, "{} {}", old, new);
            }
        }
    }

    proptest! {
        /// Renewing an entry does what the sets of fields say.
        #[test]
        fn entries_are_renewed_as_by_sets(
            old in tree(), other in tree(), taken in prop::collection::vec(any::<bool>(), 12),
            names in prop::collection::vec(prop::sample::select(vec!["one", "two", ""]), 3),
            subresource in prop::sample::select(vec!["", "", "status"]),
            kind in prop::sample::select(vec![("v1", "Pod"), ("v1", "ConfigMap"), ("example.com/v1", "Widget")]),
        ) {
            let manager = |name, second: i64, subresource| Manager {
                time: jiff::Timestamp::from_second(1_767_225_600 + second).ok(),
                ..Manager::for_tests(name, kind.0, subresource)
            };
            let typed = |mut object: Value| {
                object["kind"] = kind.1.into();
                object
            };
            let mut taken = taken.into_iter().cycle();
            let mut live = typed(old);
            update_sets(None, &mut live, &manager(names[0], 0, ""));
            let mut next = typed(mixed(&live, &other, &mut taken));
            update_sets(Some(&live), &mut next, &manager(names[1], 1, subresource));
            for (second, name) in (2..).zip(&names) {
                let new = typed(revalued(&next, &mut taken));
                let mut with_entries = |mut object: Value| {
                    let entries = &next["metadata"]["managedFields"];
                    let is_sent = !entries.is_null() && taken.next() == Some(true);
                    if is_sent && object["metadata"].is_object() {
                        object["metadata"]["managedFields"] = entries.clone();
                    }
                    object
                };
                let mut new = with_entries(new);
                let mut by_sets = new.clone();
                let manager = manager(name, second, subresource);
                update(Some(&next), &mut new, &manager);
                update_sets(Some(&next), &mut by_sets, &manager);
                prop_assert_eq!(&new, &by_sets);
                next = new;
            }
        }
    }

    #[test]
    fn a_renewal_changes_the_time_of_its_managers_entry_alone() {
        let mut live = config_map(json!({"a": "1"}));
        update(None, &mut live, &manager("one"));
        let mut other = live.clone();
        other["data"]["b"] = "1".into();
        update(Some(&live), &mut other, &manager("two"));
        let mut later = manager("one");
        later.time = "2027-01-01T00:00:00Z".parse().ok();
        let mut expected = entries(&other);
        expected[0]["time"] = "2027-01-01T00:00:00Z".into();
        expected.reverse();
        for sent in [other["metadata"]["managedFields"].clone(), Value::Null] {
            let mut new = other.clone();
            new["data"]["a"] = "2".into();
            new["metadata"]["managedFields"] = sent;
            assert!(renew(&other, &mut new, &later));
            assert_eq!(entries(&new), expected);
        }
        // Of another's field it is no renewal.
        let mut new = other.clone();
        new["data"]["b"] = "2".into();
        assert!(!renew(&other, &mut new, &later));
    }

    /// Returns an object with the members of one, of which some are replaced by those of another.
    fn mixed(one: &Value, other: &Value, taken: &mut impl Iterator<Item = bool>) -> Value {
        match (one, other) {
            (Value::Object(one), Value::Object(other)) => {
                let mut members = one.clone();
                for (name, theirs) in other {
                    let mine = one.get(name);
                    let mixed = mine.map(|mine| mixed(mine, theirs, taken));
                    if taken.next() == Some(true) {
                        members.insert(name.clone(), mixed.unwrap_or_else(|| theirs.clone()));
                    }
                }
                members.into()
            }
            _ if taken.next() == Some(true) => other.clone(),
            _ => one.clone(),
        }
    }

    /// Returns an object with the members of another, of which some have other values.
    fn revalued(one: &Value, taken: &mut impl Iterator<Item = bool>) -> Value {
        match one {
            Value::Object(members) => {
                let members = members.iter();
                members
                    .map(|(name, member)| (name.clone(), revalued(member, taken)))
                    .collect()
            }
            Value::Array(items) => items.iter().map(|item| revalued(item, taken)).collect(),
            _ if taken.next() == Some(true) => json!("other"),
            _ => one.clone(),
        }
    }

    fn manager(name: &'static str) -> Manager<'static> {
        Manager::for_tests(name, "v1", "")
    }

    fn entries(object: &Value) -> Vec<Value> {
        let list = object
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    }

    fn config_map(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "c", "namespace": "n", "uid": "u", "labels": {"app": "x"}}})
    }

    #[test]
    fn a_creator_manages_all_but_what_the_server_sets() {
        let mut new = config_map(json!({"k": "v"}));
        update(None, &mut new, &manager("golden"));
        let expected = json!({"manager": "golden", "operation": "Update", "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {
                "f:data": {".": {}, "f:k": {}}, "f:metadata": {"f:labels": {".": {}, "f:app": {}}}}});
        assert_eq!(entries(&new), [expected]);
    }

    #[test]
    fn an_object_with_nothing_to_manage_has_no_entries() {
        let mut new =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
        let before = new.clone();
        update(None, &mut new, &manager("golden"));
        assert_eq!(new, before);
        let mut labelled = new.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        update(Some(&new), &mut labelled, &manager("golden"));
        assert_eq!(entries(&labelled), [] as [Value; 0]);
    }

    #[test]
    fn structs_that_are_always_there_are_nobodys() {
        let mut new = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "d"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
                "template": {"metadata": {"labels": {"app": "d"}}, "spec": {
                    "containers": [{"name": "c", "resources": {}}], "securityContext": {}}}},
            "status": {"replicas": 2}});
        let mut manager = Manager::for_tests("golden", "apps/v1", "");
        manager.has_status_subresource = true;
        update(None, &mut new, &manager);
        let expected = json!({"f:spec": {
            "f:replicas": {}, "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
            "f:template": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {
                "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:resources": {}}},
                "f:securityContext": {}}}}});
        assert_eq!(entries(&new)[0]["fieldsV1"], expected);
    }

    #[test]
    fn of_custom_resources_even_the_spec_is_somebodys() {
        let mut new = json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w"}, "spec": {"color": "red"}});
        update(
            None,
            &mut new,
            &Manager::for_tests("golden", "example.com/v1", ""),
        );
        let expected = json!({"f:spec": {".": {}, "f:color": {}}});
        assert_eq!(entries(&new)[0]["fieldsV1"], expected);
    }

    #[test]
    fn the_writer_takes_what_it_changes_and_all_lose_what_goes() {
        let mut live = config_map(json!({"a": "1", "b": "1", "c": "1"}));
        update(None, &mut live, &manager("one"));
        let mut new = live.clone();
        new["data"] = json!({"a": "2", "c": "1", "d": "1"});
        let mut other = manager("two");
        other.time = "2026-01-01T00:00:05Z".parse().ok();
        update(Some(&live), &mut new, &other);
        let list = entries(&new);
        assert_eq!(list[0]["fieldsV1"]["f:data"], json!({".": {}, "f:c": {}}));
        assert_eq!(list[0]["time"], "2026-01-01T00:00:00Z");
        assert_eq!(
            list[1]["fieldsV1"],
            json!({"f:data": {"f:a": {}, "f:d": {}}})
        );
        assert_eq!(list[1]["time"], "2026-01-01T00:00:05Z");
    }

    #[test]
    fn a_write_without_change_leaves_the_entries() {
        let mut live = config_map(json!({"a": "1"}));
        update(None, &mut live, &manager("one"));
        let mut later = manager("one");
        later.time = "2027-01-01T00:00:00Z".parse().ok();
        for sent in [live.clone(), config_map(json!({"a": "1"}))] {
            let mut new = sent;
            update(Some(&live), &mut new, &later);
            assert_eq!(new, live);
        }
    }

    #[test]
    fn an_item_that_is_repeated_is_another_one_without_parts() {
        let node = |addresses: &[&str]| {
            let addresses = addresses
                .iter()
                .map(|it| json!({"type": "IP", "address": it}));
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                "status": {"addresses": addresses.collect::<Vec<_>>()}})
        };
        let of = |entry: &Value| {
            let addresses = entry.pointer("/fieldsV1/f:status/f:addresses");
            let addresses = addresses
                .and_then(Value::as_object)
                .cloned()
                .expect("owned");
            (entry["manager"].clone(), Value::from(addresses))
        };
        let owned = |object: &Value| entries(object).iter().map(of).collect::<Vec<_>>();
        let mut live = node(&["1"]);
        update(None, &mut live, &manager("one"));
        let mut repeated = node(&["1", "2"]);
        update(Some(&live), &mut repeated, &manager("two"));
        let item = "k:{\"type\":\"IP\"}";
        let list = ("one".into(), json!({}));
        assert_eq!(
            owned(&repeated),
            [list.clone(), ("two".into(), json!({item: {}}))]
        );
        let mut single = node(&["2"]);
        update(Some(&repeated), &mut single, &manager("three"));
        let parts = json!({item: {".": {}, "f:address": {}, "f:type": {}}});
        assert_eq!(owned(&single), [list, ("three".into(), parts)]);
    }

    #[test]
    fn an_empty_list_and_one_empty_entry_take_all_away() {
        let mut live = config_map(json!({"a": "1"}));
        update(None, &mut live, &manager("one"));
        for sent in [
            json!([]),
            json!([{}]),
            json!([{"operation": "", "manager": null}]),
        ] {
            let mut new = live.clone();
            new["metadata"]["managedFields"] = sent;
            let mut created = new.clone();
            update(Some(&live), &mut new, &manager("one"));
            assert_eq!(entries(&new), [] as [Value; 0]);
            update(None, &mut created, &manager("one"));
            assert_eq!(entries(&created), entries(&live));
        }
        let mut through_status = live.clone();
        through_status["metadata"]["managedFields"] = json!([{}]);
        let status = Manager::for_tests("one", "v1", "status");
        update(Some(&live), &mut through_status, &status);
        assert_eq!(entries(&through_status), entries(&live));
    }

    #[test]
    fn what_a_write_cannot_change_it_does_not_manage() {
        let claim = |label: &str, phase: &str| {
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                "metadata": {"name": "c", "labels": {"l": label}}, "status": {"phase": phase}})
        };
        let request = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": "r", "labels": {"l": "m"}}, "spec": {"signerName": "s"}});
        let mut created = request.clone();
        let mut creator = Manager::for_tests("one", "certificates.k8s.io/v1", "");
        update(None, &mut created, &creator);
        let labels = json!({"f:metadata": {"f:labels": {".": {}, "f:l": {}}}});
        assert_eq!(entries(&created)[0]["fieldsV1"], labels);

        creator.api_version = "resource.k8s.io/v1";
        creator.has_status_subresource = true;
        let mut live = claim("a", "");
        update(None, &mut live, &creator);
        let mut new = claim("b", "x");
        let mut status = Manager::for_tests("two", "resource.k8s.io/v1", "status");
        status.has_status_subresource = true;
        update(Some(&live), &mut new, &status);
        let list = entries(&new);
        assert_eq!(list[0]["fieldsV1"], labels);
        assert_eq!(list[1]["fieldsV1"], json!({"f:status": {"f:phase": {}}}));
    }

    #[test]
    fn all_that_is_written_through_subresources_of_pods_is_managed() {
        let mut live = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        update(None, &mut live, &manager("one"));
        for subresource in ["resize", "ephemeralcontainers"] {
            let mut new = live.clone();
            new["metadata"]["labels"] = json!({"a": "b"});
            let writer = Manager::for_tests("two", "v1", subresource);
            update(Some(&live), &mut new, &writer);
            let managed = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}});
            assert_eq!(entries(&new)[1]["fieldsV1"], managed, "{subresource}");
        }
    }

    #[test]
    fn who_finalizes_a_namespace_manages_nothing_of_its_status() {
        let mut live = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        let mut creator = manager("one");
        creator.has_status_subresource = true;
        update(None, &mut live, &creator);
        let mut new = live.clone();
        new["spec"]["finalizers"] = json!(["kubernetes", "other"]);
        new["status"]["phase"] = json!("Terminating");
        let mut writer = Manager::for_tests("two", "v1", "finalize");
        writer.has_status_subresource = true;
        update(Some(&live), &mut new, &writer);
        let mut list = entries(&new).into_iter();
        let managed = list.find(|it| it["subresource"] == "finalize");
        let managed = managed.expect("an entry");
        assert_eq!(managed["fieldsV1"], json!({"f:spec": {"f:finalizers": {}}}));
    }

    #[test]
    fn a_list_that_is_always_written_is_managed_when_it_goes() {
        let role = |rules: Value| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                "metadata": {"name": "r"}, "rules": rules})
        };
        let rules = Manager::for_tests("one", "rbac.authorization.k8s.io/v1", "");
        let mut live = role(json!([{"verbs": ["get"]}]));
        update(None, &mut live, &rules);
        let mut new = role(Value::Null);
        update(Some(&live), &mut new, &rules);
        assert_eq!(entries(&new)[0]["fieldsV1"], json!({"f:rules": {}}));
    }

    #[test]
    fn a_subresource_has_an_entry_of_its_own() {
        let mut live = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"nodeName": "n"}});
        let mut pod = manager("golden");
        pod.has_status_subresource = true;
        update(None, &mut live, &pod);
        let mut new = live.clone();
        new["spec"]["nodeName"] = "other".into();
        new["status"] = json!({"phase": "Running", "podIPs": [{"ip": "10.1.1.1"}]});
        pod.subresource = "status";
        update(Some(&live), &mut new, &pod);
        let list = entries(&new);
        assert_eq!(list[0], entries(&live)[0]);
        assert_eq!(list[1]["subresource"], "status");
        let expected = json!({"f:status": {"f:phase": {},
            "f:podIPs": {".": {}, "k:{\"ip\":\"10.1.1.1\"}": {".": {}, "f:ip": {}}}}});
        assert_eq!(list[1]["fieldsV1"], expected);
    }
}
