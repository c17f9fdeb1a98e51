//! Impersonation: a request acts as another user, by the headers `Impersonate-User`, `-Uid`, `-Group` and `-Extra-*`.
//!
//! ```text
//!   headers --> wanted user --> associated-node, arbitrary-node, serviceaccount, user-info --> user of the request
//!                               (may the action be done as somebody else? may each part of the other be taken on?)
//!                               legacy (may each part be impersonated, whatever the action?)
//! ```
//!
//! There are several modes in which a user may be allowed to act as another, and any of them suffices ([`modes`]). This
//! is checked before anything else.
//!
//! Ported from `staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation` of Kubernetes 1.36
//! (`constrained_impersonation.go`, `mode.go`). That nothing is cached but the mode of a user's last success is this
//! server's: roles are looked up in memory, and webhooks have a cache of their own.

mod metrics;
mod modes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use percent_encoding::percent_decode_str;
use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::User;
use ringwatch_authorization::{Attributes, Authorizer, Decision};
use ringwatch_http::ResponseBody;
use ringwatch_offload::{Work, offload_if_large};
use ringwatch_webhook::answer_cache::{AnswerCache, CacheableAnswer};

use self::metrics::ImpersonationMetrics;
use self::modes::{Deciding, Mode, first_allowed};
use super::authorization::Selection;
use super::errors::Failure;
use super::negotiation::{status_format, wants_pretty};
use super::params::Query;
use super::request_info::RequestInfo;
use super::response;

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// The time for which the mode of a user's last success is the first to be tried.
const MODE_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Decides who may act as whom.
#[derive(Debug)]
pub struct Impersonation {
    authorizer: Arc<Authorizer>,
    /// The mode in which each user last succeeded. Most users have one, so that the others are rarely tried.
    last_modes: AnswerCache<Mode>,
    metrics: ImpersonationMetrics,
    clock: Clock,
}

/// The user that a request acts as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpersonatedUser {
    /// The user.
    pub user: User,
    /// The verb that allowed it; `None` if that was the legacy one.
    pub constraint: Option<&'static str>,
}

/// The error of a request that may not impersonate, or whose headers name no user.
#[derive(Debug)]
pub enum NotImpersonated {
    /// The user may not impersonate the other: the response that says so.
    Refused(Box<Response<ResponseBody>>),
    /// Parts of an identity are given without a user; that identity, as Go prints it.
    NoUser(String),
}

impl CacheableAnswer for Mode {
    fn grants(&self) -> bool {
        true
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

#[async_trait]
impl Deciding for Impersonation {
    async fn decide(&self, mode: Mode, attributes: &Attributes<'_>) -> Decision {
        let from = self.clock.now();
        let decision = self.authorizer.decide(attributes).await;
        let time = self.clock.now().duration_since(from);
        self.metrics.checked(mode, decision.allowed, time);
        decision
    }
}

impl Impersonation {
    /// Has the authorizer decide.
    #[must_use]
    pub fn new(authorizer: Arc<Authorizer>, clock: Clock, registry: &mut Registry) -> Self {
        Self {
            authorizer,
            last_modes: AnswerCache::default(),
            metrics: ImpersonationMetrics::register(registry),
            clock,
        }
    }

    /// Returns the user that a request of this user impersonates; `None` if it impersonates nobody.
    ///
    /// # Errors
    /// [`NotImpersonated`] if the user may not act as the other, or the headers name no user.
    pub async fn impersonated(
        &self,
        user: &User,
        info: &RequestInfo,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Option<ImpersonatedUser>, NotImpersonated> {
        let Some(wanted) = wanted(headers)? else {
            return Ok(None);
        };
        offload_if_large(Work::Body, query.as_bytes()).await;
        let query = Query::parse(query);
        let selection = Selection::new(info, &query);
        let attributes = selection.attributes(user, info);
        let from = self.clock.now();
        let allowed = self.allowed(&wanted, &attributes).await;
        let time = self.clock.now().duration_since(from);
        match allowed {
            Ok((mode, user)) => {
                self.metrics.attempted(Some(mode), time);
                let constraint = mode.constraint();
                Ok(Some(ImpersonatedUser { user, constraint }))
            }
            Err(failure) => {
                self.metrics.attempted(None, time);
                tracing::debug!(
                    user = user.name,
                    why = failure.status().message,
                    "forbidden"
                );
                let pretty = wants_pretty(&query, headers);
                let mut refusal = response::failure(status_format(headers, pretty), &failure);
                let no_sniff = HeaderValue::from_static("nosniff");
                refusal
                    .headers_mut()
                    .insert(X_CONTENT_TYPE_OPTIONS, no_sniff);
                Err(NotImpersonated::Refused(Box::new(refusal)))
            }
        }
    }

    /// Returns the wanted user as [`first_allowed`] does, and remembers the mode.
    async fn allowed(
        &self,
        wanted: &User,
        attributes: &Attributes<'_>,
    ) -> Result<(Mode, User), Failure> {
        let requestor = self.last_modes.question([&*attributes.user.name]);
        let last = self.last_modes.get(&requestor, self.clock.now());
        let (mode, user) = first_allowed(self, last, wanted, attributes).await?;
        if Some(mode) != last {
            let now = self.clock.now();
            self.last_modes.put(requestor, &mode, MODE_LIFETIME, now);
        }
        Ok((mode, user))
    }
}

/// Returns true if a request has headers of impersonation.
#[must_use]
pub fn impersonates(headers: &HeaderMap) -> bool {
    headers.keys().any(is_impersonation)
}

/// Removes the headers before a request is proxied to a server that might trust them.
pub(super) fn strip(headers: &mut HeaderMap) {
    let names = headers.keys().filter(|name| is_impersonation(name));
    for name in names.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
}

fn is_impersonation(name: &HeaderName) -> bool {
    name.as_str().starts_with(PREFIX)
}

/// Returns the user that the headers name, as they name it; `None` if there are none.
///
/// Follows `processImpersonationHeaders`.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, NotImpersonated> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let one = |name| headers.get(name).map(text).unwrap_or_default();
    let mut user = User {
        name: one(USER),
        uid: one(UID),
        groups: headers.get_all(GROUP).iter().map(text).collect(),
        extra: BTreeMap::new(),
    };
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix(EXTRA_PREFIX) {
            let values = user.extra.entry(unescaped(key)).or_default();
            values.push(text(value));
        }
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty() {
        return Ok(None);
    }
    Err(NotImpersonated::NoUser(go_text(&user)))
}

/// Returns a key without its percent-encoding; as it is if that is not sound.
fn unescaped(key: &str) -> String {
    let is_sound = key.split('%').skip(1).all(|it| {
        let digits = it.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if is_sound {
        percent_decode_str(key).decode_utf8_lossy().into_owned()
    } else {
        key.to_owned()
    }
}

/// Returns a user as Go prints it in kube-apiserver's message.
fn go_text(user: &User) -> String {
    let list = |texts: &[String]| {
        let texts: Vec<_> = texts.iter().map(|it| format!("{it:?}")).collect();
        format!("[]string{{{}}}", texts.join(", "))
    };
    let groups = match &*user.groups {
        [] => "[]string(nil)".to_owned(),
        groups => list(groups),
    };
    let extra: Vec<_> = user
        .extra
        .iter()
        .map(|(key, values)| format!("{key:?}:{}", list(values)))
        .collect();
    let extra = match &*extra {
        [] => "map[string][]string(nil)".to_owned(),
        extra => format!("map[string][]string{{{}}}", extra.join(", ")),
    };
    let (name, uid) = (&user.name, &user.uid);
    format!("&user.DefaultInfo{{Name:{name:?}, UID:{uid:?}, Groups:{groups}, Extra:{extra}}}")
}

#[cfg(test)]
mod tests;
