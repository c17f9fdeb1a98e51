//! The paths of discovery's own documents.

use ringwatch_apimachinery::GroupVersion;

use super::operation_names::Scope;
use super::operations::{Media, OK, Operation, PathItem, Type};

/// Returns the path item of a discovery document.
pub(super) fn item(root: &str) -> PathItem {
    let (id, tag, description, answer, media) = facts(root);
    let operation = Operation {
        method: "get",
        id,
        tag,
        description: description.to_owned(),
        action: None,
        parameters: Vec::new(),
        body: None,
        codes: OK,
        answer,
        media,
    };
    PathItem {
        path: format!("/{root}/"),
        parameters: Vec::new(),
        operations: vec![operation],
    }
}

/// Returns the id, tag and description of the operation that reads a document, and its answer.
fn facts(root: &str) -> (String, String, &'static str, Type, Media) {
    let named = |kind: &'static str| Type::Named(kind);
    let parts: Vec<&str> = root.split('/').collect();
    match parts[..] {
        ["version"] => (
            "getCodeVersion".to_owned(),
            "version".to_owned(),
            "get the version information for this server",
            named("io.k8s.apimachinery.pkg.version.Info"),
            Media::Json,
        ),
        [".well-known", "openid-configuration"] => (
            "getServiceAccountIssuerOpenIDConfiguration".to_owned(),
            "WellKnown".to_owned(),
            "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
            Type::Text,
            Media::KeyConfiguration,
        ),
        ["openid", "v1", "jwks"] => (
            "getServiceAccountIssuerOpenIDKeyset".to_owned(),
            "openid".to_owned(),
            "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
            Type::Text,
            Media::Keys,
        ),
        ["api"] => (
            "getCoreAPIVersions".to_owned(),
            "core".to_owned(),
            "get available API versions",
            named("io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions"),
            Media::Discovery,
        ),
        ["apis", group] => {
            let scope = Scope::from_group(group);
            (
                format!("get{}APIGroup", scope.id),
                scope.tag,
                "get information of a group",
                named("io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup"),
                Media::Discovery,
            )
        }
        ["api", version] | ["apis", _, version] => {
            let group = if parts.len() == 2 { "" } else { parts[1] };
            let scope = Scope::from_version(&GroupVersion::new(group, version));
            (
                format!("get{}APIResources", scope.id),
                scope.tag,
                "get available resources",
                named("io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList"),
                Media::Discovery,
            )
        }
        _ => (
            "getAPIVersions".to_owned(),
            "apis".to_owned(),
            "get available API versions",
            named("io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList"),
            Media::Discovery,
        ),
    }
}
