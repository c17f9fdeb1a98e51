//! Parses the method and path of a request by Kubernetes' path grammar.
//!
//! ```text
//! /api/v1/namespaces/{namespace}/{resource}[/{name}[/{subresource}[/...]]]
//! /apis/{group}/{version}/[watch/][namespaces/{namespace}/]{resource}...
//! /api/v1/namespaces/{name}[/finalize|/status]     the namespace itself
//! anything else                                    not about a resource
//! ```
//!
//! As in Go a path is decoded before it is split, so an escaped slash is a slash. Slashes at its end do not matter. Two
//! in a row have an empty segment between them, which no route has.

use http::Method;
use percent_encoding::percent_decode_str;
use ringwatch_apimachinery::User;
use ringwatch_authorization::Attributes;
use ringwatch_observe::{ObservedRequest, ObservedResource};
use ringwatch_registry::Verb;

use super::params::is_true;

/// The path of the stream of what the server does, which lasts as watches do.
const STATE_STREAM: &str = "/debug/ui/stream";

/// The parameters by which a request asks for some objects, or for the next page of a list.
const NARROWING: [&str; 4] = [
    "labelSelector",
    "fieldSelector",
    "shardSelector",
    "continue",
];

/// The resource, verb and names of a request, from its method and path alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// True for a request on a resource; if false, only `verb` and `path` are set.
    pub is_resource: bool,
    /// The path; decoded if the request is not about a resource, else as the client wrote it.
    pub path: String,
    /// The verb by which the request is authorized, routed and counted.
    pub verb: RequestVerb,
    /// The API group; empty for the core.
    pub group: String,
    /// The API version, such as `v1`.
    pub version: String,
    /// The namespace; empty for all, or if the resource has none. Of a request about a namespace itself it is that.
    pub namespace: String,
    /// True if the path leads into the namespace: what follows is a resource of it, and not the namespace itself.
    pub is_within_namespace: bool,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource; empty for the resource itself.
    pub subresource: String,
    /// The object's name; empty for collections.
    pub name: String,
    /// True if the path has the old `/watch/` prefix.
    pub legacy_watch: bool,
    /// The rest of the path after the subresource.
    pub rest: Vec<String>,
    /// True if the path begins with two slashes, or has an empty segment before that rest.
    pub has_empty_segment: bool,
}

/// The verb of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequestVerb {
    /// A verb on a resource.
    Resource(Verb),
    /// The HTTP method in lower case, of a request that is not about a resource.
    Method(String),
    /// A method on a resource that stands for no verb, such as OPTIONS.
    #[default]
    Unknown,
}

impl RequestVerb {
    /// Returns the verb as authorization and messages have it; empty for an unknown one, as in kube-apiserver.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Resource(verb) => verb.name(),
            Self::Method(method) => method,
            Self::Unknown => "",
        }
    }

    /// Returns the verb on a resource; `None` for any other request.
    #[must_use]
    pub fn on_resource(&self) -> Option<Verb> {
        match self {
            Self::Resource(verb) => Some(*verb),
            Self::Method(_) | Self::Unknown => None,
        }
    }
}

impl RequestInfo {
    /// Returns the attributes of the request of a user. Of a request on a resource the path is not among them.
    #[must_use]
    pub fn attributes<'a>(&'a self, user: &'a User) -> Attributes<'a> {
        if !self.is_resource {
            return Attributes::of_path(user, self.verb.name(), &self.path);
        }
        Attributes {
            namespace: &self.namespace,
            version: &self.version,
            subresource: &self.subresource,
            name: &self.name,
            ..Attributes::of_resource(user, self.verb.name(), &self.group, &self.resource)
        }
    }

    /// Reads a request's method, path and query.
    #[must_use]
    pub fn new(method: &Method, path: &str, query: &str) -> Self {
        let decoded = percent_decode_str(path).decode_utf8_lossy();
        let mut info = Self::default();
        if let Some(parts) = resource_parts(&decoded, &mut info) {
            info.is_resource = true;
            info.path = path.to_owned();
            info.read_parts(parts);
            let verb = info.resource_verb(method, query);
            info.verb = verb.map_or(RequestVerb::Unknown, RequestVerb::Resource);
        } else {
            info.verb = RequestVerb::Method(method.as_str().to_ascii_lowercase());
            info.path = decoded.into_owned();
        }
        info
    }

    /// Returns true if the response may take any time, as with watches, streams and profiles: the request has no
    /// deadline and is not counted in flight.
    #[must_use]
    pub fn is_long_running(&self) -> bool {
        if !self.is_resource {
            return self.path == STATE_STREAM || self.path.starts_with("/debug/pprof/");
        }
        self.verb == RequestVerb::Resource(Verb::Watch)
            || matches!(
                self.subresource.as_str(),
                "proxy" | "log" | "exec" | "attach" | "portforward"
            )
    }

    /// Returns true if the request asks for all objects of a resource, and not for the next page of them.
    #[must_use]
    pub fn is_of_everything(&self, query: &str) -> bool {
        let of_collection = matches!(
            self.verb.on_resource(),
            Some(Verb::List | Verb::Watch | Verb::DeleteCollection)
        );
        let narrows = |name: &str| NARROWING.contains(&name);
        let mut parameters = form_urlencoded::parse(query.as_bytes());
        of_collection
            && self.namespace.is_empty()
            && !parameters.any(|(name, value)| narrows(&name) && !value.is_empty())
    }

    /// Returns true if the request may change something.
    #[must_use]
    pub fn is_mutating(&self) -> bool {
        !matches!(
            self.verb.name(),
            "get" | "list" | "watch" | "head" | "options"
        )
    }

    /// Parses the path after the version.
    fn read_parts(&mut self, mut parts: Vec<String>) {
        if parts.first().is_some_and(|part| part == "watch") && parts.len() > 1 {
            self.legacy_watch = true;
            parts.remove(0);
        }
        if parts.first().is_some_and(|part| part == "namespaces") && parts.len() > 1 {
            self.namespace = parts[1].clone();
            let own = parts.len() == 3 && matches!(parts[2].as_str(), "finalize" | "status");
            if parts.len() > 2 && !own {
                parts.drain(..2);
                self.is_within_namespace = true;
                self.has_empty_segment |= self.namespace.is_empty();
            }
        }
        self.has_empty_segment |= parts.iter().take(3).any(String::is_empty);
        let mut parts = parts.into_iter();
        self.resource = parts.next().unwrap_or_default();
        self.name = parts.next().unwrap_or_default();
        self.subresource = parts.next().unwrap_or_default();
        self.rest = parts.collect();
    }

    fn resource_verb(&self, method: &Method, query: &str) -> Option<Verb> {
        Some(match *method {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if self.name.is_empty() => Verb::DeleteCollection,
            Method::DELETE => Verb::Delete,
            Method::GET | Method::HEAD if self.legacy_watch => Verb::Watch,
            Method::GET | Method::HEAD if self.name.is_empty() => {
                if asks_for_watch(query) {
                    Verb::Watch
                } else {
                    Verb::List
                }
            }
            Method::GET | Method::HEAD => Verb::Get,
            _ => return None,
        })
    }
}

impl ObservedRequest for RequestInfo {
    fn verb(&self) -> &str {
        self.verb.name()
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn resource(&self) -> Option<ObservedResource<'_>> {
        self.is_resource.then_some(ObservedResource {
            group: &self.group,
            resource: &self.resource,
            subresource: &self.subresource,
        })
    }
}

/// Returns the segments after the version, if the decoded path is about a resource; sets group and version.
fn resource_parts(path: &str, info: &mut RequestInfo) -> Option<Vec<String>> {
    let mut parts = path.trim_matches('/').split('/').map(String::from);
    let prefix = parts.next()?;
    let group = match prefix.as_str() {
        "api" => String::new(),
        "apis" => parts.next()?,
        _ => return None,
    };
    let version = parts.next()?;
    let rest: Vec<String> = parts.collect();
    if rest.is_empty() {
        return None;
    }
    info.has_empty_segment =
        path.starts_with("//") || version.is_empty() || prefix == "apis" && group.is_empty();
    info.group = group;
    info.version = version;
    Some(rest)
}

/// Returns true if the parameters ask for a watch.
fn asks_for_watch(query: &str) -> bool {
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "watch")
        .is_some_and(|(_, value)| is_true(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str, query: &str) -> RequestInfo {
        RequestInfo::new(&Method::GET, path, query)
    }

    #[test]
    fn reads_the_core_and_the_groups() {
        let info = get("/api/v1/namespaces/ns/pods/p/log/x/y", "");
        assert!(info.is_resource && info.is_long_running());
        assert_eq!(
            (info.namespace.as_str(), info.resource.as_str()),
            ("ns", "pods")
        );
        assert_eq!(
            (info.name.as_str(), info.subresource.as_str()),
            ("p", "log")
        );
        assert_eq!(info.rest, ["x", "y"]);
        let info = get("/apis/apps/v1/deployments", "limit=1");
        assert_eq!((info.group.as_str(), info.version.as_str()), ("apps", "v1"));
        assert_eq!(info.verb.name(), "list");
    }

    #[test]
    fn namespaces_are_objects_too() {
        let info = get("/api/v1/namespaces/ns", "");
        assert_eq!(
            (info.resource.as_str(), info.name.as_str()),
            ("namespaces", "ns")
        );
        assert_eq!(info.namespace, "ns");
        let info = get("/api/v1/namespaces/ns/status", "");
        assert_eq!(
            (info.resource.as_str(), info.subresource.as_str()),
            ("namespaces", "status")
        );
        let info = get("/api/v1/namespaces/ns/pods", "");
        assert_eq!((info.resource.as_str(), info.name.as_str()), ("pods", ""));
    }

    #[test]
    fn verbs_follow_method_name_and_watch() {
        assert_eq!(get("/api/v1/pods", "watch=1").verb.name(), "watch");
        for no in ["false", "False", "FALSE", "0"] {
            let info = get("/api/v1/pods", &format!("watch={no}"));
            assert_eq!(info.verb.name(), "list", "{no}");
        }
        assert_eq!(get("/api/v1/pods", "watch").verb.name(), "watch");
        let legacy = get("/api/v1/watch/namespaces/ns/pods/p", "");
        assert_eq!((legacy.verb.name(), legacy.name.as_str()), ("watch", "p"));
        let delete = |path| RequestInfo::new(&Method::DELETE, path, "").verb;
        assert_eq!(
            delete("/api/v1/namespaces/ns/pods").name(),
            "deletecollection"
        );
        assert_eq!(delete("/api/v1/namespaces/ns/pods/p").name(), "delete");
        let options = RequestInfo::new(&Method::OPTIONS, "/api/v1/pods", "").verb;
        assert_eq!(options, RequestVerb::Unknown);
    }

    #[test]
    fn everything_is_all_objects_from_the_first_page_on() {
        let deployments = "/apis/apps/v1/deployments";
        for (path, query, everything) in [
            (deployments, "limit=500", true),
            (deployments, "", true),
            (deployments, "watch=1", true),
            (deployments, "labelSelector=", true),
            (deployments, "limit=500&continue=x", false),
            (deployments, "labelSelector=a%3Db", false),
            ("/apis/apps/v1/namespaces/a/deployments", "", false),
            ("/api/v1/namespaces/a/pods/b/log", "", false),
            ("/metrics", "", false),
        ] {
            let info = get(path, query);
            assert_eq!(info.is_of_everything(query), everything, "{path}?{query}");
        }
    }

    #[test]
    fn other_paths_are_not_about_resources() {
        for path in [
            "/",
            "/version",
            "/api",
            "/api/v1",
            "/apis/apps",
            "/apis/apps/v1",
            "/healthz",
        ] {
            let info = get(path, "");
            assert!(!info.is_resource, "{path}");
            assert_eq!(info.verb, RequestVerb::Method("get".to_owned()));
        }
    }

    #[test]
    fn a_path_leads_into_a_namespace_or_to_it() {
        for (path, within) in [
            ("/api/v1/namespaces", false),
            ("/api/v1/namespaces/a", false),
            ("/api/v1/namespaces/a/finalize", false),
            ("/api/v1/watch/namespaces/a", false),
            ("/api/v1/namespaces/a/pods", true),
            ("/api/v1/namespaces/a/namespaces", true),
            ("/api/v1/namespaces/a/namespaces/a", true),
            ("/api/v1/watch/namespaces/a/namespaces", true),
        ] {
            assert_eq!(get(path, "").is_within_namespace, within, "{path}");
        }
    }

    #[test]
    fn slashes_in_a_row_have_an_empty_segment_between_them() {
        for path in [
            "//api/v1/pods",
            "/api//v1/pods",
            "/api/v1//pods",
            "/apis//v1/pods",
            "/apis/apps//deployments",
            "/api/v1/namespaces//pods",
            "/api/v1/namespaces/a//pods",
            "/api/v1/namespaces/a/pods//p",
            "/api/v1/namespaces/a/pods/p//status",
            "/api/v1/namespaces/a/pods%2F/p",
            "/api/v1/watch//pods",
        ] {
            let info = get(path, "");
            assert!(info.is_resource && info.has_empty_segment, "{path}");
        }
        for path in [
            "/api/v1/pods",
            "/api/v1/pods//",
            "/api/v1/namespaces/a/",
            "/api/v1/namespaces/a/pods/p/status/",
            "/api/v1/namespaces/a/pods/p/proxy//x",
            "/api/v1/namespaces/a/pods/p/proxy/x//",
        ] {
            let info = get(path, "");
            assert!(info.is_resource && !info.has_empty_segment, "{path}");
        }
        assert!(!get("/api//", "").is_resource);
        assert_eq!(get("/api/v1/pods//", "").resource, "pods");
        assert_eq!(get("/api/v1/namespaces//pods", "").namespace, "");
    }

    #[test]
    fn segments_are_decoded() {
        let info = get(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin",
            "",
        );
        assert_eq!(info.name, "system:admin");
        assert_eq!(get("/healthz%2Fping", "").path, "/healthz/ping");
    }

    #[test]
    fn an_escaped_slash_is_a_slash() {
        let info = get("/api/v1/namespaces/..%2fsecrets", "");
        assert_eq!(
            (
                info.namespace.as_str(),
                info.resource.as_str(),
                info.verb.name()
            ),
            ("..", "secrets", "list")
        );
        let info = get("/api/v1/namespaces/ns/pods/p%2flog", "");
        assert_eq!(
            (info.name.as_str(), info.subresource.as_str()),
            ("p", "log")
        );
        // It is decoded once.
        assert_eq!(get("/api/v1/namespaces/a%252fb", "").name, "a%2fb");
    }
}
