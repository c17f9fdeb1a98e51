//! AppArmor and seccomp profiles in annotations, where they were before there were fields.

use ringwatch_apimachinery::path::{get, get_mut, set, text};
use ringwatch_registry::RequestContext;
use serde_json::{Value, json};

use crate::validation::field::Field;

/// Prefix of annotations with a container's name and its AppArmor profile.
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

const CONTAINERS: [&str; 3] = [
    "spec.initContainers",
    "spec.containers",
    "spec.ephemeralContainers",
];
const PROFILE: &str = "securityContext.appArmorProfile";
const SECCOMP: &str = "securityContext.seccompProfile";
/// Maximum length of the name of a profile, in bytes.
const NAME_BYTES_MAX: usize = 4_095;

/// Copies the profiles of annotations into the fields of the containers that have none, with a warning for each. Follows
/// `applyAppArmorVersionSkew`.
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

/// Adds warnings about the AppArmor annotations of a pod template, which are not copied.
pub(super) fn warn_of_app_armor(template: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let annotations = template.at("metadata.annotations");
    let of_pod = get(template.value(), &format!("spec.{PROFILE}"));
    for container in containers(template).filter(|it| !it.at(PROFILE).is_set()) {
        let key = format!("{APP_ARMOR}{}", container.at("name").text());
        let annotation = annotations.value().get(&key).and_then(Value::as_str);
        if annotation.is_some_and(|it| of_pod.is_none() || profile(it).as_ref() != of_pod) {
            warnings.push(deprecated(&annotations.field(), &key));
        }
    }
}

/// Adds warnings about the seccomp annotations of a pod or template, and of its containers, that have no field instead.
pub(super) fn warn_of_seccomp(pod: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let annotations = pod.at("metadata.annotations");
    let of_pod = "seccomp.security.alpha.kubernetes.io/pod".to_owned();
    let of_pod = (!pod.at("spec").at(SECCOMP).is_set()).then_some(of_pod);
    let silent = containers(pod).filter(|it| !it.at(SECCOMP).is_set());
    let of_containers = silent.map(|container| {
        let name = container.at("name").text();
        format!("container.seccomp.security.alpha.kubernetes.io/{name}")
    });
    for key in of_pod.into_iter().chain(of_containers) {
        if annotations.value().get(&key).is_some() {
            let field = annotations.field();
            warnings.push(format!(
                "{field}[{key}]: non-functional in v1.27+; use the \"seccompProfile\" field instead"
            ));
        }
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
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let name = annotation.strip_prefix("localhost/")?;
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
            warn_of_app_armor(&root.at("spec.template"), &mut warnings);
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
            warn_of_seccomp(&Field::root(&pod), &mut warnings);
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
}
