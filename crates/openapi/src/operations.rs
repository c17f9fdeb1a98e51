//! The operations at each path, whichever version of OpenAPI the document has.

use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::{Resource, Subresource, Verb};

use super::operation_names::{Scope, camel, with_article};
use super::parameters::{self, Parameter};

/// A path and its operations.
#[derive(Debug)]
pub(super) struct PathItem {
    pub(super) path: String,
    /// The parameters that all operations of the path have.
    pub(super) parameters: Vec<Parameter>,
    pub(super) operations: Vec<Operation>,
}

/// One method at one path.
#[derive(Debug)]
pub(super) struct Operation {
    /// The HTTP method in lower case.
    pub(super) method: &'static str,
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) description: String,
    /// `x-kubernetes-action`, and the kind of `x-kubernetes-group-version-kind`; `None` for discovery.
    pub(super) action: Option<(&'static str, GroupVersion, String)>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    /// The status codes of responses and their descriptions, without 401, which all have.
    pub(super) codes: &'static [(&'static str, &'static str)],
    pub(super) answer: Type,
    pub(super) media: Media,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// An object of this type, which is required.
    Object(Type),
    /// DeleteOptions, which may be left out.
    DeleteOptions,
    /// A patch in one of the patch media types.
    Patch,
}

/// A type that has a schema.
#[derive(Clone, Debug)]
pub(super) enum Type {
    /// The schema of a kind, by group, version and kind.
    Kind(GroupVersion, String),
    /// A schema of this name.
    Named(&'static str),
    /// A plain string, which needs no schema.
    Text,
}

/// The media types of an operation's responses and request bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    /// The media types of single objects.
    Object,
    /// The media types of lists that may be watched.
    List,
    /// The media types of custom resources and their lists.
    Custom,
    /// The media types of discovery documents.
    Discovery,
    /// JSON alone.
    Json,
    /// The configuration of the keys of service accounts.
    KeyConfiguration,
    /// The keys of service accounts.
    Keys,
    /// Plain text and JSON, as the log of a pod has it.
    Log,
    /// Any media type, as a proxy has it.
    Anything,
}

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
/// The rest of the advice about the old way to watch one object.
const WATCH_ONE: &str = ", filtered to a single item with the 'fieldSelector' parameter";
const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";

pub(super) const OK: &[(&str, &str)] = &[("200", "OK")];
const CREATED: &[(&str, &str)] = &[("200", "OK"), ("201", "Created")];
const ACCEPTED: &[(&str, &str)] = &[("200", "OK"), ("202", "Accepted")];
const ALL_THREE: &[(&str, &str)] = &[("200", "OK"), ("201", "Created"), ("202", "Accepted")];

/// Returns the paths of a resource below a root such as `apis/apps/v1`.
pub(super) fn path_items(root: &str, resource: &Resource) -> Vec<PathItem> {
    let plural = &resource.plural;
    let place = NamedResource {
        resource,
        scope: Scope::from_version(&resource.group_version),
    };
    let inside = if resource.namespaced {
        "namespaces/{namespace}/"
    } else {
        ""
    };
    let collection = format!("/{root}/{inside}{plural}");
    let object = format!("{collection}/{{name}}");
    let mut items = vec![
        place.item(
            collection,
            &[Verb::List, Verb::Create, Verb::DeleteCollection],
        ),
        place.item(
            object.clone(),
            &[Verb::Get, Verb::Update, Verb::Delete, Verb::Patch],
        ),
    ];
    if resource.namespaced && resource.verbs.contains(&Verb::List) {
        items.push(place.all_namespaces(format!("/{root}/{plural}"), false));
    }
    for subresource in &resource.subresources {
        items.extend(place.below(&object, subresource));
    }
    if resource.verbs.contains(&Verb::Watch) && !resource.is_custom() {
        items.push(place.watch(format!("/{root}/watch/{inside}{plural}"), "List"));
        items.push(place.watch(format!("/{root}/watch/{inside}{plural}/{{name}}"), ""));
        if resource.namespaced {
            items.push(place.all_namespaces(format!("/{root}/watch/{plural}"), true));
        }
    }
    items.retain(|item| !item.operations.is_empty());
    items
}

/// A resource, and the name by which its operations are called.
struct NamedResource<'a> {
    resource: &'a Resource,
    scope: Scope,
}

impl NamedResource<'_> {
    /// Returns the path item with those of the verbs that the resource has.
    fn item(&self, path: String, verbs: &[Verb]) -> PathItem {
        let has = |verb: &&Verb| self.resource.verbs.contains(verb);
        let operations = verbs.iter().filter(has).map(|verb| self.operation(*verb));
        self.hoisted(path, operations.collect())
    }

    /// Returns a path item, to which the parameters move that all its operations have.
    fn hoisted(&self, path: String, mut operations: Vec<Operation>) -> PathItem {
        let named = operations.first().and_then(|it| it.action.as_ref());
        let kind = named.map_or(&self.resource.kind, |(.., kind)| kind);
        let mut parameters = Vec::new();
        if path.contains("{name}") {
            parameters.push(parameters::path("name", format!("name of the {kind}")));
        }
        if path.contains("{namespace}") {
            parameters.push(parameters::path(
                "namespace",
                "object name and auth scope, such as for teams and projects",
            ));
        }
        if let Some((first, others)) = operations.split_first_mut() {
            let everywhere =
                |it: &Parameter| others.iter().all(|other| other.parameters.contains(it));
            parameters.extend(first.parameters.extract_if(.., |it| everywhere(it)));
            for other in others {
                other.parameters.retain(|it| !parameters.contains(it));
            }
        }
        parameters.sort_by_key(|it| (it.name, it.place));
        PathItem {
            path,
            parameters,
            operations,
        }
    }

    fn operation(&self, verb: Verb) -> Operation {
        let Resource {
            kind,
            group_version,
            list_kind,
            ..
        } = self.resource;
        let own = || Type::Kind(group_version.clone(), kind.clone());
        let words = self.words(verb, "");
        let mut operation = self.bare(verb, words, own());
        operation.id = format!("{}{}", operation.id, self.suffix());
        match verb {
            Verb::List => {
                operation.answer = Type::Kind(group_version.clone(), list_kind.clone());
            }
            Verb::DeleteCollection => operation.answer = Type::Named(STATUS),
            Verb::Delete if !self.resource.strategy.returns_deleted_object() => {
                operation.answer = Type::Named(STATUS);
            }
            _ => {}
        }
        operation
    }

    /// Returns the last part of an operation's id, such as `NamespacedPod` or `Node`.
    fn suffix(&self) -> String {
        let namespaced = if self.resource.namespaced {
            "Namespaced"
        } else {
            ""
        };
        format!("{namespaced}{}", self.resource.kind)
    }

    /// Returns a description of what a verb does to the object or a subresource.
    fn words(&self, verb: Verb, part: &str) -> String {
        let kind = &self.resource.kind;
        let of = if part.is_empty() {
            String::new()
        } else {
            format!(" {part} of")
        };
        match verb {
            Verb::List | Verb::Watch
                if self.resource.verbs.contains(&Verb::Watch) && !self.resource.is_custom() =>
            {
                format!("list or watch objects of kind {kind}")
            }
            Verb::List | Verb::Watch => format!("list objects of kind {kind}"),
            Verb::Create => format!("create{of} {}", with_article(kind)),
            Verb::Get => format!("read{of} the specified {kind}"),
            Verb::Update => format!("replace{of} the specified {kind}"),
            Verb::Patch => format!("partially update{of} the specified {kind}"),
            Verb::Delete => format!("delete{of} {}", with_article(kind)),
            Verb::DeleteCollection => format!("delete collection of {kind}"),
        }
    }

    /// Returns the parts that all operations of a verb have. Follows `registerResourceHandlers`, and for custom
    /// resources `buildRoute`, which describes fewer of their options.
    fn bare(&self, verb: Verb, description: String, about: Type) -> Operation {
        let custom = self.resource.is_custom();
        let (method, word, action, names, codes) = match verb {
            Verb::List | Verb::Watch => ("get", "list", "list", parameters::LIST, OK),
            Verb::Get if custom => ("get", "read", "get", parameters::GET_CUSTOM, OK),
            Verb::Get => ("get", "read", "get", &[] as parameters::Options, OK),
            Verb::Create => ("post", "create", "post", parameters::CREATE, ALL_THREE),
            Verb::Update => ("put", "replace", "put", parameters::UPDATE, CREATED),
            Verb::Patch if custom => ("patch", "patch", "patch", parameters::PATCH, OK),
            Verb::Patch => ("patch", "patch", "patch", parameters::PATCH, CREATED),
            Verb::Delete => ("delete", "delete", "delete", parameters::DELETE, ACCEPTED),
            Verb::DeleteCollection => (
                "delete",
                "deleteCollection",
                "deletecollection",
                if custom {
                    parameters::LIST
                } else {
                    parameters::DELETE_COLLECTION
                },
                OK,
            ),
        };
        let body = match verb {
            Verb::Create | Verb::Update => Some(Body::Object(about.clone())),
            Verb::Patch => Some(Body::Patch),
            Verb::DeleteCollection if custom => None,
            Verb::Delete | Verb::DeleteCollection => Some(Body::DeleteOptions),
            Verb::Get | Verb::List | Verb::Watch => None,
        };
        let media = match (verb, custom) {
            (Verb::List | Verb::Watch, false) => Media::List,
            (_, false) => Media::Object,
            (_, true) => Media::Custom,
        };
        // In the names of collections' deletion the scope is in the middle.
        let (word, rest) = match word {
            "deleteCollection" => ("delete", "Collection"),
            word => (word, ""),
        };
        let mut parameters = parameters::queries(names);
        parameters.push(parameters::pretty());
        let Resource {
            group_version,
            kind,
            ..
        } = self.resource;
        let (group_version, kind) = match &about {
            // The scale of a custom resource is told to be about the resource itself.
            Type::Kind(group_version, kind) if !custom => (group_version, kind),
            _ => (group_version, kind),
        };
        Operation {
            method,
            id: format!("{word}{}{rest}", self.scope.id),
            tag: self.scope.tag.clone(),
            description,
            action: Some((action, group_version.clone(), kind.clone())),
            parameters,
            body,
            codes,
            media,
            answer: about,
        }
    }

    /// Returns the list or the watch of a namespaced resource in all namespaces.
    fn all_namespaces(&self, path: String, watch: bool) -> PathItem {
        if watch {
            return self.watch(path, "ListForAllNamespaces");
        }
        let mut list = self.operation(Verb::List);
        let Resource { kind, .. } = self.resource;
        list.id = format!("list{}{kind}ForAllNamespaces", self.scope.id);
        self.hoisted(path, vec![list])
    }

    /// Returns a path item below `watch/`, the old way to watch.
    fn watch(&self, path: String, suffix: &'static str) -> PathItem {
        let kind = &self.resource.kind;
        let what = if suffix.ends_with("ForAllNamespaces") {
            kind.clone()
        } else {
            self.suffix()
        };
        let mut watch = self.operation(Verb::Watch);
        watch.id = format!("watch{}{what}{suffix}", self.scope.id);
        watch.answer = Type::Named(WATCH_EVENT);
        let (action, what, instead) = if suffix.is_empty() {
            (
                "watch",
                format!("changes to an object of kind {kind}"),
                WATCH_ONE,
            )
        } else {
            (
                "watchlist",
                format!("individual changes to a list of {kind}"),
                "",
            )
        };
        if let Some((known, ..)) = &mut watch.action {
            *known = action;
        }
        watch.description = format!(
            "watch {what}. deprecated: use the 'watch' parameter with a list operation instead{instead}."
        );
        self.hoisted(path, vec![watch])
    }

    /// Returns the path items of a subresource.
    fn below(&self, object: &str, subresource: &Subresource) -> Vec<PathItem> {
        let path = format!("{object}/{}", subresource.name);
        let Some(options) = parameters::subresource_queries(&subresource.kind) else {
            return vec![self.part(path, subresource)];
        };
        let connect = |path: String, suffix: &str| {
            let methods: &[&'static str] = match subresource.verbs.len() {
                2 => &["get", "post"],
                _ => &["get", "put", "post", "delete", "options", "head", "patch"],
            };
            let operations = methods.iter().map(|method| Operation {
                parameters: options.clone(),
                ..self.connect(subresource, method, suffix)
            });
            self.hoisted(path, operations.collect())
        };
        let mut items = vec![connect(path.clone(), "")];
        if subresource.name == "proxy" {
            let mut with_path = connect(format!("{path}/{{path}}"), "WithPath");
            let in_path = parameters::path("path", "path to the resource");
            with_path.parameters.push(in_path);
            with_path.parameters.sort_by_key(|it| (it.name, it.place));
            items.push(with_path);
        }
        items
    }

    fn part(&self, path: String, subresource: &Subresource) -> PathItem {
        let Subresource { name, kind, .. } = subresource;
        let own = &self.resource.group_version;
        let group_version = subresource.group_version.as_ref().unwrap_or(own);
        let verbs = [Verb::Get, Verb::Create, Verb::Update, Verb::Patch];
        let has = |verb: &&Verb| subresource.verbs.contains(verb);
        let operations = verbs.iter().filter(has).map(|verb| {
            let about = Type::Kind(group_version.clone(), kind.clone());
            let mut operation = self.bare(*verb, self.words(*verb, name), about);
            let suffix = self.suffix();
            operation.id = format!("{}{suffix}{}", operation.id, camel(name, true));
            if name == "log" {
                operation.answer = Type::Text;
                operation.media = Media::Log;
                operation
                    .parameters
                    .extend(parameters::queries(parameters::LOG));
            }
            operation
        });
        self.hoisted(path, operations.collect())
    }

    fn connect(&self, subresource: &Subresource, method: &'static str, suffix: &str) -> Operation {
        let Subresource { name, kind, .. } = subresource;
        let resource = self.resource;
        Operation {
            method,
            id: format!(
                "connect{}{}{}{}{suffix}",
                self.scope.id,
                camel(method, true),
                self.suffix(),
                camel(name, true)
            ),
            tag: self.scope.tag.clone(),
            description: format!(
                "connect {} requests to {name} of {}",
                method.to_ascii_uppercase(),
                resource.kind
            ),
            action: Some(("connect", resource.group_version.clone(), kind.clone())),
            parameters: Vec::new(),
            body: None,
            codes: OK,
            answer: Type::Text,
            media: Media::Anything,
        }
    }
}
