//! The merge rules of the fields of a type: which lists are sets or have keys, and what is one whole.
//!
//! A value that is not in the tables is granular if it is an object and atomic if it is a list. The tables hold for the
//! built-in types and for the metadata of all; the rest of custom resources is in their schema.

use ringwatch::codec;
use serde_json::{Map, Value};

use super::merging::{MergeSchema, Merging, ValueSchema};
use super::path::PathElement;
use super::shape::{Keys, Shape};
use super::tables::{
    BUILT_IN_GROUPS, EXCEPTIONS, LISTS, MAPS, METADATA_LISTS, METADATA_MAPS, TYPE, TYPE_IF_ANY,
    WHOLE,
};

/// Built-in kinds of which a write of the status does not change the metadata. CustomResourceDefinitions should be
/// among them, but kube-apiserver lets their metadata be changed (kubernetes/kubernetes#137681).
const STATUS_ALONE: [&str; 7] = [
    "APIService",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "ResourceClaim",
    "ServiceCIDR",
    "ValidatingAdmissionPolicy",
    "VolumeAttachment",
];

/// The merge rules of the fields of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema<'a> {
    api_version: &'a str,
    kind: &'a str,
    built_in: bool,
    custom: Option<&'a dyn MergeSchema>,
}

impl<'a> Schema<'a> {
    /// Returns the merge rules of a type; a custom one brings its schema.
    pub(super) fn new(
        api_version: &'a str,
        kind: &'a str,
        custom: Option<&'a dyn MergeSchema>,
    ) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self {
            api_version,
            kind,
            built_in: BUILT_IN_GROUPS.contains(&group),
            custom,
        }
    }

    /// Returns the merge rule that the schema of a custom type has for a path.
    fn defined(&self, path: &[PathElement]) -> Option<Merging<'a>> {
        let mut steps = path.iter().map(|element| match element {
            PathElement::Field(name) => Some(name.as_str()),
            _ => None,
        });
        self.custom?.merging(&mut steps)
    }

    /// Returns how a value at a path merges.
    pub(super) fn shape(&self, path: &[PathElement], value: &Value) -> Shape<'a> {
        match value {
            Value::Object(_) if self.is_whole(path) => Shape::Leaf,
            Value::Object(_) if self.defined(path) == Some(Merging::Whole) => Shape::Leaf,
            Value::Object(_) => Shape::Object,
            Value::Array(items) => self.list_shape(path, items),
            _ => Shape::Leaf,
        }
    }

    /// Returns how a list merges, if its items fit.
    fn list_shape(&self, path: &[PathElement], items: &[Value]) -> Shape<'a> {
        let declared = self.declared_list(path);
        let fits = match declared {
            Shape::Keyed(keys) => items.iter().all(|item| item_key(keys, item).is_some()),
            Shape::Set if self.defined(path) == Some(Merging::Set) => true,
            _ => items
                .iter()
                .all(|item| !item.is_object() && !item.is_array()),
        };
        if fits { declared } else { Shape::Leaf }
    }

    /// Returns how lists at a path merge.
    pub(super) fn declared_list(&self, path: &[PathElement]) -> Shape<'a> {
        let own = if self.built_in { LISTS } else { &[] };
        let found = METADATA_LISTS
            .iter()
            .chain(own)
            .find(|(rule, _)| applies(rule, path));
        let Some((_, shape)) = found else {
            return match self.defined(path) {
                Some(Merging::Set) => Shape::Set,
                Some(Merging::Keyed(keys)) => Shape::Keyed(Keys::Defined(keys)),
                _ => Shape::Leaf,
            };
        };
        let excepted = |(kind, rule): &(&str, &str)| *kind == self.kind && applies(rule, path);
        if EXCEPTIONS.iter().any(excepted) {
            return Shape::Leaf;
        }
        match *shape {
            Shape::Keyed(TYPE) if self.is_of_flow_control() => Shape::Keyed(TYPE_IF_ANY),
            shape => shape,
        }
    }

    fn is_of_flow_control(&self) -> bool {
        self.built_in && matches!(self.kind, "FlowSchema" | "PriorityLevelConfiguration")
    }

    /// Returns true if the type says that what is at a path merges as a whole; of lists, those of built-in types do if
    /// it says nothing.
    pub(super) fn is_declared_whole(&self, path: &[PathElement], is_list: bool) -> bool {
        if self.defined(path) == Some(Merging::Whole) {
            return true;
        }
        match is_list {
            true => self.built_in && self.declared_list(path) == Shape::Leaf,
            false => self.is_whole(path),
        }
    }

    fn is_whole(&self, path: &[PathElement]) -> bool {
        if applies("metadata.ownerReferences[]", path) {
            return true;
        }
        let scale_target = self.api_version == "autoscaling/v1";
        let revision = self.kind == "ControllerRevision";
        self.built_in
            && (WHOLE.iter().any(|rule| applies(rule, path))
                || (revision && applies(".data", path))
                || (scale_target && applies(".spec.scaleTargetRef", path)))
    }

    /// Returns a test of the paths one step from this one: true if the step is the name of a field that the type has,
    /// rather than a key that a client chose, or an item.
    pub(super) fn names_at(
        &self,
        parent: &[PathElement],
    ) -> impl Fn(&[PathElement]) -> bool + use<'_, 'a> {
        let in_metadata = matches!(parent, [PathElement::Field(first), ..] if first == "metadata");
        let is_defined = self.custom.is_some() && !in_metadata;
        let has_names = if is_defined {
            self.defined(parent) == Some(Merging::Members { named: true })
        } else {
            let own = if self.built_in { MAPS } else { &[] };
            let mut maps = METADATA_MAPS.iter().chain(own);
            !maps.any(|rule| applies(rule, parent))
        };
        move |path| match path {
            [PathElement::Field(name)] if name == "metadata" => true,
            [.., PathElement::Field(_)] => {
                has_names && (!is_defined || self.defined(path).is_some())
            }
            _ => false,
        }
    }

    /// Returns the fields that a write through a subresource cannot change, or of the object itself if the name is
    /// empty: `GetResetFields` of Kubernetes' strategies. Only the object itself and its status have such fields, and
    /// for CertificateSigningRequests the approval.
    pub(super) fn reset_fields(
        &self,
        subresource: &str,
        has_status: bool,
    ) -> &'static [&'static str] {
        match (self.kind, subresource) {
            ("CertificateSigningRequest", "") if self.built_in => &["spec", "status"],
            ("CertificateSigningRequest", "status") if self.built_in => {
                &["spec", "status.conditions"]
            }
            ("CertificateSigningRequest", "approval") if self.built_in => {
                &["spec", "status.certificate"]
            }
            ("Deployment", "status") if self.built_in => &["metadata.labels", "spec"],
            ("Namespace", "finalize") if self.built_in => &["status"],
            ("Pod", "status") if self.built_in => &[
                "metadata.deletionTimestamp",
                "metadata.ownerReferences",
                "spec",
            ],
            (kind, "status") if !self.built_in || STATUS_ALONE.contains(&kind) => {
                &["metadata", "spec"]
            }
            (_, "status") => &["spec"],
            (_, "") if has_status => &["status"],
            _ => &[],
        }
    }

    /// Returns the type of an object in the codec's tables, if it is a built-in one.
    pub(super) fn codec_kind(&self) -> Option<codec::Kind> {
        let known = self
            .built_in
            .then(|| codec::kind(self.api_version, self.kind));
        known.flatten()
    }

    /// Returns true if objects of the type are served in this version too, as far as is known here. Of built-in types
    /// none but stable versions are.
    pub(super) fn has_version(&self, version: &str) -> bool {
        let is_other = version != self.api_version && self.codec_kind().is_some();
        let is_stable = || !version.contains("alpha") && !version.contains("beta");
        !is_other || (is_stable() && codec::kind(version, self.kind).is_some())
    }

    /// Returns true if items of a list of the built-in type may lack the member that is their key.
    pub(super) fn has_optional_keys(&self) -> bool {
        self.is_of_flow_control() || self.built_in && self.kind == "ServiceAccount"
    }

    /// Returns the kind of the objects.
    pub(super) fn kind(&self) -> &'a str {
        self.kind
    }

    /// Returns the schema of a custom type's values, if there is one.
    pub(super) fn custom_values(&self) -> Option<&'a dyn ValueSchema> {
        self.custom?.values()
    }

    /// Adds the members that objects of the type always have, zero or null if need be, so that no client becomes their
    /// manager.
    pub(super) fn complete(&self, object: &mut Value) {
        if let (Some(kind), Some(members)) = (self.codec_kind(), object.as_object_mut()) {
            codec::complete_with_nulls(kind, members);
        }
    }

    /// Puts a merged object into its type: of a built-in one, null entries of maps and items of lists become zero
    /// values, and of integers that are too large the lowest bits are left.
    ///
    /// # Errors
    /// [`codec::ConversionError`] when a value is of another type.
    pub(super) fn convert(&self, object: &mut Value) -> Result<(), codec::ConversionError> {
        if let (Some(kind), Some(members)) = (self.codec_kind(), object.as_object_mut()) {
            codec::convert(kind, members)?;
        }
        Ok(())
    }
}

/// Returns the step to an item of a keyed list; `None` if it has none of the keys.
pub(super) fn item_key(keys: Keys<'_>, item: &Value) -> Option<PathElement> {
    let item = item.as_object()?;
    let mut found = Map::new();
    for (name, default) in keys.with_defaults() {
        if let Some(value) = item.get(name).cloned().or(default) {
            found.insert(name.to_owned(), value);
        }
    }
    (!found.is_empty()).then(|| PathElement::key(&found))
}

/// Returns true if a rule names a path.
fn applies(rule: &str, path: &[PathElement]) -> bool {
    let (rule, of_items) = rule
        .strip_suffix("[]")
        .map_or((rule, false), |rule| (rule, true));
    let ends_at_item = !matches!(path.last(), Some(PathElement::Field(_)));
    if ends_at_item != of_items {
        return false;
    }
    let (rule, whole) = rule
        .strip_prefix('.')
        .map_or((rule, false), |rule| (rule, true));
    let mut names = path.iter().rev().filter_map(|element| match element {
        PathElement::Field(name) => Some(name.as_str()),
        _ => None,
    });
    // Every field of a write is compared with every rule, so rules that do not match must be rejected fast.
    if !names
        .clone()
        .next()
        .is_some_and(|last| rule.ends_with(last))
    {
        return false;
    }
    rule.rsplit('.').all(|wanted| names.next() == Some(wanted))
        && !(whole && names.next().is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tables::{CONTAINER_PORT, NAME};

    fn path(text: &str) -> Vec<PathElement> {
        let element = |part: &str| match part {
            "[]" => PathElement::Key("{}".to_owned()),
            name => PathElement::field(name),
        };
        text.split('.').map(element).collect()
    }

    #[test]
    fn rules_name_the_ends_of_paths() {
        for (rule, text, named) in [
            ("spec.containers", "spec.containers", true),
            ("spec.containers", "spec.template.spec.containers", true),
            ("spec.containers", "status.containers", false),
            ("containers.ports", "spec.containers.[].ports", true),
            ("spec.containers", "spec.containers.[]", false),
            ("spec.variables[]", "spec.variables.[]", true),
            ("spec.variables[]", "spec.variables", false),
            (".data", "data", true),
            (".data", "spec.data", false),
        ] {
            assert_eq!(applies(rule, &path(text)), named, "{rule} {text}");
        }
    }

    #[test]
    fn tables_hold_for_built_in_types_only() {
        let list = json!([{"name": "c"}]);
        let containers = path("spec.containers");
        let pod = Schema::new("v1", "Pod", None);
        assert_eq!(pod.shape(&containers, &list), Shape::Keyed(NAME));
        assert_eq!(
            pod.shape(&containers, &json!([{"image": "x"}])),
            Shape::Keyed(NAME)
        );
        assert_eq!(pod.shape(&containers, &json!(["x"])), Shape::Leaf);
        let widget = Schema::new("example.com/v1", "Widget", None);
        assert_eq!(widget.shape(&containers, &list), Shape::Leaf);
        let finalizers = path("metadata.finalizers");
        assert_eq!(widget.shape(&finalizers, &json!(["a"])), Shape::Set);
        let conditions = path("status.conditions");
        let list = json!([{"type": "a"}]);
        assert_eq!(
            Schema::new("batch/v1", "Job", None).shape(&conditions, &list),
            Shape::Leaf
        );
        assert_eq!(pod.shape(&conditions, &list), Shape::Keyed(TYPE));
    }

    #[test]
    fn what_a_driver_or_controller_alone_understands_is_one_whole() {
        let data = json!({"spec": {"a": 1}});
        let of = |version, kind| Schema::new(version, kind, None).shape(&path("data"), &data);
        assert_eq!(of("apps/v1", "ControllerRevision"), Shape::Leaf);
        assert_eq!(of("v1", "ConfigMap"), Shape::Object);
        let claims = Schema::new("resource.k8s.io/v1", "ResourceClaim", None);
        assert_eq!(
            claims.shape(&path("status.devices.[].data"), &data),
            Shape::Leaf
        );
    }

    #[test]
    fn keys_that_an_item_lacks_have_defaults() {
        let key = item_key(CONTAINER_PORT, &json!({"containerPort": 80})).expect("a key");
        assert_eq!(key.encode(), r#"k:{"containerPort":80,"protocol":"TCP"}"#);
        let key = item_key(NAME, &json!({"image": "x"})).expect("a key");
        assert_eq!(key.encode(), r#"k:{"name":""}"#);
        assert_eq!(item_key(NAME, &json!("x")), None);
    }

    #[test]
    fn what_is_always_there_is_put_in() {
        let mut object = json!({"spec": {"strategy": {"type": "Recreate"}}});
        Schema::new("apps/v1", "Deployment", None).complete(&mut object);
        let expected = json!({
            "metadata": {},
            "spec": {
                "selector": null,
                "strategy": {"type": "Recreate"},
                "template": {"metadata": {}, "spec": {"containers": null}},
            },
            "status": {},
        });
        assert_eq!(object, expected);
        let mut object = json!({"data": {}});
        Schema::new("v1", "ConfigMap", None).complete(&mut object);
        assert_eq!(object, json!({"data": {}, "metadata": {}}));
        let mut object = json!({"status": {"conditions": [{"type": "Ready"}]}});
        Schema::new("apps/v1", "ReplicaSet", None).complete(&mut object);
        let condition = json!({"type": "Ready", "status": "", "lastTransitionTime": null});
        assert_eq!(object["status"]["conditions"], json!([condition]));
    }

    #[test]
    fn keys_of_maps_are_no_names_of_fields() {
        let pod = Schema::new("v1", "Pod", None);
        for (text, named) in [
            ("spec", true),
            ("spec.containers", true),
            ("spec.containers.[]", false),
            ("spec.containers.[].image", true),
            ("metadata.labels", true),
            ("metadata.labels.app", false),
        ] {
            let path = path(text);
            let is_named = pod.names_at(&path[..path.len() - 1]);
            assert_eq!(is_named(&path), named, "{text}");
        }
    }
}
