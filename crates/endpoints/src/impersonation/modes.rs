//! The modes in which a user may act as another.
//!
//! A constrained mode is for users of one kind. It needs the verb `impersonate-on:MODE:VERB` for what the request does,
//! and `impersonate:MODE` for each part of the other's identity, which are resources of `authentication.k8s.io`. The
//! legacy mode needs `impersonate` for each part, and no more.
//!
//! Ported from `mode.go` of `apiserver/pkg/endpoints/filters/impersonation`, Kubernetes 1.36.

use async_trait::async_trait;
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, User, valid_service_account};
use ringwatch_authorization::{Attributes, Decision};
use serde_json::json;

use crate::errors::Failure;

const AUTHENTICATION: &str = "authentication.k8s.io";
const VERSION: &str = "v1";

const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const MASTERS: &str = "system:masters";
const NODES: &str = "system:nodes";

const NODE_PREFIX: &str = "system:node:";
/// The extra field of a service account's token that names the node of its pod.
const NODE_NAME_KEY: &str = "authentication.kubernetes.io/node-name";
/// The extra field that stands for all others of a service account that acts as its node.
const NODE_KEYS: &str = "authentication.kubernetes.io/associated-node-keys";

/// The number of groups, or of values of extra fields, from which on it is first checked if all of them are allowed.
const MANY: usize = 4;

/// The characters of the path in the key of an extra field, as a pattern.
const PATH: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";

/// A mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A service account acts as the node of its pod.
    AssociatedNode,
    /// Acting as a node.
    ArbitraryNode,
    /// Acting as a service account.
    ServiceAccount,
    /// Acting as any other user, with groups and extra fields.
    UserInfo,
    /// The oldest mode, for all users, whatever the request does.
    Legacy,
}

/// Decides what the modes ask.
#[async_trait]
pub(super) trait Deciding: Sync {
    /// Decides if an action is allowed, for a mode.
    async fn decide(&self, mode: Mode, attributes: &Attributes<'_>) -> Decision;
}

impl Mode {
    /// All modes, in the order in which they are tried.
    pub(super) const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Legacy,
    ];

    /// Returns the name that metrics and verbs have.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "legacy",
        }
    }

    /// Returns the verb for the parts of an identity.
    fn verb(self) -> &'static str {
        match self {
            Self::AssociatedNode => "impersonate:associated-node",
            Self::ArbitraryNode => "impersonate:arbitrary-node",
            Self::ServiceAccount => "impersonate:serviceaccount",
            Self::UserInfo => "impersonate:user-info",
            Self::Legacy => "impersonate",
        }
    }

    fn is_constrained(self) -> bool {
        self != Self::Legacy
    }

    /// Returns the verb that audit names; `None` for the legacy one.
    pub(super) fn constraint(self) -> Option<&'static str> {
        self.is_constrained().then(|| self.verb())
    }

    /// Returns true if it is for this user to act as this other.
    fn applies(self, wanted: &User, requestor: &User) -> bool {
        let User {
            name,
            uid,
            groups,
            extra,
        } = wanted;
        let is_name_alone = uid.is_empty() && groups.is_empty() && extra.is_empty();
        let (node, account) = (node(name), valid_service_account(name));
        match self {
            Self::AssociatedNode => {
                let own = requestor.extra.get(NODE_NAME_KEY);
                let own = own.filter(|_| valid_service_account(&requestor.name).is_some());
                is_name_alone && node.is_some_and(|it| own.is_some_and(|own| *own == [it]))
            }
            Self::ArbitraryNode => is_name_alone && node.is_some(),
            Self::ServiceAccount => is_name_alone && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }

    /// Returns the wanted user, completed, if the user of the request may act as it; `None` if the mode is not for
    /// them.
    ///
    /// # Errors
    /// 403 for what is not allowed.
    async fn check(
        self,
        deciding: &dyn Deciding,
        wanted: &User,
        request: &Attributes<'_>,
    ) -> Result<Option<User>, Failure> {
        if !self.applies(wanted, request.user) {
            return Ok(None);
        }
        let without_extra;
        let mut request = *request;
        if self == Self::AssociatedNode {
            without_extra = of_any_node(request.user);
            request.user = &without_extra;
        }
        if self.is_constrained() {
            let verb = format!("impersonate-on:{}:{}", self.name(), request.verb);
            let verb = verb.as_str();
            self.allowed(deciding, &Attributes { verb, ..request })
                .await?;
        }
        let check = Check {
            mode: self,
            deciding,
            requestor: request.user,
        };
        check.identity(wanted).await.map(Some)
    }

    async fn allowed(
        self,
        deciding: &dyn Deciding,
        attributes: &Attributes<'_>,
    ) -> Result<(), Failure> {
        let decision = deciding.decide(self, attributes).await;
        if decision.allowed {
            return Ok(());
        }
        let why = decision.explain(attributes);
        Err(Failure::forbidden(attributes, &why))
    }
}

/// Returns the wanted user as the first mode that allows it makes it, of which the mode of the last success is the
/// first to be tried.
///
/// # Errors
/// The refusal of the first mode that refuses.
pub(super) async fn first_allowed(
    deciding: &dyn Deciding,
    last: Option<Mode>,
    wanted: &User,
    request: &Attributes<'_>,
) -> Result<(Mode, User), Failure> {
    let others = Mode::ALL.into_iter().filter(|it| Some(*it) != last);
    let mut refusal = None;
    for mode in last.into_iter().chain(others) {
        match mode.check(deciding, wanted, request).await {
            Ok(None) => {}
            Ok(Some(user)) => return Ok((mode, user)),
            Err(failure) => {
                refusal.get_or_insert(failure);
            }
        }
    }
    Err(refusal.unwrap_or_else(|| Failure::internal("all impersonation modes failed")))
}

/// The check of the parts of an identity.
struct Check<'a> {
    mode: Mode,
    deciding: &'a dyn Deciding,
    requestor: &'a User,
}

impl<'a> Check<'a> {
    /// Returns the wanted user with the groups that it has besides those that are named.
    async fn identity(&self, wanted: &User) -> Result<User, Failure> {
        let mut user = wanted.clone();
        self.name(&mut user).await?;
        if !wanted.uid.is_empty() {
            let uid = self.part(AUTHENTICATION, "uids", &wanted.uid);
            self.allowed(&uid).await?;
        }
        self.groups(&wanted.groups).await?;
        self.extra(wanted).await?;
        let implied = if user.name == ANONYMOUS {
            UNAUTHENTICATED
        } else {
            AUTHENTICATED
        };
        let decides = [implied, UNAUTHENTICATED];
        if !user.groups.iter().any(|it| decides.contains(&it.as_str())) {
            user.groups.push(implied.to_owned());
        }
        Ok(user)
    }

    /// Checks the name, and adds the groups that follow from it.
    async fn name(&self, user: &mut User) -> Result<(), Failure> {
        let name = user.name.clone();
        let mut part = self.part(self.group(), "users", &name);
        if self.mode.is_constrained()
            && let Some(node) = node(&name)
        {
            part.resource = "nodes";
            // The node is that of the account, whichever it is.
            part.name = if self.mode == Mode::AssociatedNode {
                "*"
            } else {
                node
            };
            user.groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, account)) = valid_service_account(&name) {
            (part.resource, part.namespace, part.name) = ("serviceaccounts", namespace, account);
            if user.groups.is_empty() {
                user.groups = vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                ];
            }
        }
        self.allowed(&part).await
    }

    async fn groups(&self, groups: &[String]) -> Result<(), Failure> {
        let part = |name| self.part(self.group(), "groups", name);
        if self.mode.is_constrained() {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(refused(&part(""), why));
            }
            if groups.iter().any(|it| it == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(refused(&part(MASTERS), why));
            }
            if groups.len() >= MANY && self.allowed(&part("*")).await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            self.allowed(&part(group)).await?;
        }
        Ok(())
    }

    async fn extra(&self, wanted: &User) -> Result<(), Failure> {
        let part = |key, value| Attributes {
            subresource: key,
            ..self.part(AUTHENTICATION, "userextras", value)
        };
        if self.mode.is_constrained() {
            for (key, values) in &wanted.extra {
                check_extra(key, values).map_err(|why| refused(&part("", ""), &why))?;
            }
            let values: usize = wanted.extra.values().map(Vec::len).sum();
            let many = wanted.extra.len() >= MANY || values >= MANY;
            if many && self.allowed(&part("*", "*")).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in &wanted.extra {
            for value in values {
                self.allowed(&part(key, value)).await?;
            }
        }
        Ok(())
    }

    /// Returns the API group of users and groups.
    fn group(&self) -> &'static str {
        if self.mode.is_constrained() {
            AUTHENTICATION
        } else {
            ""
        }
    }

    /// Returns the attributes of the permission that a part of an identity needs.
    fn part<'b>(&self, group: &'b str, resource: &'b str, name: &'b str) -> Attributes<'b>
    where
        'a: 'b,
    {
        Attributes {
            version: VERSION,
            name,
            ..Attributes::of_resource(self.requestor, self.mode.verb(), group, resource)
        }
    }

    async fn allowed(&self, attributes: &Attributes<'_>) -> Result<(), Failure> {
        self.mode.allowed(self.deciding, attributes).await
    }
}

/// Returns the name of the node that has this name as a user.
fn node(user: &str) -> Option<&str> {
    let name = user.strip_prefix(NODE_PREFIX)?;
    formats::dns_subdomain(name).is_empty().then_some(name)
}

/// Returns a service account as it is authorized to act as its node: without extra fields, which differ from node to
/// node, but with their keys.
fn of_any_node(account: &User) -> User {
    let keys = account.extra.keys().cloned().collect();
    User {
        extra: [(NODE_KEYS.to_owned(), keys)].into(),
        ..account.clone()
    }
}

/// Returns the 403 for a part that nobody may impersonate, in a constrained mode.
fn refused(attributes: &Attributes<'_>, why: &str) -> Failure {
    let refusal = attributes.refusal();
    Failure::forbidden(attributes, &format!("{refusal}: {why}"))
}

/// Checks an extra field: `validateExtra`.
fn check_extra(key: &str, values: &[String]) -> Result<(), String> {
    let wrong = |why: &str| format!("impersonating {why} in extra is not allowed");
    if key.is_empty() {
        return Err(wrong("the empty string key"));
    }
    let invalid = domain_prefixed_path(key);
    if !invalid.is_empty() {
        let texts: Vec<_> = invalid
            .iter()
            .map(|it| format!("{}: {}", it.field, it.message()))
            .collect();
        let texts = match &texts[..] {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        return Err(format!("{}: {texts}", wrong("an invalid key")));
    }
    if key.chars().any(char::is_uppercase) {
        return Err(format!("{}: {key:?}", wrong("a non-lowercase key")));
    }
    if values.iter().any(String::is_empty) {
        return Err(wrong("the empty string value"));
    }
    Ok(())
}

/// Returns what is wrong with a key that must have the form domain/path: `IsDomainPrefixedPath` of
/// `apimachinery/pkg/util/validation`.
fn domain_prefixed_path(key: &str) -> Vec<FieldError> {
    let invalid = |part: &str, why: String| FieldError::invalid("extra.key", &json!(part), why);
    let (domain, path) = key.split_once('/').unwrap_or_default();
    if domain.is_empty() || path.is_empty() {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![invalid(key, why.to_owned())];
    }
    let wrong = formats::dns_subdomain(domain).into_iter();
    let mut errors: Vec<_> = wrong.map(|why| invalid(domain, why)).collect();
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&it);
    if !path.bytes().all(is_plain) {
        let why = format!("Invalid path (regex used for validation is '{PATH}')");
        errors.push(invalid(path, why));
    }
    errors
}
