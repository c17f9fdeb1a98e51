//! The walk against objects that Kubernetes wrote, and against what was done to them.

use std::fs;
use std::sync::LazyLock;

use proptest::prelude::*;
use ringwatch_testing::{made, recorded};
use serde_json::json;

use super::*;
use crate::codec::{encode, kind};

/// Kubernetes' own objects where they are at hand, and the made ones, with their kinds.
static OBJECTS: LazyLock<Vec<(Kind, Value)>> = LazyLock::new(objects);

fn objects() -> Vec<(Kind, Value)> {
    let folder = recorded::testdata("Kubernetes' objects in the type check");
    let entries = folder
        .into_iter()
        .flat_map(|it| fs::read_dir(it).expect("a folder"));
    let paths = entries.map(|it| it.expect("a file").path());
    let json = paths.filter(|path| path.extension().is_some_and(|it| it == "json"));
    let recorded = json
        .map(|path| serde_json::from_slice::<Value>(&fs::read(path).expect("JSON")).expect("JSON"));
    let all = recorded.chain(made::objects());
    all.filter_map(|value| {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        Some((kind(text("apiVersion")?, text("kind")?)?, value))
    })
    .collect()
}

fn check(version: &str, name: &str, mut value: Value) -> Result<(Value, Vec<String>), String> {
    let kind = kind(version, name).expect("a kind");
    let unknown = check_types(kind, value.as_object_mut().expect("an object"));
    unknown
        .map(|paths| (value, paths))
        .map_err(|it| it.to_string())
}

fn deployment(spec: Value) -> Result<(Value, Vec<String>), String> {
    check("apps/v1", "Deployment", json!({"spec": spec}))
}

#[test]
fn what_kubernetes_wrote_is_fine() {
    let objects = &*OBJECTS;
    for (kind, object) in objects {
        let mut checked = object.clone();
        let unknown = check_types(*kind, checked.as_object_mut().expect("an object"));
        assert_eq!(unknown, Ok(Vec::new()), "{}", object["kind"]);
        assert_eq!(checked, *object);
    }
}

#[test]
fn what_go_reads_apart_is_told_of_the_struct_around() {
    let version = |schema: Value| json!([{"name": "v1", "schema": {"openAPIV3Schema": schema}}]);
    let rules = |rules: Value| json!({"x-kubernetes-validations": rules});
    let at = "spec.versions.schema.openAPIV3Schema";
    for (spec, words) in [
        (
            json!({"scope": 5}),
            "CustomResourceDefinitionSpec.spec.scope of type v1.ResourceScope".to_owned(),
        ),
        (
            json!({"conversion": {"strategy": 5}}),
            "CustomResourceConversion.spec.conversion.strategy of type v1.ConversionStrategyType"
                .to_owned(),
        ),
        (
            json!({"versions": version(rules(json!([{"rule": 5}])))}),
            format!("ValidationRule.{at}.x-kubernetes-validations.rule of type string"),
        ),
        (
            json!({"versions": version(json!({"items": rules(json!([{"reason": 5}]))}))}),
            format!(
                "JSONSchemaProps.{at}.items.x-kubernetes-validations.reason of type v1.FieldValueErrorReason"
            ),
        ),
        (
            json!({"versions": version(json!({"properties": {"a": {"additionalProperties": rules(json!(5))}}}))}),
            format!(
                "JSONSchemaProps.{at}.properties.additionalProperties.x-kubernetes-validations of type v1.ValidationRules"
            ),
        ),
    ] {
        let object = json!({"spec": spec});
        let found = check(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            object,
        );
        let words = format!("json: cannot unmarshal number into Go struct field {words}");
        assert_eq!(found, Err(words));
    }
}

#[test]
fn types_have_the_names_of_their_group_and_version() {
    let subject = |members: Value| json!({"spec": {"rules": [{"subjects": [members]}]}});
    for (version, name, object, words) in [
        (
            "flowcontrol.apiserver.k8s.io/v1beta3",
            "FlowSchema",
            subject(json!({"kind": 5})),
            "Subject.spec.rules.subjects.kind of type v1beta3.SubjectKind",
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            json!({"subjects": [{"kind": 5}]}),
            "Subject.subjects.kind of type string",
        ),
        (
            "admission.k8s.io/v1beta1",
            "AdmissionReview",
            json!({"response": {"patchType": 5}}),
            "AdmissionResponse.response.patchType of type v1beta1.PatchType",
        ),
        (
            "coordination.k8s.io/v1beta1",
            "Lease",
            json!({"spec": {"strategy": 5}}),
            "LeaseSpec.spec.strategy of type v1.CoordinatedLeaseStrategy",
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({"status": {"allocatedResourceStatuses": 5}}),
            "PersistentVolumeClaimStatus.status.allocatedResourceStatuses of type \
             map[v1.ResourceName]v1.ClaimResourceStatus",
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({"status": {"allocatedResourceStatuses": {"a": 5}}}),
            "PersistentVolumeClaimStatus.status.allocatedResourceStatuses of type v1.ClaimResourceStatus",
        ),
    ] {
        let words = format!("json: cannot unmarshal number into Go struct field {words}");
        assert_eq!(check(version, name, object), Err(words));
    }
}

#[test]
fn wrong_types_are_told_in_gos_words() {
    let container = |member: Value| json!({"template": {"spec": {"containers": [member]}}});
    for (spec, words) in [
        (
            json!({"replicas": "x"}),
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"replicas": 99_999_999_999_i64}),
            "number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"replicas": 1.5}),
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"paused": "no"}),
            "string into Go struct field DeploymentSpec.spec.paused of type bool",
        ),
        (
            container(json!({"env": [{"name": "a", "value": 1}]})),
            "number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string",
        ),
        (
            container(json!("x")),
            "string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container",
        ),
        (
            json!({"template": {"spec": {"containers": {}}}}),
            "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            json!({"selector": {"matchLabels": ["a"]}}),
            "array into Go struct field LabelSelector.spec.selector.matchLabels of type map[string]string",
        ),
        (
            json!({"template": {"spec": {"volumes": [{"name": "a", "emptyDir": 1}]}}}),
            "number into Go struct field Volume.spec.template.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        ),
        (
            json!({"strategy": {"rollingUpdate": {"maxSurge": true}}}),
            "bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
    ] {
        let error = deployment(spec).expect_err(words);
        assert_eq!(error, format!("json: cannot unmarshal {words}"));
    }
    let error = deployment(container(json!({"resources": {"limits": {"cpu": "x"}}})));
    assert!(
        error
            .expect_err("no quantity")
            .starts_with("quantities must match")
    );
    let error = check("v1", "ConfigMap", json!({"binaryData": {"a": "!!"}}));
    assert_eq!(
        error.expect_err("no base64"),
        "illegal base64 data at input byte 0"
    );
    let error = check("v1", "Pod", json!({"metadata": {"creationTimestamp": 1}}));
    assert_eq!(
        error.expect_err("no time"),
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string"
    );
}

#[test]
fn unknown_fields_are_dropped_and_told_with_their_paths() {
    let (value, unknown) = deployment(json!({
        "fooo": 1,
        "replicas": 2,
        "template": {
            "metadata": {"labels": {"any": "thing"}, "kind": "x"},
            "spec": {"containers": [{"imagee": "x", "livenessProbe": {"httpGet": {"port": 1}}}]},
        },
    }))
    .expect("right types");
    let dropped = [
        "spec.fooo",
        "spec.template.metadata.kind",
        "spec.template.spec.containers[0].imagee",
    ];
    assert_eq!(unknown, dropped);
    let template = json!({
        "metadata": {"labels": {"any": "thing"}},
        "spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 1}}}]},
    });
    assert_eq!(value["spec"], json!({"replicas": 2, "template": template}));
}

#[test]
fn nulls_and_what_has_no_type_are_let_be() {
    let object = json!({
        "kind": "StatefulSet",
        "apiVersion": "apps/v1",
        "metadata": {"finalizers": null, "managedFields": [{"fieldsV1": {"f:x": {".": {}}}}]},
        "spec": {
            "replicas": null,
            "template": null,
            "volumeClaimTemplates": [{"kind": "PersistentVolumeClaim", "apiVersion": "v1"}],
        },
    });
    let (value, unknown) = check("apps/v1", "StatefulSet", object.clone()).expect("right types");
    assert_eq!((value, unknown), (object, Vec::new()));
}

#[test]
fn null_among_others_is_the_zero_value_of_its_type() {
    let read = |version, kind, object| check(version, kind, object).expect("right types").0;
    let map = json!({"data": {"a": null}, "binaryData": {"b": null}});
    let filled = json!({"data": {"a": ""}, "binaryData": {"b": ""}});
    assert_eq!(read("v1", "ConfigMap", map), filled);
    let limits = json!({"spec": {"limits": [{"max": {"cpu": null}}, null]}});
    let filled = json!({"spec": {"limits": [{"max": {"cpu": "0"}}, {}]}});
    assert_eq!(read("v1", "LimitRange", limits), filled);
    let names = json!({"metadata": {"finalizers": [null], "labels": {"a": null}}});
    let filled = json!({"metadata": {"finalizers": [""], "labels": {"a": ""}}});
    assert_eq!(read("v1", "Pod", names), filled);
}

#[test]
fn types_with_names_of_their_own_are_told() {
    for (version, kind, object, words) in [
        (
            "scheduling.k8s.io/v1",
            "PriorityClass",
            json!({"preemptionPolicy": 5}),
            "number into Go struct field PriorityClass.preemptionPolicy of type v1.PreemptionPolicy",
        ),
        (
            "resource.k8s.io/v1",
            "ResourceSlice",
            json!({"spec": {"devices": [{"attributes": []}]}}),
            "array into Go struct field Device.spec.devices.attributes of type map[v1.QualifiedName]v1.DeviceAttribute",
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({"status": {"allocatedResourceStatuses": {"storage": 5}}}),
            "number into Go struct field PersistentVolumeClaimStatus.status.allocatedResourceStatuses of type v1.ClaimResourceStatus",
        ),
        (
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicy",
            json!({"spec": {"matchConstraints": {"resourceRules": [{"operations": [{}]}]}}}),
            "object into Go struct field NamedRuleWithOperations.spec.matchConstraints.resourceRules.RuleWithOperations.operations of type v1.OperationType",
        ),
    ] {
        let error = check(version, kind, object).expect_err(words);
        assert_eq!(error, format!("json: cannot unmarshal {words}"));
    }
}

#[test]
fn base64_is_refused_at_the_place_that_go_names() {
    for (text, at) in [
        ("!!", 0),
        ("Aw==x", 4),
        ("AAE=_!", 4),
        ("AAEC_!", 4),
        ("AAEC=", 4),
    ] {
        let error = check("v1", "ConfigMap", json!({"binaryData": {"a": text}}));
        let error = error.expect_err("no base64");
        assert_eq!(
            error,
            format!("illegal base64 data at input byte {at}"),
            "{text}"
        );
    }
}

#[test]
fn schemas_are_looked_into() {
    let schema = |schema: Value| {
        let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
        let object = json!({"spec": {"versions": [version]}});
        check(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            object,
        )
    };
    let fine = json!({
        "default": {"any": "thing"},
        "items": {"type": "string", "bogus": 1},
        "additionalProperties": false,
        "properties": {"a": {"bogus": 1}},
    });
    let (value, unknown) = schema(fine).expect("right types");
    let path = "spec.versions[0].schema.openAPIV3Schema.properties.a.bogus";
    assert_eq!(unknown, [path]);
    let items = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["items"];
    assert_eq!(*items, json!({"type": "string"}));
    for wrong in [
        json!({"additionalProperties": 1}),
        json!({"items": {"type": 1}}),
        json!({"maxLength": "1"}),
        json!({"maxLength": 1.0}),
    ] {
        assert!(schema(wrong.clone()).is_err(), "{wrong}");
    }
    for scalar in [json!(5), json!("x"), json!(true)] {
        let odd = json!({"items": scalar, "dependencies": {"a": scalar}});
        let (value, unknown) = schema(odd).expect("empty values of Go's types");
        assert_eq!(unknown, [""; 0]);
        let read = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!(*read, json!({"items": null, "dependencies": {"a": null}}));
    }
}

#[test]
fn whole_numbers_have_no_point_unless_they_were_merged() {
    let kind = kind("apps/v1", "Deployment").expect("a kind");
    let read = |number: Value| {
        let Value::Object(object) = json!({"spec": {"replicas": number}}) else {
            unreachable!("it is an object")
        };
        object
    };
    for (number, shown) in [
        (json!(2.0), "2.0"),
        (json!(2.5), "2.5"),
        (json!(1e30), "1e+30"),
    ] {
        let error = check_types(kind, &mut read(number)).expect_err("no integer");
        let why = "into Go struct field DeploymentSpec.spec.replicas of type int32";
        assert_eq!(
            error.to_string(),
            format!("json: cannot unmarshal number {shown} {why}")
        );
    }
    let mut merged = read(json!(2.0));
    assert_eq!(check_merged_types(kind, &mut merged), Ok(Vec::new()));
    assert_eq!(merged["spec"]["replicas"], json!(2));
    assert!(check_merged_types(kind, &mut read(json!(2.5))).is_err());
}

/// The places of all values below one.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, it)| places(it, &format!("{at}/{index}"), found));
        }
        Value::Object(members) => {
            let members = members.iter();
            members.for_each(|(name, it)| places(it, &format!("{at}/{}", escaped(name)), found));
        }
        _ => {}
    }
}

/// Returns true if a value is the expected one: absent and empty are the same.
fn is_kept(value: &Value, found: &Value) -> bool {
    value == found
        || value.as_f64().is_some_and(|it| found.as_f64() == Some(it))
        || value.as_str().and_then(crate::codec::time::parse).is_some()
        || value.is_number() && *found == Value::String(value.to_string())
        || matches!(found, Value::Null) && is_empty(value)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Number(it) => it.as_f64() == Some(0.0),
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.values().all(is_empty),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_value_of_another_type_is_refused_or_kept(
        object: prop::sample::Index,
        place: prop::sample::Index,
        new in prop::sample::select(vec![
            json!(true), json!(7), json!(-99_999_999_999_i64), json!(1.5), json!("!!"),
        ]),
    ) {
        let (kind, mut value) = object.get(&OBJECTS).clone();
        let mut found = Vec::new();
        places(&value, "", &mut found);
        found.retain(|it| !it.is_empty() && !TYPE_META.contains(&&it[1..]));
        let at = place.get(&found).clone();
        *value.pointer_mut(&at).expect("a place") = new.clone();
        if check_types(kind, value.as_object_mut().expect("an object")).is_ok() {
            let written = encode(kind, &value);
            let read = crate::codec::decode(&written, ("", "")).expect("an object");
            let kept = read.pointer(&at).unwrap_or(&Value::Null);
            // What is neither a schema nor a list of them is an empty one to Go.
            let is_schema = at.contains("openAPIV3Schema") && (at.ends_with("/items") || at.contains("/dependencies/"));
            let is_none = is_schema && kept.is_null();
            prop_assert!(is_none || is_kept(&new, kept), "{at}: {new} became {kept}");
        }
    }
}
