//! A view of a pod, or of the template of pods, for checks.

use serde_json::Value;

/// The metadata and the spec of a pod or of a template of pods.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedPod<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
}

/// A container of whichever kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Container<'a>(&'a Value);

/// A part of a pod that has a security context.
#[derive(Clone, Copy, Debug)]
pub(super) enum SecurityScope<'a> {
    /// The pod itself.
    Pod,
    /// The container of this name.
    Container(&'a str),
}

impl<'a> CheckedPod<'a> {
    /// Makes the view of a pod, or of a template: they have the same members.
    pub(super) fn new(object: &'a Value) -> Self {
        Self {
            metadata: &object["metadata"],
            spec: &object["spec"],
        }
    }

    /// Returns all containers: those of initialization, the ordinary ones, and the ephemeral ones.
    pub(super) fn containers(self) -> impl Iterator<Item = Container<'a>> {
        let kinds = ["initContainers", "containers", "ephemeralContainers"];
        let lists = kinds.into_iter().map(move |kind| items(&self.spec[kind]));
        lists.flatten().map(Container)
    }

    /// Returns the names of the containers for which this holds.
    pub(super) fn containers_where(
        self,
        mut holds: impl FnMut(Container<'a>) -> bool,
    ) -> Vec<&'a str> {
        let found = self.containers().filter(|it| holds(*it));
        found.map(Container::name).collect()
    }

    /// Returns a member of the security context of the pod and of each container that has it.
    pub(super) fn settings(
        self,
        member: &str,
    ) -> impl Iterator<Item = (SecurityScope<'a>, &'a Value)> {
        let own = (SecurityScope::Pod, &self.spec["securityContext"][member]);
        let containers = self
            .containers()
            .map(move |it| (SecurityScope::Container(it.name()), it.setting(member)));
        let all = std::iter::once(own).chain(containers);
        all.filter(|(_, value)| !value.is_null())
    }

    /// Returns the volumes.
    pub(super) fn volumes(self) -> impl Iterator<Item = &'a Value> {
        items(&self.spec["volumes"])
    }

    /// Returns an annotation.
    pub(super) fn annotation(self, key: &str) -> Option<&'a str> {
        self.metadata["annotations"][key].as_str()
    }

    /// Returns all annotations.
    pub(super) fn annotations(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let annotations = self.metadata["annotations"].as_object();
        let pairs = annotations.into_iter().flatten();
        pairs.map(|(key, value)| (key.as_str(), text(value)))
    }

    /// Returns true if the pod runs on Windows, where its validation refuses the fields of Linux.
    pub(super) fn is_for_windows(self) -> bool {
        self.spec["os"]["name"] == "windows"
    }

    /// Returns true if the pod has a user namespace of its own, in which root is no root of the node.
    pub(super) fn has_own_users(self) -> bool {
        self.spec["hostUsers"] == false
    }

    /// Returns the name of the RuntimeClass; empty if the pod names none.
    pub(super) fn runtime_class(self) -> &'a str {
        text(&self.spec["runtimeClassName"])
    }
}

impl<'a> Container<'a> {
    /// Returns the name.
    pub(super) fn name(self) -> &'a str {
        text(&self.0["name"])
    }

    /// Returns a member of the container; null if it is absent.
    pub(super) fn member(self, name: &str) -> &'a Value {
        &self.0[name]
    }

    /// Returns a member of the container's security context; null if it is absent.
    pub(super) fn setting(self, name: &str) -> &'a Value {
        &self.0["securityContext"][name]
    }
}

/// Returns the elements of a list; none of anything else.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns a string; an empty one for anything else.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
