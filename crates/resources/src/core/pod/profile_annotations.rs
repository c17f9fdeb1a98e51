//! AppArmor and seccomp profiles in annotations, where they were before there were fields.

use std::collections::HashSet;

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{get, get_mut, set, text};
use ringwatch_registry::RequestContext;
use serde_json::{Value, json};

use crate::validation::field::{Errors, Field};
use crate::validation::values::below;

/// Prefix of annotations with a container's name and its AppArmor profile.
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The annotation with the seccomp profile of a pod.
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// Prefix of annotations with a container's name and its seccomp profile.
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// The names of profiles in annotations, and the prefix of those that are files of the node.
const DEFAULT: &str = "runtime/default";
const DOCKER_DEFAULT: &str = "docker/default";
const UNCONFINED: &str = "unconfined";
const LOCALHOST: &str = "localhost/";
const SECCOMP_PROFILES: [&str; 3] = [DEFAULT, DOCKER_DEFAULT, UNCONFINED];

const CONTAINERS: [&str; 3] = [
    "spec.initContainers",
    "spec.containers",
    "spec.ephemeralContainers",
];
const PROFILE: &str = "securityContext.appArmorProfile";
const SECCOMP: &str = "securityContext.seccompProfile";
/// Maximum length of the name of a profile, in bytes.
const NAME_BYTES_MAX: usize = 4_095;

/// Copies the profiles of annotations into the fields of the containers that have none, with a warning for each.
/// Follows `applyAppArmorVersionSkew`.
pub(super) fn copy_app_armor(context: &RequestContext, pod: &mut Value) {
    if text(pod, "spec.os.name") == "windows" {
        return;
    }
    let annotations = get(pod, "metadata.annotations")
        .cloned()
        .unwrap_or_default();
    let of_pod = get(pod, &format!("spec.{PROFILE}")).cloned();
    for containers in CONTAINERS {
        let containers = get_mut(pod, containers).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let key = format!("{APP_ARMOR}{}", text(container, "name"));
            let Some(annotation) = annotations.get(&key).and_then(Value::as_str) else {
                continue;
            };
            if get(container, PROFILE).is_some() {
                continue;
            }
            match profile(annotation) {
                // The pod says it for all its containers.
                Some(profile) if Some(&profile) == of_pod.as_ref() => continue,
                Some(profile) => set(container, PROFILE, profile),
                None => {}
            }
            context.warn(deprecated("metadata.annotations", &key));
        }
    }
}

/// Adds a warning about the AppArmor annotation of a container of a pod template, which is not copied.
pub(super) fn warn_of_app_armor(
    template: &Field<'_, '_>,
    container: &Field<'_, '_>,
    warnings: &mut Vec<String>,
) {
    if container.at(PROFILE).is_set() {
        return;
    }
    let annotations = template.at("metadata.annotations");
    let of_pod = get(template.value(), &format!("spec.{PROFILE}"));
    let key = format!("{APP_ARMOR}{}", container.at("name").text());
    let annotation = annotations.value().get(&key).and_then(Value::as_str);
    if annotation.is_some_and(|it| of_pod.is_none() || profile(it).as_ref() != of_pod) {
        warnings.push(deprecated(&annotations.field(), &key));
    }
}

/// Adds a warning about the seccomp annotation of a pod or template that has no field instead.
pub(super) fn warn_of_pod_seccomp(pod: &Field<'_, '_>, warnings: &mut Vec<String>) {
    if !pod.at("spec").at(SECCOMP).is_set() {
        without_function(pod, SECCOMP_OF_POD, warnings);
    }
}

/// Adds a warning about the seccomp annotation of a container, which may be in a template, that has no field instead.
pub(super) fn warn_of_seccomp(
    pod: &Field<'_, '_>,
    container: &Field<'_, '_>,
    warnings: &mut Vec<String>,
) {
    if !container.at(SECCOMP).is_set() {
        let name = container.at("name").text();
        without_function(pod, &format!("{SECCOMP_OF_CONTAINER}{name}"), warnings);
    }
}

fn without_function(pod: &Field<'_, '_>, key: &str, warnings: &mut Vec<String>) {
    let annotations = pod.at("metadata.annotations");
    if annotations.value().get(key).is_some() {
        let field = annotations.field();
        warnings.push(format!(
            "{field}[{key}]: non-functional in v1.27+; use the \"seccompProfile\" field instead"
        ));
    }
}

/// Checks the profiles in the annotations of a pod or template, which errors name by `path`. Follows
/// `ValidateSeccompPodAnnotations` and `ValidateAppArmorPodAnnotations`.
pub(super) fn check(pod: &Field<'_, '_>, path: &str, errors: &mut Errors) {
    let invalid = |field: String, value: &str, why: String| {
        FieldError::invalid(field, &Value::from(value), why)
    };
    let names: HashSet<&str> = containers(pod).map(|it| it.at("name").text()).collect();
    let annotations = || pod.members("metadata.annotations");
    let of_pod = annotations().filter(|(key, _)| *key == SECCOMP_OF_POD);
    let of_containers = annotations().filter(|(key, _)| key.starts_with(SECCOMP_OF_CONTAINER));
    for (key, profile) in of_pod.chain(of_containers) {
        let profile = profile.text();
        let (value, wrong) = match profile.strip_prefix(LOCALHOST) {
            Some(path) => (path, below(path)),
            None if SECCOMP_PROFILES.contains(&profile) => continue,
            None => (profile, vec!["must be a valid seccomp profile".to_owned()]),
        };
        let field = format!("{path}.{key}");
        let wrong = wrong.into_iter();
        errors.extend(wrong.map(|why| invalid(field.clone(), value, why)));
    }
    for (key, profile) in annotations() {
        let (Some(name), profile) = (key.strip_prefix(APP_ARMOR), profile.text()) else {
            continue;
        };
        let field = format!("{path}[{key}]");
        if !names.contains(name) {
            let why = "container not found".to_owned();
            errors.push(invalid(field.clone(), name, why));
        }
        let is_known = matches!(profile, "" | DEFAULT | UNCONFINED);
        if !is_known && !profile.starts_with(LOCALHOST) {
            let why = format!("invalid AppArmor profile name: {profile:?}");
            errors.push(invalid(field, profile, why));
        }
    }
}

/// Checks that the seccomp profiles in annotations of a pod or template are those in fields. Follows
/// `validateSeccompAnnotationsAndFields`.
pub(super) fn check_seccomp_fields(pod: &Field<'_, '_>, errors: &mut Errors) {
    let annotations = pod.at("metadata.annotations");
    let annotation = |key: &str| annotations.value().get(key).and_then(Value::as_str);
    if let Some(annotation) = annotation(SECCOMP_OF_POD) {
        let spec = pod.at("spec");
        contradiction(
            annotation,
            &spec.at(SECCOMP),
            &spec.at(SECCOMP),
            "seccomp",
            errors,
        );
    }
    for container in containers(pod) {
        let key = format!("{SECCOMP_OF_CONTAINER}{}", container.at("name").text());
        if let Some(annotation) = annotation(&key) {
            let field = container.at(SECCOMP);
            contradiction(annotation, &field, &field, "seccomp", errors);
        }
    }
}

/// Checks that the AppArmor profiles in annotations of a new pod are those in fields. Follows
/// `validateAppArmorAnnotationsAndFieldsMatchOnCreate`.
pub(super) fn check_app_armor_fields(pod: &Field<'_, '_>, errors: &mut Errors) {
    let spec = pod.at("spec");
    if spec.at("os.name").text() == "windows" {
        return;
    }
    let annotations = pod.at("metadata.annotations");
    for container in containers(pod) {
        let key = format!("{APP_ARMOR}{}", container.at("name").text());
        let Some(annotation) = annotations.value().get(&key).and_then(Value::as_str) else {
            continue;
        };
        let (own, of_pod) = (container.at(PROFILE), spec.at(PROFILE));
        let counts = if own.is_set() { &own } else { &of_pod };
        contradiction(annotation, counts, &own, "apparmor", errors);
    }
}

/// Adds an error, which names a field, if an annotation and a profile that is set differ.
fn contradiction(
    annotation: &str,
    profile: &Field<'_, '_>,
    blamed: &Field<'_, '_>,
    what: &str,
    errors: &mut Errors,
) {
    let wrong = match profile.at("type").text() {
        "Unconfined" => (annotation != UNCONFINED).then_some("type"),
        "RuntimeDefault" => {
            let is_default =
                annotation == DEFAULT || what == "seccomp" && annotation == DOCKER_DEFAULT;
            (!is_default).then_some("type")
        }
        "Localhost" => match annotation.strip_prefix(LOCALHOST) {
            None => Some("type"),
            Some(name) => {
                let named = profile.at("localhostProfile");
                (!named.is_set() || named.text() != name).then_some("localhostProfile")
            }
        },
        _ => None,
    };
    if let Some(member) = wrong {
        let said = if member == "type" { "type" } else { "profile" };
        let why = format!("{what} {said} in annotation and field must match");
        errors.push(blamed.at(member).forbidden(why));
    }
}

fn containers<'v, 's>(pod: &'s Field<'v, '_>) -> impl Iterator<Item = Field<'v, 's>> {
    CONTAINERS.iter().flat_map(|list| pod.items(list))
}

fn deprecated(at: &str, key: &str) -> String {
    format!("{at}[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead")
}

/// Returns the profile that an annotation means; `None` if it is none that a field may have.
fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        UNCONFINED => Some(json!({"type": "Unconfined"})),
        DEFAULT => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let name = annotation.strip_prefix(LOCALHOST)?;
            let fits = !name.is_empty() && name.trim() == name && name.len() <= NAME_BYTES_MAX;
            fits.then(|| json!({"type": "Localhost", "localhostProfile": name}))
        }
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;

    use super::*;

    fn pod(annotation: &str, of_pod: Value, os: &str) -> Value {
        json!({"metadata": {"annotations": {format!("{APP_ARMOR}c"): annotation}},
            "spec": {"os": {"name": os}, "securityContext": {"appArmorProfile": of_pod},
                "containers": [{"name": "c"}, {"name": "d"}]}})
    }

    fn copied(mut pod: Value) -> (Value, usize) {
        if pod["spec"]["securityContext"]["appArmorProfile"].is_null() {
            pod["spec"]["securityContext"] = json!({});
        }
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        copy_app_armor(&context, &mut pod);
        assert!(get(&pod["spec"]["containers"][1], PROFILE).is_none());
        let profile = get(&pod["spec"]["containers"][0], PROFILE).cloned();
        (profile.unwrap_or_default(), context.warnings().len())
    }

    #[test]
    fn annotations_become_fields_with_a_warning() {
        let local = json!({"type": "Localhost", "localhostProfile": "p"});
        for (annotation, of_pod, os, profile, warnings) in [
            (
                "unconfined",
                Value::Null,
                "linux",
                json!({"type": "Unconfined"}),
                1,
            ),
            (
                "runtime/default",
                Value::Null,
                "linux",
                json!({"type": "RuntimeDefault"}),
                1,
            ),
            ("localhost/p", Value::Null, "", local.clone(), 1),
            ("localhost/p", local.clone(), "", Value::Null, 0),
            ("unconfined", local, "", json!({"type": "Unconfined"}), 1),
            ("localhost/", Value::Null, "", Value::Null, 1),
            ("localhost/ p", Value::Null, "", Value::Null, 1),
            ("odd", Value::Null, "", Value::Null, 1),
            ("unconfined", Value::Null, "windows", Value::Null, 0),
        ] {
            let found = copied(pod(annotation, of_pod, os));
            assert_eq!(found, (profile, warnings), "{annotation}");
        }
    }

    #[test]
    fn templates_keep_their_annotations_with_a_warning() {
        let warned = |of_pod: &str| {
            let template = pod("unconfined", json!({"type": of_pod}), "");
            let object = json!({"spec": {"template": template}});
            let mut warnings = Vec::new();
            let root = Field::root(&object);
            let template = root.at("spec.template");
            for container in containers(&template) {
                warn_of_app_armor(&template, &container, &mut warnings);
            }
            warnings
        };
        let warning = format!(
            "spec.template.metadata.annotations[{APP_ARMOR}c]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
        );
        assert_eq!(warned("RuntimeDefault"), [warning]);
        assert!(warned("Unconfined").is_empty());
    }

    #[test]
    fn seccomp_annotations_without_fields_are_told() {
        let prefix = "seccomp.security.alpha.kubernetes.io";
        let pod = |of_pod: Value| {
            json!({"metadata": {"annotations": {
                    format!("{prefix}/pod"): "x", format!("container.{prefix}/c"): "x", format!("container.{prefix}/d"): "x"}},
                "spec": {"securityContext": of_pod, "containers": [{"name": "c"},
                    {"name": "d", "securityContext": {"seccompProfile": {"type": "Unconfined"}}}]}})
        };
        let warned = |pod: Value| {
            let mut warnings = Vec::new();
            let pod = Field::root(&pod);
            warn_of_pod_seccomp(&pod, &mut warnings);
            for container in containers(&pod) {
                warn_of_seccomp(&pod, &container, &mut warnings);
            }
            warnings
        };
        let warning = |key: String| {
            format!(
                "metadata.annotations[{key}]: non-functional in v1.27+; use the \"seccompProfile\" field instead"
            )
        };
        let of_container = warning(format!("container.{prefix}/c"));
        let of_pod = warning(format!("{prefix}/pod"));
        assert_eq!(warned(pod(json!({}))), [of_pod, of_container.clone()]);
        let said = json!({"seccompProfile": {"type": "RuntimeDefault"}});
        assert_eq!(warned(pod(said)), [of_container]);
    }

    #[test]
    fn profiles_in_annotations_are_known_and_of_containers() {
        let wrong = |key: &str, profile: &str| {
            let pod = json!({"metadata": {"annotations": {key: profile}}, "spec": {"initContainers": [{"name": "c"}]}});
            let mut errors = Vec::new();
            check(&Field::root(&pod), "annotations", &mut errors);
            crate::validation::messages(&errors).join("; ")
        };
        let [seccomp, app_armor] = [SECCOMP_OF_CONTAINER, APP_ARMOR].map(|it| format!("{it}c"));
        for profile in [
            "runtime/default",
            "docker/default",
            "unconfined",
            "localhost/a/b",
        ] {
            assert_eq!(wrong(&seccomp, profile), "");
            assert_eq!(wrong(SECCOMP_OF_POD, profile), "");
        }
        assert_eq!(
            wrong(SECCOMP_OF_POD, "odd"),
            format!(
                "annotations.{SECCOMP_OF_POD}: Invalid value: \"odd\": must be a valid seccomp profile"
            )
        );
        assert_eq!(
            wrong(&seccomp, "localhost/../a"),
            format!("annotations.{seccomp}: Invalid value: \"../a\": must not contain '..'")
        );
        for profile in ["", "runtime/default", "unconfined", "localhost/x"] {
            assert_eq!(wrong(&app_armor, profile), "");
        }
        assert_eq!(
            wrong(&app_armor, "odd"),
            format!(
                "annotations[{app_armor}]: Invalid value: \"odd\": invalid AppArmor profile name: \"odd\""
            )
        );
        let other = format!("{APP_ARMOR}d");
        assert_eq!(
            wrong(&other, "unconfined"),
            format!("annotations[{other}]: Invalid value: \"d\": container not found")
        );
    }

    #[test]
    fn annotations_do_not_contradict_fields() {
        let pod = |key: String, annotation: &str, field: &str, profile: Value| {
            json!({"metadata": {"annotations": {key: annotation}},
                "spec": {"containers": [{"name": "c", "securityContext": {field: profile}}]}})
        };
        let local = json!({"type": "Localhost", "localhostProfile": "p"});
        let of = |kind: &str| json!({"type": kind});
        for (annotation, profile, of_seccomp, of_app_armor) in [
            ("unconfined", of("Unconfined"), "", ""),
            ("unconfined", of("RuntimeDefault"), "type", "type"),
            ("runtime/default", of("RuntimeDefault"), "", ""),
            ("docker/default", of("RuntimeDefault"), "", "type"),
            ("localhost/p", local.clone(), "", ""),
            ("localhost/q", local.clone(), "profile", "profile"),
            ("unconfined", local, "type", "type"),
            ("unconfined", Value::Null, "", ""),
        ] {
            for (prefix, field, what, check, said) in [
                (
                    SECCOMP_OF_CONTAINER,
                    "seccompProfile",
                    "seccomp",
                    check_seccomp_fields as fn(&Field<'_, '_>, &mut Errors),
                    of_seccomp,
                ),
                (
                    APP_ARMOR,
                    "appArmorProfile",
                    "apparmor",
                    check_app_armor_fields,
                    of_app_armor,
                ),
            ] {
                let pod = pod(format!("{prefix}c"), annotation, field, profile.clone());
                let found = crate::validation::messages(&crate::validation::found(check, &pod));
                let member = if said == "profile" {
                    "localhostProfile"
                } else {
                    "type"
                };
                let expected = format!(
                    "spec.containers[0].securityContext.{field}.{member}: Forbidden: {what} {said} in annotation and field must match"
                );
                let expected = if said.is_empty() {
                    Vec::new()
                } else {
                    vec![expected]
                };
                assert_eq!(found, expected, "{annotation} {profile}");
            }
        }
        let mut template = pod(SECCOMP_OF_POD.to_owned(), "unconfined", "x", Value::Null);
        template["spec"]["securityContext"] = json!({"seccompProfile": {"type": "RuntimeDefault"}});
        let found = crate::validation::found(check_seccomp_fields, &template);
        assert_eq!(found[0].field, "spec.securityContext.seccompProfile.type");
    }
}
