//! Impersonation: a request acts as another user, by the headers `Impersonate-User`, `-Uid`, `-Group` and `-Extra-*`.
//!
//! Each part of the other's identity is a resource that the user must be allowed to impersonate, as in kube-apiserver.
//! This is checked before anything else.

use std::collections::BTreeMap;

use http::{HeaderMap, Response};
use percent_encoding::percent_decode_str;
use ringwatch_apimachinery::{SERVICE_ACCOUNT_PREFIX, User, service_account};
use ringwatch_authorization::{Attributes, Authorizer};

use super::authorization::refusal_of;
use super::body::ResponseBody;
use super::params::Query;

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

const AUTHENTICATION: &str = "authentication.k8s.io";
const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The error of a request that may not impersonate, or whose headers name no user.
#[derive(Debug)]
pub enum NotImpersonated {
    /// The user may not impersonate the other: the response that says so.
    Refused(Box<Response<ResponseBody>>),
    /// Parts of an identity are given without a user; that identity, as Go prints it.
    NoUser(String),
}

/// Returns true if a request has headers of impersonation.
#[must_use]
pub fn impersonates(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with(PREFIX))
}

/// Returns the user of the request: the authenticated one, or the one that its headers impersonate.
///
/// # Errors
/// [`NotImpersonated`] if the user may not impersonate one of the parts, or the headers name no user.
pub async fn acting_user(
    authorizer: &Authorizer,
    user: User,
    query: &str,
    headers: &HeaderMap,
) -> Result<User, NotImpersonated> {
    let parts = parts(headers);
    let Some(other) = parts.iter().find(|part| part.kind.is_user()) else {
        if parts.is_empty() {
            return Ok(user);
        }
        return Err(NotImpersonated::NoUser(nobody(&parts)));
    };
    let query = Query::parse(query);
    for part in &parts {
        let attributes = part.attributes(&user);
        if let Some(refusal) = refusal_of(authorizer, &attributes, &query, headers).await {
            return Err(NotImpersonated::Refused(Box::new(refusal)));
        }
    }
    Ok(identity(other, &parts))
}

/// Removes the headers before a request is proxied to a server that might trust them.
pub(super) fn strip(headers: &mut HeaderMap) {
    let names = headers
        .keys()
        .filter(|name| name.as_str().starts_with(PREFIX));
    for name in names.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
}

/// The kind of an impersonated part.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// A user, or a service account by its namespace.
    User {
        namespace: Option<String>,
    },
    Group,
    /// An extra field of the user, with its key.
    Extra(String),
    Uid,
}

impl Kind {
    fn is_user(&self) -> bool {
        matches!(self, Self::User { .. })
    }
}

/// A part of an identity.
#[derive(Debug)]
struct Part {
    kind: Kind,
    /// The name, without namespace if it is a service account's.
    name: String,
}

impl Part {
    /// Returns the attributes of the permission that impersonation requires.
    fn attributes<'a>(&'a self, user: &'a User) -> Attributes<'a> {
        let (group, resource, subresource, namespace) = match &self.kind {
            Kind::User { namespace: None } => ("", "users", "", ""),
            Kind::User {
                namespace: Some(namespace),
            } => ("", "serviceaccounts", "", namespace.as_str()),
            Kind::Group => ("", "groups", "", ""),
            Kind::Extra(key) => (AUTHENTICATION, "userextras", key.as_str(), ""),
            Kind::Uid => (AUTHENTICATION, "uids", "", ""),
        };
        Attributes {
            namespace,
            subresource,
            name: &self.name,
            ..Attributes::of_resource(user, "impersonate", group, resource)
        }
    }
}

/// Returns an identity without a user as Go prints it in kube-apiserver's message.
fn nobody(parts: &[Part]) -> String {
    let (mut uid, mut groups, mut extra) = ("", Vec::new(), BTreeMap::<_, Vec<_>>::new());
    for part in parts {
        match &part.kind {
            Kind::User { .. } => {}
            Kind::Group => groups.push(part.name.as_str()),
            Kind::Extra(key) => extra.entry(key).or_default().push(part.name.as_str()),
            Kind::Uid => uid = &part.name,
        }
    }
    let list = |texts: &[&str]| {
        let texts: Vec<_> = texts.iter().map(|it| format!("{it:?}")).collect();
        format!("[]string{{{}}}", texts.join(", "))
    };
    let groups = match &*groups {
        [] => "[]string(nil)".to_owned(),
        groups => list(groups),
    };
    let extra: Vec<_> = extra
        .iter()
        .map(|(key, values)| format!("{key:?}:{}", list(values)))
        .collect();
    let extra = match &*extra {
        [] => "map[string][]string(nil)".to_owned(),
        extra => format!("map[string][]string{{{}}}", extra.join(", ")),
    };
    format!("&user.DefaultInfo{{Name:\"\", UID:{uid:?}, Groups:{groups}, Extra:{extra}}}")
}

/// Returns the parts that the headers impersonate.
fn parts(headers: &HeaderMap) -> Vec<Part> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let one = |name| headers.get(name).map(text).filter(|it| !it.is_empty());
    let mut parts = Vec::new();
    parts.extend(one(USER).map(|name| match service_account(&name) {
        Some((namespace, name)) => Part {
            kind: Kind::User {
                namespace: Some(namespace.to_owned()),
            },
            name: name.to_owned(),
        },
        None => Part {
            kind: Kind::User { namespace: None },
            name,
        },
    }));
    for (header, value) in headers {
        let kind = match header.as_str() {
            GROUP => Kind::Group,
            other => match other.strip_prefix(EXTRA_PREFIX) {
                Some(key) => Kind::Extra(percent_decode_str(key).decode_utf8_lossy().into_owned()),
                None => continue,
            },
        };
        let name = text(value);
        parts.push(Part { kind, name });
    }
    parts.extend(one(UID).map(|name| Part {
        kind: Kind::Uid,
        name,
    }));
    parts
}

/// Builds the impersonated user.
fn identity(other: &Part, parts: &[Part]) -> User {
    let mut user = User {
        name: other.name.clone(),
        uid: String::new(),
        groups: Vec::new(),
        extra: BTreeMap::new(),
    };
    for part in parts {
        match &part.kind {
            Kind::User { .. } => {}
            Kind::Group => user.groups.push(part.name.clone()),
            Kind::Extra(key) => {
                let values = user.extra.entry(key.clone()).or_default();
                values.push(part.name.clone());
            }
            Kind::Uid => user.uid.clone_from(&part.name),
        }
    }
    if let Kind::User {
        namespace: Some(namespace),
    } = &other.kind
    {
        user.name = format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{}", other.name);
        if user.groups.is_empty() {
            user.groups = vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ];
        }
    }
    let (implied, excluding): (_, &[_]) = if user.name == ANONYMOUS {
        (UNAUTHENTICATED, &[UNAUTHENTICATED])
    } else {
        (AUTHENTICATED, &[AUTHENTICATED, UNAUTHENTICATED])
    };
    if !user
        .groups
        .iter()
        .any(|it| excluding.contains(&it.as_str()))
    {
        user.groups.push(implied.to_owned());
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a value"));
        }
        headers
    }

    fn made(pairs: &[(&'static str, &str)]) -> User {
        let parts = parts(&headers(pairs));
        let other = parts.iter().find(|part| part.kind.is_user());
        identity(other.expect("a user"), &parts)
    }

    #[test]
    fn everybody_is_in_the_groups_that_a_login_would_give() {
        let groups = |pairs| made(pairs).groups;
        assert_eq!(groups(&[(USER, "jane")]), [AUTHENTICATED]);
        assert_eq!(groups(&[(USER, ANONYMOUS)]), [UNAUTHENTICATED]);
        assert_eq!(
            groups(&[(USER, "jane"), (GROUP, "devs"), (GROUP, UNAUTHENTICATED)]),
            ["devs", UNAUTHENTICATED]
        );
        assert_eq!(
            groups(&[(USER, "system:serviceaccount:a:robot")]),
            [
                "system:serviceaccounts",
                "system:serviceaccounts:a",
                AUTHENTICATED
            ]
        );
    }

    #[test]
    fn all_parts_of_an_identity_are_taken() {
        let user = made(&[
            (USER, "jane"),
            (UID, "7"),
            ("impersonate-extra-acme.com%2fproject", "a"),
            ("impersonate-extra-acme.com%2fproject", "b"),
        ]);
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "7"));
        assert_eq!(user.extra["acme.com/project"], ["a", "b"]);
    }

    #[test]
    fn each_part_is_a_resource() {
        let user = made(&[(USER, "boss")]);
        let attributes = |name: &'static str, value: &str| {
            let parts = parts(&headers(&[(name, value)]));
            let attributes = parts[0].attributes(&user);
            let resource = attributes.combined_resource();
            format!(
                "{} {resource} {} {}",
                attributes.group, attributes.namespace, attributes.name
            )
        };
        assert_eq!(attributes(USER, "jane"), " users  jane");
        assert_eq!(
            attributes(USER, "system:serviceaccount:a:robot"),
            " serviceaccounts a robot"
        );
        assert_eq!(
            attributes(USER, "system:serviceaccount:a"),
            " users  system:serviceaccount:a"
        );
        assert_eq!(attributes(GROUP, "devs"), " groups  devs");
        assert_eq!(
            attributes("impersonate-extra-scopes", "all"),
            "authentication.k8s.io userextras/scopes  all"
        );
        assert_eq!(attributes(UID, "7"), "authentication.k8s.io uids  7");
    }
}
