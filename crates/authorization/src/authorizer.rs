//! The authorizer of a server: the configured modes and webhooks, asked in their order.

use std::sync::Arc;

use arc_swap::ArcSwap;
use ringwatch_apimachinery::User;
use ringwatch_offload::{Work, offload};

use super::webhook::AccessAnswer;
use super::{Attributes, NodeAuthorizer, NodeGraph, RoleTable, Rule, WebhookAuthorizer, node_of};
use crate::node_rules;

/// The group whose members may do everything, whatever the modes.
const MASTERS: &str = "system:masters";

/// Maximum number of words of a user's roles for which a request stays on its worker: comparing them takes about as
/// long as reading a body of [`ringwatch_offload::LARGE_BYTES`].
const ROLE_WORDS_MAX: usize = 10_000;

/// A mode of `--authorization-mode` that this server decides by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Allows every request.
    AlwaysAllow,
    /// Has no opinion, so that nothing is allowed that no other step allows.
    AlwaysDeny,
    /// Allows what roles and bindings grant: RBAC.
    Rbac,
    /// Allows kubelets what the objects on their node need: the Node authorizer.
    Node,
}

/// One of the steps of authorization, which are taken in turn until one decides.
#[derive(Clone, Debug)]
pub enum AuthorizerStep {
    /// A built-in mode.
    Mode(AuthorizationMode),
    /// A webhook, asked with a SubjectAccessReview.
    Webhook(Arc<WebhookAuthorizer>),
}

/// The decision of an authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// True if the request is allowed.
    pub allowed: bool,
    /// True if the request was denied outright, so that later authorizers were not asked.
    pub denied: bool,
    /// The reason, in kube-apiserver's words; empty if there is none.
    pub reason: String,
    /// The errors of webhooks that have not answered, or have both allowed and denied; empty if there are none.
    pub error: String,
}

impl Decision {
    /// Explains to the client why the request was refused.
    #[must_use]
    pub fn explain(&self, attributes: &Attributes<'_>) -> String {
        let refusal = attributes.refusal();
        if self.reason.is_empty() {
            refusal
        } else {
            format!("{refusal}: {}", self.reason)
        }
    }
}

/// The rules that a user has in a namespace.
#[derive(Debug, Default)]
pub struct SelfRules {
    /// The rules that some role grants the user.
    pub rules: Vec<Rule>,
    /// The errors in some of the user's bindings.
    pub errors: Vec<String>,
}

/// Decides whether a user may make a request, by its steps in their order.
#[derive(Debug)]
pub struct Authorizer {
    steps: ArcSwap<Vec<AuthorizerStep>>,
    roles: ArcSwap<RoleTable>,
    nodes: NodeAuthorizer,
}

impl Authorizer {
    /// Creates an authorizer of these steps, which knows no roles yet.
    #[must_use]
    pub fn new(steps: Vec<AuthorizerStep>) -> Self {
        let nodes = NodeAuthorizer {
            graph: Arc::default(),
            rules: node_rules(),
        };
        Self {
            steps: ArcSwap::from_pointee(steps),
            roles: ArcSwap::default(),
            nodes,
        }
    }

    /// Creates an authorizer that allows everything.
    #[must_use]
    pub fn always_allow() -> Arc<Self> {
        Arc::new(Self::new(vec![AuthorizerStep::Mode(
            AuthorizationMode::AlwaysAllow,
        )]))
    }

    /// Returns true if RBAC is enabled.
    #[must_use]
    pub fn uses_roles(&self) -> bool {
        self.has(AuthorizationMode::Rbac)
    }

    fn has(&self, wanted: AuthorizationMode) -> bool {
        has(&self.steps.load(), wanted)
    }

    /// Replaces the steps.
    ///
    /// # Errors
    /// A line that says why not: what roles and nodes need is followed from the start or never.
    pub fn set_steps(&self, steps: Vec<AuthorizerStep>) -> Result<(), String> {
        for (mode, name) in [
            (AuthorizationMode::Rbac, "RBAC"),
            (AuthorizationMode::Node, "Node"),
        ] {
            if has(&steps, mode) != self.has(mode) {
                return Err(format!("{name} authorizers cannot be added or removed"));
            }
        }
        self.steps.store(Arc::new(steps));
        Ok(())
    }

    /// Returns true if a decision may have to wait for a webhook.
    #[must_use]
    pub fn asks_webhooks(&self) -> bool {
        let steps = self.steps.load();
        steps
            .iter()
            .any(|step| matches!(step, AuthorizerStep::Webhook(_)))
    }

    /// Returns the graph of pods and nodes by which the Node authorizer decides; `None` if that mode is not enabled.
    #[must_use]
    pub fn node_graph(&self) -> Option<&Arc<NodeGraph>> {
        self.has(AuthorizationMode::Node)
            .then_some(&self.nodes.graph)
    }

    /// Replaces the roles.
    pub fn set_roles(&self, roles: RoleTable) {
        self.roles.store(Arc::new(roles));
    }

    /// Returns the rules of a role, or of a ClusterRole if the namespace is empty; `None` for one that is not known.
    #[must_use]
    pub fn role_rules(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        self.roles.load().rules(namespace, name)
    }

    /// Decides whether a request is allowed, and why.
    pub async fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        let mut decision = Deciding::new(attributes);
        let steps = self.steps.load_full();
        for step in steps.iter() {
            if decision.is_made() {
                break;
            }
            decision.hear(match step {
                AuthorizerStep::Mode(mode) => {
                    self.leave_for_roles(*mode, attributes).await;
                    self.decide_here(*mode, attributes)
                }
                AuthorizerStep::Webhook(webhook) => webhook.decide(attributes).await,
            });
        }
        decision.end()
    }

    /// Moves the request to other threads before a long search of roles.
    async fn leave_for_roles(&self, mode: AuthorizationMode, attributes: &Attributes<'_>) {
        let roles = || {
            self.roles
                .load()
                .words(attributes.user, attributes.namespace)
        };
        if mode == AuthorizationMode::Rbac && roles() > ROLE_WORDS_MAX {
            offload(Work::Permissions).await;
        }
    }

    /// Decides without waiting: webhooks are not called, but their cached answers count.
    #[must_use]
    pub fn decide_now(&self, attributes: &Attributes<'_>) -> Decision {
        let mut decision = Deciding::new(attributes);
        for step in self.steps.load().iter() {
            if decision.is_made() {
                break;
            }
            decision.hear(match step {
                AuthorizerStep::Mode(mode) => self.decide_here(*mode, attributes),
                AuthorizerStep::Webhook(webhook) => webhook.decide_now(attributes),
            });
        }
        decision.end()
    }

    /// Returns the answer of one of the built-in modes.
    fn decide_here(&self, mode: AuthorizationMode, attributes: &Attributes<'_>) -> AccessAnswer {
        match mode {
            AuthorizationMode::AlwaysAllow => AccessAnswer::Allowed(String::new()),
            AuthorizationMode::AlwaysDeny => {
                AccessAnswer::NoOpinion("Everything is forbidden.".to_owned())
            }
            AuthorizationMode::Rbac => match self.roles.load().decide(attributes) {
                Ok(binding) => AccessAnswer::Allowed(format!("RBAC: allowed by {binding}")),
                Err(missing) if missing.is_empty() => AccessAnswer::NoOpinion(String::new()),
                Err(missing) => AccessAnswer::NoOpinion(format!("RBAC: {}", aggregate(missing))),
            },
            AuthorizationMode::Node => match self.nodes.decide(attributes) {
                Ok(()) => AccessAnswer::Allowed(String::new()),
                Err(why) => AccessAnswer::NoOpinion(why),
            },
        }
    }

    /// Returns the rules of a user in a namespace.
    #[must_use]
    pub fn rules(&self, user: &User, namespace: &str) -> SelfRules {
        let mut found = SelfRules::default();
        for step in self.steps.load().iter() {
            let mode = match step {
                AuthorizerStep::Mode(mode) => mode,
                AuthorizerStep::Webhook(_) => {
                    let why = "webhook authorizer does not support user rule resolution";
                    found.errors.push(why.to_owned());
                    continue;
                }
            };
            match mode {
                AuthorizationMode::AlwaysAllow => found.rules.extend(everything()),
                AuthorizationMode::AlwaysDeny => {}
                AuthorizationMode::Node if node_of(user).is_some() => {
                    let why = "node authorizer does not support user rule resolution";
                    found.errors.push(why.to_owned());
                }
                AuthorizationMode::Node => {}
                AuthorizationMode::Rbac => {
                    for grant in self.roles.load().grants(user, namespace) {
                        match &grant.rules {
                            Ok(rules) => found.rules.extend(rules.iter().cloned()),
                            Err(why) => found.errors.push(why.to_string()),
                        }
                    }
                }
            }
        }
        found
    }
}

fn has(steps: &[AuthorizerStep], wanted: AuthorizationMode) -> bool {
    let mut steps = steps.iter();
    steps.any(|step| matches!(step, AuthorizerStep::Mode(mode) if *mode == wanted))
}

/// A decision in progress.
struct Deciding {
    made: Option<Decision>,
    reasons: Vec<String>,
    errors: Vec<String>,
}

impl Deciding {
    fn new(attributes: &Attributes<'_>) -> Self {
        let is_master = attributes.user.groups.iter().any(|group| group == MASTERS);
        Self {
            made: is_master.then(|| Decision {
                allowed: true,
                ..Decision::default()
            }),
            reasons: Vec::new(),
            errors: Vec::new(),
        }
    }

    fn is_made(&self) -> bool {
        self.made.is_some()
    }

    fn hear(&mut self, answer: AccessAnswer) {
        match answer {
            AccessAnswer::Allowed(reason) => {
                self.made = Some(Decision {
                    allowed: true,
                    reason,
                    ..Decision::default()
                });
            }
            AccessAnswer::Denied(reason) => self.deny(reason, String::new()),
            AccessAnswer::NoOpinion(reason) => self.note(reason),
            AccessAnswer::Contradictory(reason) => {
                let why = "webhook subject access review returned both allow and deny response";
                self.deny(reason, why.to_owned());
            }
            AccessAnswer::Failed { why, denies: true } => self.deny(String::new(), why),
            AccessAnswer::Failed { why, denies: false } => self.errors.push(why),
        }
    }

    /// Denies the request, for the reasons of one authorizer alone, whatever others have said before it.
    fn deny(&mut self, reason: String, error: String) {
        self.made = Some(Decision {
            allowed: false,
            denied: true,
            reason,
            error,
        });
    }

    fn note(&mut self, reason: String) {
        let reason = Some(reason).filter(|it| !it.is_empty());
        self.reasons.extend(reason);
    }

    /// Returns the decision when no authorizer has made one.
    fn not_decided(&self) -> Decision {
        let errors = self.errors.iter().map(String::as_str).collect::<Vec<_>>();
        Decision {
            allowed: false,
            denied: false,
            reason: self.reasons.join("\n"),
            error: if errors.is_empty() {
                String::new()
            } else {
                aggregate(errors)
            },
        }
    }

    fn end(mut self) -> Decision {
        let made = self.made.take();
        made.unwrap_or_else(|| self.not_decided())
    }
}

/// Joins several errors as Go's `NewAggregate` writes them.
fn aggregate(mut errors: Vec<&str>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    errors.retain(|error| seen.insert(*error));
    match errors.as_slice() {
        [one] => (*one).to_owned(),
        all => format!("[{}]", all.join(", ")),
    }
}

/// Returns rules that allow every verb on every resource and every path.
#[must_use]
pub fn everything() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    let resources = Rule {
        verbs: all(),
        api_groups: all(),
        resources: all(),
        ..Rule::default()
    };
    let paths = Rule {
        verbs: all(),
        non_resource_urls: all(),
        ..Rule::default()
    };
    [resources, paths]
}

#[cfg(test)]
mod tests {
    use ringwatch_offload::{OffloadProgress, OffloadableRequest};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn modes_are_asked_in_order_and_masters_may_do_everything() {
        use AuthorizationMode::{AlwaysAllow, AlwaysDeny, Rbac};
        let mut user = User::default();
        let decide = async |user: &User, modes: &[AuthorizationMode]| {
            let authorizer =
                Authorizer::new(modes.iter().copied().map(AuthorizerStep::Mode).collect());
            let attributes = Attributes::of_path(user, "get", "/metrics");
            authorizer.decide(&attributes).await
        };
        assert!(decide(&user, &[AlwaysDeny, AlwaysAllow]).await.allowed);
        assert!(!decide(&user, &[Rbac]).await.allowed);
        let refused = decide(&user, &[Rbac, AlwaysDeny]).await;
        assert!(!refused.allowed);
        assert_eq!(refused.reason, "Everything is forbidden.");
        user.groups.push(MASTERS.to_owned());
        assert!(decide(&user, &[AlwaysDeny]).await.allowed);
    }

    #[test]
    fn a_webhook_that_allows_and_denies_denies_with_an_error() {
        let user = User::default();
        let mut deciding = Deciding::new(&Attributes::of_path(&user, "get", "/metrics"));
        deciding.hear(AccessAnswer::Contradictory("both".to_owned()));
        assert!(deciding.is_made());
        let decision = deciding.end();
        assert!(decision.denied && !decision.allowed);
        assert_eq!(decision.reason, "both");
        assert_eq!(
            decision.error,
            "webhook subject access review returned both allow and deny response"
        );
    }

    #[test]
    fn a_denial_tells_its_own_reasons_alone() {
        let user = User::default();
        let deciding = || {
            let mut deciding = Deciding::new(&Attributes::of_path(&user, "get", "/metrics"));
            deciding.hear(AccessAnswer::NoOpinion("unknown".to_owned()));
            deciding.hear(AccessAnswer::Failed {
                why: "timeout".to_owned(),
                denies: false,
            });
            assert!(!deciding.is_made());
            deciding
        };
        let told = |deciding: Deciding| {
            let decision = deciding.end();
            (decision.denied, decision.reason, decision.error)
        };
        let texts =
            |denied, reason: &str, error: &str| (denied, reason.to_owned(), error.to_owned());
        assert_eq!(told(deciding()), texts(false, "unknown", "timeout"));
        let mut denied = deciding();
        denied.hear(AccessAnswer::Denied("no".to_owned()));
        assert_eq!(told(denied), texts(true, "no", ""));
        let mut failed = deciding();
        failed.hear(AccessAnswer::Failed {
            why: "refused".to_owned(),
            denies: true,
        });
        assert_eq!(told(failed), texts(true, "", "refused"));
    }

    /// Roles that let `jane` get so many paths, `/metrics` among them.
    fn roles_of_jane(paths: usize) -> RoleTable {
        let paths = (1..paths).map(|path| format!("/{path}"));
        let paths: Vec<_> = paths.chain(Some("/metrics".to_owned())).collect();
        let rule = json!({"verbs": ["get"], "nonResourceURLs": paths});
        let role = json!({"metadata": {"name": "r"}, "rules": [rule]});
        let binding = json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "jane"}]});
        let role = serde_json::from_value(role).expect("a role");
        let binding = serde_json::from_value(binding).expect("a binding");
        RoleTable::new(&[Arc::new(role)], &[Arc::new(binding)])
    }

    #[tokio::test]
    async fn a_request_is_offloaded_before_it_looks_through_many_roles() {
        for (paths, is_offloaded) in [(10, false), (ROLE_WORDS_MAX, true)] {
            let authorizer = Authorizer::new(vec![AuthorizerStep::Mode(AuthorizationMode::Rbac)]);
            authorizer.set_roles(roles_of_jane(paths));
            let request = OffloadableRequest::new(Box::pin(async move {
                let mut user = User::default();
                "jane".clone_into(&mut user.name);
                let attributes = Attributes::of_path(&user, "get", "/metrics");
                authorizer.decide(&attributes).await.allowed
            }));
            let allowed = match request.start().await {
                OffloadProgress::Answered(allowed) => {
                    assert!(
                        !is_offloaded,
                        "it looked through {paths} paths where it was"
                    );
                    allowed
                }
                OffloadProgress::Offload(asked, rest) => {
                    assert!(is_offloaded, "it was moved for {paths} paths");
                    assert_eq!(asked.work, Work::Permissions);
                    rest.resume().await
                }
            };
            assert!(allowed);
        }
    }
}
