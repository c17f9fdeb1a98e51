//! The variables of expressions of webhooks and policies, with their types.

use imbl::OrdMap;
use ringwatch_cel::{DeclaredType, Names, Object, Type};

/// The names that expressions see beside the request and its objects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OptionalNames {
    pub(super) params: bool,
    pub(super) authorizer: bool,
    /// True if objects and JSON patches may be constructed.
    pub(super) mutations: bool,
}

/// Returns the names of an expression.
pub(super) fn names(given: OptionalNames) -> Names {
    let mut names = Names::default();
    names.add("object", Type::Dyn);
    names.add("oldObject", Type::Dyn);
    names.add("namespaceObject", namespace());
    names.add("request", request());
    if given.params {
        names.add("params", Type::Dyn);
    }
    if given.authorizer {
        let authorizer = |of: &str| Type::Opaque(format!("kubernetes.authorization.{of}").into());
        names.add("authorizer", authorizer("Authorizer"));
        names.add("authorizer.requestResource", authorizer("ResourceCheck"));
    }
    if given.mutations {
        names.messages.insert("Object".to_owned(), made_object());
        names.messages.insert("JSONPatch".to_owned(), json_patch());
    }
    names
}

/// Returns the variables of a policy, of which each may use those before it.
pub(super) fn variables(known: &OrdMap<String, DeclaredType>) -> Type {
    made_of("kubernetes.variables", known.clone())
}

/// Returns the type of objects that a policy's expression may construct, which have any fields.
pub(super) fn made_object() -> Type {
    Type::Object(
        Object {
            name: "Object".to_owned(),
            fields: OrdMap::new(),
            others: Some(Type::Dyn),
        }
        .into(),
    )
}

/// Returns the type of one step of a JSON patch.
pub(super) fn json_patch() -> Type {
    let fields = [
        ("op", Type::String),
        ("path", Type::String),
        ("from", Type::String),
        ("value", Type::Dyn),
    ];
    record("JSONPatch", fields)
}

fn record<'n>(name: &str, fields: impl IntoIterator<Item = (&'n str, Type)>) -> Type {
    let fields = fields.into_iter();
    let fields = fields.map(|(name, of)| (name.to_owned(), DeclaredType::unsized_(of)));
    made_of(name, fields.collect())
}

fn made_of(name: &str, fields: OrdMap<String, DeclaredType>) -> Type {
    Type::Object(
        Object {
            name: name.to_owned(),
            fields,
            others: None,
        }
        .into(),
    )
}

fn texts(name: &str, fields: &[&str]) -> Type {
    record(name, fields.iter().map(|field| (*field, Type::String)))
}

fn request() -> Type {
    let kind = || texts("kubernetes.GroupVersionKind", &["group", "version", "kind"]);
    let resource = || {
        let fields = ["group", "version", "resource"];
        texts("kubernetes.GroupVersionResource", &fields)
    };
    let list = || Type::list(Type::String);
    let user = record(
        "kubernetes.UserInfo",
        [
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", list()),
            ("extra", Type::map(Type::String, list())),
        ],
    );
    record(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind()),
            ("resource", resource()),
            ("subResource", Type::String),
            ("requestKind", kind()),
            ("requestResource", resource()),
            ("requestSubResource", Type::String),
            ("name", Type::String),
            ("namespace", Type::String),
            ("operation", Type::String),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

fn namespace() -> Type {
    let map = || Type::map(Type::String, Type::String);
    let metadata = record(
        "kubernetes.NamespaceMetadata",
        [
            ("name", Type::String),
            ("generateName", Type::String),
            ("namespace", Type::String),
            ("labels", map()),
            ("annotations", map()),
            ("uid", Type::String),
            ("creationTimestamp", Type::Dyn),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Dyn),
            ("generation", Type::Int),
            ("resourceVersion", Type::String),
            ("finalizers", Type::list(Type::String)),
        ],
    );
    let finalizers = ("finalizers", Type::list(Type::String));
    record(
        "kubernetes.Namespace",
        [
            ("metadata", metadata),
            ("spec", record("kubernetes.NamespaceSpec", [finalizers])),
            ("status", texts("kubernetes.NamespaceStatus", &["phase"])),
        ],
    )
}
