//! Authenticates requests by all kinds of credentials, in kube-apiserver's order.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use ringwatch_apimachinery::User;

use super::certificate_metrics::CertificateMetrics;
use super::oidc::{Anonymous, OidcTokens};
use super::service_accounts::ServiceAccountTokens;
use super::web_socket_token::WebSocketToken;
use super::{
    BootstrapTokens, Peer, RequestHeaders, TokenError, TokenFile, TokenSource, TokenUser,
    TokenWebhook, target_audiences,
};

/// The group of all authenticated users.
const AUTHENTICATED: &str = "system:authenticated";

/// The user of requests without credentials, and its group.
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The headers that front proxies commonly use, which are removed even if this server takes none from proxies.
static STANDARD_HEADERS: LazyLock<RequestHeaders> = LazyLock::new(RequestHeaders::standard);

/// Finds out the user of a request, by client certificate, request headers or bearer token.
#[derive(Debug, Default)]
pub struct Authenticator {
    tokens: TokenFile,
    /// The audiences of tokens that this server accepts.
    audiences: Vec<String>,
    service_accounts: Option<ServiceAccountTokens>,
    bootstrap_tokens: Option<BootstrapTokens>,
    webhook: Option<TokenWebhook>,
    request_headers: Option<RequestHeaders>,
    anonymous: Anonymous,
    /// The OpenID Connect issuers, which may change while the server runs.
    issuers: ArcSwap<Vec<Arc<OidcTokens>>>,
    certificates: CertificateMetrics,
}

impl Authenticator {
    /// Creates an authenticator that knows these tokens.
    #[must_use]
    pub fn new(tokens: TokenFile) -> Self {
        Self {
            tokens,
            ..Self::default()
        }
    }

    /// Registers the metrics of client certificates.
    pub fn register(&self, registry: &mut Registry) {
        self.certificates.register(registry);
    }

    /// Sets the audiences of tokens that this server takes.
    #[must_use]
    pub fn with_audiences(self, audiences: Vec<String>) -> Self {
        Self { audiences, ..self }
    }

    /// Adds the tokens of service accounts.
    #[must_use]
    pub fn with_service_accounts(self, tokens: ServiceAccountTokens) -> Self {
        Self {
            service_accounts: Some(tokens),
            ..self
        }
    }

    /// Adds bootstrap tokens.
    #[must_use]
    pub fn with_bootstrap_tokens(self, bootstrap_tokens: Option<BootstrapTokens>) -> Self {
        Self {
            bootstrap_tokens,
            ..self
        }
    }

    /// Adds a webhook, which is asked about tokens that nobody else knows.
    #[must_use]
    pub fn with_webhook(self, webhook: Option<TokenWebhook>) -> Self {
        Self { webhook, ..self }
    }

    /// Sets the requests that are served without credentials.
    #[must_use]
    pub fn with_anonymous(self, anonymous: Anonymous) -> Self {
        Self { anonymous, ..self }
    }

    /// Replaces the OpenID Connect issuers.
    pub fn set_issuers(&self, issuers: Vec<Arc<OidcTokens>>) {
        self.issuers.store(Arc::new(issuers));
    }

    /// Adds the headers by which front proxies name the user of a request.
    #[must_use]
    pub fn with_request_headers(self, request_headers: Option<RequestHeaders>) -> Self {
        Self {
            request_headers,
            ..self
        }
    }

    /// Returns the user behind a request; `None` if it has no valid credentials, for which the answer is 401. `path`
    /// decides whether it needs any. `from` is the address of the TCP peer, if it is known. The credentials are removed
    /// from the headers, so that no server to which the request is passed on gets or believes them.
    ///
    /// Ported from Kubernetes 1.36, apiserver/pkg/endpoints/filters/authentication.go `withAuthentication`.
    pub async fn authenticate(
        &self,
        peer: &Peer,
        from: Option<IpAddr>,
        headers: &mut HeaderMap,
        path: &str,
        now: Timestamp,
    ) -> Option<User> {
        let user = self.user(peer, from, headers, path, now).await?;
        headers.remove(AUTHORIZATION);
        if let Ok(Some(WebSocketToken { others, .. })) = WebSocketToken::read(headers) {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
        }
        STANDARD_HEADERS.strip(headers);
        if let Some(request_headers) = &self.request_headers {
            request_headers.strip(headers);
        }
        Some(user)
    }

    async fn user(
        &self,
        peer: &Peer,
        from: Option<IpAddr>,
        headers: &HeaderMap,
        path: &str,
        now: Timestamp,
    ) -> Option<User> {
        if let Some(known) = &self.request_headers
            && peer.is_front_proxy_at(now)
            && let Some(user) = known.user(headers)
        {
            return Some(authenticated(user));
        }
        let certified = peer.user.as_ref();
        if let Some(certified) = certified {
            self.certificates.observe(certified, now);
        }
        if let Some(certified) = certified.filter(|certified| certified.is_valid_at(now)) {
            return Some(authenticated(certified.user.clone()));
        }
        // A certificate that is not valid is refused, rather than taken for none.
        let mut refused = peer.is_refused || certified.is_some();
        if let Some(token) = bearer_token(headers) {
            match self.identify(token, &[], from.into(), now).await {
                Ok(identified) => return Some(identified.user),
                Err(error) => tracing::debug!(%error, "a token is invalid"),
            }
            refused = true;
        }
        match self.web_socket_user(headers, from, now).await {
            Ok(Some(user)) => return Some(user),
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, "a token among the subprotocols is invalid");
                refused = true;
            }
        }
        let serves = !refused && self.anonymous.serves(path);
        serves.then(anonymous)
    }

    /// Returns the user of the token among the subprotocols of a WebSocket; `None` if there is none.
    async fn web_socket_user(
        &self,
        headers: &HeaderMap,
        from: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Option<User>, TokenError> {
        let Some(WebSocketToken { token, .. }) = WebSocketToken::read(headers)? else {
            return Ok(None);
        };
        let identified = self.identify(&token, &[], from.into(), now).await?;
        Ok(Some(identified.user))
    }

    /// Returns the user of a review whose token is empty, if requests without credentials are served at any path. Such
    /// a user is for all audiences that are asked about.
    #[must_use]
    pub fn without_token(&self, audiences: &[String]) -> Option<TokenUser> {
        let audiences = self.wanted(audiences).to_vec();
        let user = anonymous();
        (self.anonymous == Anonymous::Served).then_some(TokenUser { user, audiences })
    }

    /// Returns the audiences that are asked about; if there are none, those of this server.
    fn wanted<'a>(&'a self, audiences: &'a [String]) -> &'a [String] {
        if audiences.is_empty() {
            &self.audiences
        } else {
            audiences
        }
    }

    /// Returns the user of a token that is for one of these audiences; for this server if there are none.
    ///
    /// # Errors
    /// [`TokenError`] for a token that is unknown or invalid.
    pub async fn identify(
        &self,
        token: &str,
        audiences: &[String],
        from: TokenSource,
        now: Timestamp,
    ) -> Result<TokenUser, TokenError> {
        let wanted = self.wanted(audiences);
        let mut identified = self.find(token, wanted, from, now).await?;
        identified.user = authenticated(identified.user);
        Ok(identified)
    }

    /// Asks one authenticator after the other until one knows the token. One that refuses it does not keep the next
    /// from being asked.
    async fn find(
        &self,
        token: &str,
        wanted: &[String],
        from: TokenSource,
        now: Timestamp,
    ) -> Result<TokenUser, TokenError> {
        // Tokens that name no audiences are for this server's.
        let own = target_audiences(&[], &self.audiences, wanted).ok();
        let of_this_server = |user: Option<User>| {
            let (user, audiences) = user.zip(own.clone())?;
            Some(TokenUser { user, audiences })
        };
        if let Some(known) = of_this_server(self.tokens.user(token).cloned()) {
            return Ok(known);
        }
        let mut errors = Vec::new();
        if let Some(service_accounts) = &self.service_accounts {
            match service_accounts.identify(token, wanted, now).await {
                Ok(Some(known)) => return Ok(known),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if let Some(bootstrap_tokens) = self.bootstrap_tokens.as_ref().filter(|_| own.is_some()) {
            match bootstrap_tokens
                .identify(token, now)
                .await
                .map(&of_this_server)
            {
                Ok(Some(known)) => return Ok(known),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        let issuers = self.issuers.load_full();
        for issuer in issuers.iter().filter(|_| own.is_some()) {
            match issuer.identify(token, now).await.map(&of_this_server) {
                Ok(Some(known)) => return Ok(known),
                Ok(None) => {}
                Err(error) => errors.push(error.into()),
            }
        }
        if let Some(webhook) = &self.webhook {
            match webhook.identify(token, from, &self.audiences, wanted).await {
                Ok(Some(known)) => return Ok(known),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        Err(match errors.len() {
            0 => TokenError::Unknown,
            1 => errors.remove(0),
            _ => TokenError::Several(errors),
        })
    }
}

/// Returns true for the user of requests without credentials.
#[must_use]
pub fn is_anonymous(user: &User) -> bool {
    user.name == ANONYMOUS || user.groups.iter().any(|group| group == UNAUTHENTICATED)
}

fn anonymous() -> User {
    User {
        name: ANONYMOUS.to_owned(),
        groups: vec![UNAUTHENTICATED.to_owned()],
        ..User::default()
    }
}

/// Adds the group `system:authenticated`. Users in `system:unauthenticated` do not get it.
fn authenticated(mut user: User) -> User {
    let decided = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
    if user.name != ANONYMOUS && !user.groups.iter().any(decided) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

/// Returns the token, which ends at the next space; one that is no text is a wrong one.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut parts = value.splitn(3, |byte| *byte == b' ');
    let (scheme, token) = (parts.next()?, parts.next()?);
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty();
    is_bearer.then(|| std::str::from_utf8(token).unwrap_or("\u{fffd}"))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::CertifiedUser;

    async fn authenticate(
        authorization: Option<&str>,
        certified: Option<CertifiedUser>,
    ) -> Option<User> {
        let tokens = TokenFile::parse("secret,ann,1,\"a,b\"").expect("tokens");
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.parse().expect("a header"));
        }
        let now = Timestamp::from_second(100).expect("a time");
        let peer = Peer {
            user: certified,
            ..Peer::default()
        };
        Authenticator::new(tokens)
            .authenticate(&peer, None, &mut headers, "/api", now)
            .await
    }

    fn certified(until_seconds: i64) -> CertifiedUser {
        CertifiedUser {
            user: User {
                name: "bob".to_owned(),
                ..User::default()
            },
            valid_until_seconds: until_seconds,
        }
    }

    #[tokio::test]
    async fn a_token_identifies_its_user() {
        let user = authenticate(Some("bearer secret"), None)
            .await
            .expect("a user");
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "1"));
        assert_eq!(user.groups, ["a", "b", AUTHENTICATED]);
    }

    #[tokio::test]
    async fn no_or_bad_credentials_identify_nobody() {
        for value in [
            None,
            Some("Bearer other"),
            Some("Basic secret"),
            Some("secret"),
            Some("Bearer "),
        ] {
            assert_eq!(authenticate(value, None).await, None, "{value:?}");
        }
    }

    /// Returns the name of the user, and the names and values of the headers that are left.
    async fn left(headers: &[(&'static str, &str)]) -> (Option<String>, Vec<(String, String)>) {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("text")));
        let mut headers: HeaderMap = headers.collect();
        let tokens = TokenFile::parse("secret,ann,1").expect("tokens");
        let authenticator = Authenticator::new(tokens).with_anonymous(Anonymous::Served);
        let now = Timestamp::from_second(100).expect("a time");
        let peer = Peer::default();
        let user = authenticator.authenticate(&peer, None, &mut headers, "/api", now);
        let user = user.await.map(|user| user.name);
        let left = headers.iter().map(|(name, value)| {
            let value = value.to_str().expect("text").to_owned();
            (name.to_string(), value)
        });
        (user, left.collect())
    }

    #[tokio::test]
    async fn a_token_among_subprotocols_identifies_its_user_and_goes_no_further() {
        const PROTOCOLS: &str = "sec-websocket-protocol";
        const GOOD: &str = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
        let handshake = [("connection", "Upgrade"), ("upgrade", "websocket")];
        let both = format!("a, {GOOD}, b");
        let wrong = format!("a, {GOOD}x");
        for (authorization, protocols, user, left_protocols) in [
            ("", &*both, Some("ann"), "a,b"),
            ("Bearer other", &*both, Some("ann"), "a,b"),
            ("Bearer secret", &*both, Some("ann"), "a,b"),
            ("", "a", Some(ANONYMOUS), "a"),
            ("Bearer other", "a", None, "a"),
            ("", &*wrong, None, &*wrong),
            ("", GOOD, None, GOOD),
        ] {
            let mut headers = handshake.to_vec();
            headers.push((PROTOCOLS, protocols));
            if !authorization.is_empty() {
                headers.push(("authorization", authorization));
            }
            let (found, left) = left(&headers).await;
            assert_eq!(found.as_deref(), user, "{authorization} {protocols}");
            let protocols = left.iter().find(|(name, _)| name == PROTOCOLS);
            assert_eq!(protocols.expect("there").1, left_protocols);
        }
    }

    #[tokio::test]
    async fn credentials_are_removed_once_they_are_used() {
        let headers = [
            ("accept", "x"),
            ("authorization", "Bearer secret"),
            ("x-remote-user", "bob"),
            ("x-remote-uid", "1"),
            ("x-remote-group", "a"),
            ("x-remote-extra-scopes", "b"),
        ];
        let (user, left) = left(&headers).await;
        assert_eq!(user.as_deref(), Some("ann"));
        assert_eq!(left, [("accept".to_owned(), "x".to_owned())]);
    }

    #[tokio::test]
    async fn whom_a_proxy_has_not_identified_is_not_among_the_identified() {
        let request_headers = RequestHeaders {
            names: vec![HeaderName::from_static("x-remote-user")],
            uids: Vec::new(),
            groups: vec![HeaderName::from_static("x-remote-group")],
            extra_prefixes: Vec::new(),
        };
        let authenticator =
            Authenticator::new(TokenFile::default()).with_request_headers(Some(request_headers));
        let proxy = Peer {
            front_proxy_until_seconds: Some(101),
            ..Peer::default()
        };
        let now = Timestamp::from_second(100).expect("a time");
        for (name, group, groups) in [
            (ANONYMOUS, "", &[][..]),
            (ANONYMOUS, UNAUTHENTICATED, &[UNAUTHENTICATED]),
            ("ann", "", &[AUTHENTICATED]),
            ("ann", "a", &["a", AUTHENTICATED]),
            ("ann", UNAUTHENTICATED, &[UNAUTHENTICATED]),
            ("ann", AUTHENTICATED, &[AUTHENTICATED]),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-remote-user", name.parse().expect("a header"));
            headers.insert("x-remote-group", group.parse().expect("a header"));
            let user = authenticator.authenticate(&proxy, None, &mut headers, "/api", now);
            let user = user.await.expect("a user");
            assert_eq!(user.groups, groups, "{name} in {group:?}");
        }
    }

    #[tokio::test]
    async fn a_certificate_counts_first_and_only_while_valid() {
        let user = authenticate(Some("Bearer secret"), Some(certified(101)))
            .await
            .expect("a user");
        assert_eq!(user.name, "bob");
        let user = authenticate(Some("Bearer secret"), Some(certified(99)))
            .await
            .expect("a user");
        assert_eq!(user.name, "ann");
        assert_eq!(authenticate(None, Some(certified(99))).await, None);
    }

    #[test]
    fn an_empty_token_is_that_of_nobody() {
        let asked = ["a".to_owned(), "a".to_owned()];
        let authenticator = Authenticator::new(TokenFile::default());
        assert_eq!(authenticator.without_token(&asked), None);
        let some_paths = Anonymous::Paths(vec!["/healthz".to_owned()]);
        let authenticator = authenticator.with_anonymous(some_paths);
        assert_eq!(authenticator.without_token(&asked), None);
        let authenticator = authenticator.with_anonymous(Anonymous::Served);
        let nobody = authenticator.without_token(&asked).expect("a user");
        assert!(is_anonymous(&nobody.user));
        assert_eq!(nobody.audiences, asked);
    }

    #[tokio::test]
    async fn only_who_shows_nothing_is_anonymous() {
        let authenticator =
            Authenticator::new(TokenFile::default()).with_anonymous(Anonymous::Served);
        let now = Timestamp::from_second(100).expect("a time");
        let shown = |certified, is_refused| Peer {
            user: certified,
            is_refused,
            ..Peer::default()
        };
        for (peer, authorization, expected) in [
            (Peer::default(), None, Some(ANONYMOUS)),
            (Peer::default(), Some("Basic secret"), Some(ANONYMOUS)),
            (Peer::default(), Some("Bearer wrong"), None),
            (shown(None, true), None, None),
            (shown(Some(certified(99)), false), None, None),
            (shown(Some(certified(101)), false), None, Some("bob")),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = authorization {
                headers.insert(AUTHORIZATION, value.parse().expect("a header"));
            }
            let user = authenticator.authenticate(&peer, None, &mut headers, "/livez", now);
            let user = user.await;
            let name = user.as_ref().map(|it| it.name.as_str());
            assert_eq!(name, expected, "{peer:?} {authorization:?}");
            let is_member = |it: &User| it.groups.iter().any(|group| group == AUTHENTICATED);
            let is_known = user.as_ref().is_some_and(is_member);
            assert_eq!(is_known, expected == Some("bob"));
        }
    }
}
