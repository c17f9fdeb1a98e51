//! A resource of the upstream: its paths there, and the keys of its objects here.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use ringwatch::codec;
use ringwatch::storage::{InvalidKey, prepare_key};

/// The characters that a segment of a path cannot have as they are.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// A resource of the upstream in one version of its API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceType {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version of the API in which objects are asked for.
    pub version: String,
    /// The plural name, as paths have it.
    pub resource: String,
    /// The kind of the objects.
    pub kind: String,
    /// True if objects lie in namespaces.
    pub is_namespaced: bool,
    /// The prefix of the keys of objects, with slashes on both sides, such as `/pods/`.
    pub prefix: String,
}

/// A part of a resource that a key stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath<'a> {
    /// The namespace; `None` for all of them, or if there are none.
    pub(crate) namespace: Option<&'a str>,
    /// The name; `None` for all objects.
    pub(crate) name: Option<&'a str>,
}

impl ResourceType {
    /// Returns the version as objects name it.
    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns true if objects can be had and read in protobuf.
    pub(crate) fn has_protobuf(&self) -> bool {
        codec::kind(&self.api_version(), &self.kind).is_some()
    }

    /// Returns the media types of answers.
    pub(crate) fn accept(&self) -> &'static str {
        match self.has_protobuf() {
            true => "application/vnd.kubernetes.protobuf,application/json",
            false => "application/json",
        }
    }

    /// Returns the media types of watches.
    pub(crate) fn accept_stream(&self) -> &'static str {
        match self.has_protobuf() {
            true => {
                "application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch"
            }
            false => "application/json;stream=watch,application/json",
        }
    }

    /// Returns the path of all objects, of those of a namespace, or of one object.
    pub(crate) fn path(&self, place: ResourcePath<'_>) -> String {
        let mut path = api_path(&self.group, &self.version);
        let segments = [
            place.namespace.map(|_| "namespaces"),
            place.namespace,
            Some(&*self.resource),
            place.name,
        ];
        for segment in segments.into_iter().flatten() {
            path.push('/');
            path.push_str(&escaped(segment));
        }
        path
    }

    /// Returns the key of an object.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        match self.is_namespaced {
            true => format!("{}{namespace}/{name}", self.prefix),
            false => format!("{}{name}", self.prefix),
        }
    }

    /// Returns the part of the resource that the key of an object stands for.
    ///
    /// # Errors
    /// [`InvalidKey`] when it is not the key of an object of this resource.
    pub(crate) fn object<'a>(&self, key: &'a str) -> Result<ResourcePath<'a>, InvalidKey> {
        let place = self.place(key, false)?;
        match place.name {
            Some(_) => Ok(place),
            None => Err(InvalidKey(key.to_owned())),
        }
    }

    /// Returns the part of the resource that the key of a list or watch stands for.
    ///
    /// # Errors
    /// [`InvalidKey`] when it lies outside of this resource.
    pub(crate) fn place<'a>(
        &self,
        key: &'a str,
        recursive: bool,
    ) -> Result<ResourcePath<'a>, InvalidKey> {
        prepare_key("", key, recursive)?;
        let outside = || InvalidKey(key.to_owned());
        let folder = self.prefix.strip_suffix('/').unwrap_or(&self.prefix);
        let rest = key.strip_prefix(folder).ok_or_else(outside)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() {
            return Ok(ResourcePath::default());
        }
        let rest = rest.strip_prefix('/').ok_or_else(outside)?;
        let (namespace, name) = match (self.is_namespaced, rest.split_once('/')) {
            (true, Some((namespace, name))) => (Some(namespace), Some(name)),
            (true, None) => (Some(rest), None),
            (false, _) => (None, Some(rest)),
        };
        if name.is_some_and(|name| name.contains('/')) {
            return Err(outside());
        }
        Ok(ResourcePath { namespace, name })
    }
}

/// Returns the path of a version of an API.
pub(crate) fn api_path(group: &str, version: &str) -> String {
    match group {
        "" => format!("/api/{}", escaped(version)),
        group => format!("/apis/{}/{}", escaped(group), escaped(version)),
    }
}

/// Returns a name as a segment of a path.
pub(crate) fn escaped(segment: &str) -> String {
    utf8_percent_encode(segment, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, is_namespaced: bool) -> ResourceType {
        ResourceType {
            group: group.to_owned(),
            version: "v1".to_owned(),
            resource: "pods".to_owned(),
            kind: "Pod".to_owned(),
            is_namespaced,
            prefix: "/pods/".to_owned(),
        }
    }

    #[test]
    fn keys_stand_for_paths() {
        let namespaced = resource("", true);
        for (key, recursive, path) in [
            ("/pods/", true, "/api/v1/pods"),
            ("/pods", true, "/api/v1/pods"),
            ("/pods/a/", true, "/api/v1/namespaces/a/pods"),
            ("/pods/a/b", false, "/api/v1/namespaces/a/pods/b"),
            (
                "/pods/a/b%c d",
                false,
                "/api/v1/namespaces/a/pods/b%25c%20d",
            ),
        ] {
            let place = namespaced.place(key, recursive).expect(key);
            assert_eq!(namespaced.path(place), path);
        }
        assert_eq!(namespaced.key("a", "b"), "/pods/a/b");
        let cluster = resource("g.io", false);
        let place = cluster.object("/pods/system:x").expect("a key");
        assert_eq!(cluster.path(place), "/apis/g.io/v1/pods/system:x");
        assert_eq!(cluster.key("", "b"), "/pods/b");
        assert_eq!(cluster.api_version(), "g.io/v1");
    }

    #[test]
    fn keys_elsewhere_are_refused() {
        let namespaced = resource("", true);
        for key in [
            "",
            "/podsx/a/b",
            "/pods/a/b/c",
            "/pods/../a/b",
            "/pods/a",
            "/pods/",
        ] {
            assert_eq!(namespaced.object(key), Err(InvalidKey(key.to_owned())));
        }
    }
}
