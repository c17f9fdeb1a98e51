//! `/healthz`, `/livez` and `/readyz`: named checks, together or one by one.
//!
//! The reasons of failures are logged; clients see only the names of failed checks, as in kube-apiserver.

mod slis;

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderValue, Response};
use prometheus_client::registry::Registry;
use ringwatch_http::ResponseBody;
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;

use self::slis::HealthMetrics;
use super::TextError;
use crate::plain;

/// A check that returns the reason of a failure.
pub type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The checks behind the three paths.
#[derive(Default)]
pub struct Health {
    checks: Vec<NamedCheck>,
    metrics: HealthMetrics,
}

struct NamedCheck {
    name: Cow<'static, str>,
    scope: Scope,
    check: Check,
}

/// The paths that a check is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `/healthz`, `/livez` and `/readyz`.
    Everywhere,
    /// `/healthz` and `/livez`: readiness has a check of its own for the same thing.
    Liveness,
    /// `/readyz` alone: the process is healthy but should get no requests.
    Readiness,
    /// `/livez` alone: the other two have a stricter check for the same thing.
    Livez,
    /// `/healthz` and `/readyz`: restarting the process would not help.
    Serving,
    /// `/healthz` alone: operators should know, but clients can be served.
    Advice,
}

/// A step that is done once at start; its check fails until then.
#[derive(Clone, Debug, Default)]
pub struct Done(Arc<SetOnce<()>>);

impl std::fmt::Debug for Health {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.checks.iter().map(|check| &check.name);
        formatter.debug_list().entries(names).finish()
    }
}

impl Done {
    /// Marks it as done.
    pub fn set(&self) {
        let _ = self.0.set(());
    }

    /// Returns true if it is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.initialized()
    }

    /// Waits until it is done.
    pub async fn wait(&self) {
        self.0.wait().await;
    }

    /// Returns the check that it is done.
    #[must_use]
    pub fn check(&self) -> Check {
        let done = self.clone();
        check(move || match done.0.get() {
            Some(()) => Ok(()),
            None => Err("not finished".to_owned()),
        })
    }
}

/// Makes a check of a function that does not wait.
pub fn check(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Check {
    Arc::new(move || {
        let result = check();
        Box::pin(async move { result })
    })
}

impl Health {
    /// Creates the checks that every server has: it answers, it logs, and it is not shutting down.
    #[must_use]
    pub fn new(shutting_down: CancellationToken) -> Self {
        let mut health = Self::default();
        health.add("ping", Scope::Everywhere, check(|| Ok(())));
        health.add("log", Scope::Everywhere, check(|| Ok(())));
        let shutdown = check(move || {
            if shutting_down.is_cancelled() {
                Err("process is shutting down".to_owned())
            } else {
                Ok(())
            }
        });
        health.add("shutdown", Scope::Readiness, shutdown);
        health
    }

    /// Adds a check. Its name becomes a path below those of the scope, such as `/readyz/NAME`.
    pub fn add(&mut self, name: impl Into<Cow<'static, str>>, scope: Scope, check: Check) {
        let name = name.into();
        self.checks.push(NamedCheck { name, scope, check });
    }

    /// Registers the metrics of the checks' results.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    /// Returns all paths of health.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for root in ["healthz", "livez", "readyz"] {
            paths.push(format!("/{root}"));
            let checks = self.checks_of(root);
            paths.extend(checks.map(|check| format!("/{root}/{}", check.name)));
        }
        paths.sort();
        paths
    }

    /// Answers the request if the path is one of health; else returns `None`.
    pub async fn answer(&self, path: &str, query: &str) -> Option<Response<ResponseBody>> {
        let (root, name) = match path.strip_prefix('/')?.split_once('/') {
            None => (path.strip_prefix('/')?, None),
            Some((root, name)) => (root, Some(name)),
        };
        let root = ["healthz", "livez", "readyz"]
            .into_iter()
            .find(|known| *known == root)?;
        match name.filter(|name| !name.is_empty()) {
            None => Some(self.all(root, query).await),
            Some(name) => {
                let named = self.checks_of(root).find(|check| check.name == name)?;
                Some(match (named.check)().await {
                    Ok(()) => plain("ok"),
                    Err(why) => {
                        let text = format!("internal server error: {why}");
                        TextError::Internal(&text).response()
                    }
                })
            }
        }
    }

    fn checks_of<'a>(&'a self, root: &'a str) -> impl Iterator<Item = &'a NamedCheck> {
        let checks = self.checks.iter();
        checks.filter(move |check| match check.scope {
            Scope::Everywhere => true,
            Scope::Liveness => root != "readyz",
            Scope::Readiness => root == "readyz",
            Scope::Livez => root == "livez",
            Scope::Serving => root != "livez",
            Scope::Advice => root == "healthz",
        })
    }

    async fn all(&self, root: &'static str, query: &str) -> Response<ResponseBody> {
        let (verbose, mut excluded) = parameters(query);
        let (mut lines, mut failed) = (String::new(), Vec::new());
        for NamedCheck { name, check, .. } in self.checks_of(root) {
            if excluded.iter().any(|excluded| excluded == &**name) {
                excluded.retain(|excluded| excluded != &**name);
                lines.push_str(&format!("[+]{name} excluded: ok\n"));
                continue;
            }
            let outcome = check().await;
            self.metrics.observe(name, root, outcome.is_ok());
            match outcome {
                Ok(()) => lines.push_str(&format!("[+]{name} ok\n")),
                Err(why) => {
                    lines.push_str(&format!("[-]{name} failed: reason withheld\n"));
                    failed.push(format!("{name}: {why}"));
                }
            }
        }
        if !excluded.is_empty() {
            excluded.sort();
            excluded.dedup();
            let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
            lines.push_str(&format!(
                "warn: some health checks cannot be excluded: no matches for {}\n",
                names.join(",")
            ));
        }
        if !failed.is_empty() {
            tracing::info!(checks = failed.join(", "), "{root} failed");
            let text = format!("{lines}{root} check failed");
            return TextError::Internal(&text).response();
        }
        let mut response = plain(if verbose {
            format!("{lines}{root} check passed\n")
        } else {
            "ok".to_owned()
        });
        let no_sniff = HeaderValue::from_static("nosniff");
        response
            .headers_mut()
            .insert(X_CONTENT_TYPE_OPTIONS, no_sniff);
        response
    }
}

/// Returns true if every check is to be named, and the checks that are excluded.
fn parameters(query: &str) -> (bool, Vec<String>) {
    let (mut verbose, mut excluded) = (false, Vec::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "verbose" => verbose = true,
            "exclude" => excluded.extend(value.split(',').map(String::from)),
            _ => {}
        }
    }
    (verbose, excluded)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use prometheus_client::encoding::text::encode;

    use super::*;

    async fn ask(health: &Health, path: &str, query: &str) -> Option<(u16, String)> {
        let response = health.answer(path, query).await?;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body");
        Some((
            code,
            String::from_utf8(body.to_bytes().to_vec()).expect("text"),
        ))
    }

    #[tokio::test]
    async fn all_is_well() {
        let health = Health::new(CancellationToken::new());
        assert_eq!(ask(&health, "/healthz", "").await, Some((200, "ok".into())));
        assert_eq!(
            ask(&health, "/livez/ping", "").await,
            Some((200, "ok".into()))
        );
        let verbose = "[+]ping ok\n[+]log ok\n[+]shutdown ok\nreadyz check passed\n";
        assert_eq!(
            ask(&health, "/readyz", "verbose").await,
            Some((200, verbose.into()))
        );
        assert_eq!(ask(&health, "/livez/none", "").await, None);
        assert_eq!(ask(&health, "/livez/shutdown", "").await, None);
        assert_eq!(ask(&health, "/other", "").await, None);
    }

    #[tokio::test]
    async fn a_failure_is_named_but_not_explained() {
        let shutting_down = CancellationToken::new();
        let health = Health::new(shutting_down.clone());
        shutting_down.cancel();
        let failed =
            "[+]ping ok\n[+]log ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n";
        assert_eq!(
            ask(&health, "/readyz", "").await,
            Some((500, failed.into()))
        );
        assert_eq!(ask(&health, "/livez", "").await, Some((200, "ok".into())));
        let (mut registry, mut text) = (Registry::default(), String::new());
        health.register(&mut registry);
        encode(&mut text, &registry).expect("text");
        for line in [
            r#"kubernetes_healthcheck{name="shutdown",type="readyz"} 0"#,
            r#"kubernetes_healthcheck{name="log",type="livez"} 1"#,
            r#"kubernetes_healthchecks_total{name="shutdown",type="readyz",status="error"} 1"#,
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[tokio::test]
    async fn checks_can_be_excluded() {
        let mut health = Health::new(CancellationToken::new());
        let done = Done::default();
        health.add("etcd", Scope::Liveness, done.check());
        assert_eq!(ask(&health, "/livez", "").await.map(|it| it.0), Some(500));
        let lines = "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n\
                     warn: some health checks cannot be excluded: no matches for \"x\"\n\
                     livez check passed\n";
        assert_eq!(
            ask(&health, "/livez", "verbose=1&exclude=etcd&exclude=x").await,
            Some((200, lines.into()))
        );
        let (code, text) = ask(&health, "/livez/etcd", "").await.expect("an answer");
        assert_eq!(
            (code, text.as_str()),
            (500, "internal server error: not finished\n")
        );
        done.set();
        assert_eq!(ask(&health, "/livez", "").await.map(|it| it.0), Some(200));
    }
}
