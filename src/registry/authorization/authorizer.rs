//! The configured modes, asked in their order.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{Attributes, NodeAuthorizer, NodeGraph, RoleTable, Rule, node_of};
use crate::registry::User;
use crate::registry::bootstrap::node_rules;

/// Whoever is in this group may do everything, whatever the modes.
const MASTERS: &str = "system:masters";

/// A way to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Everything is allowed.
    AlwaysAllow,
    /// Nothing is allowed that no other mode allows.
    AlwaysDeny,
    /// By roles and bindings.
    Rbac,
    /// What kubelets need.
    Node,
}

/// What an authorizer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why, if there is something to say.
    pub reason: String,
}

impl Decision {
    /// Why something that was refused was refused.
    #[must_use]
    pub fn explain(&self, asked: &Attributes<'_>) -> String {
        let refusal = asked.refusal();
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
    /// The rules.
    pub rules: Vec<Rule>,
    /// What is wrong with some of the user's bindings.
    pub errors: Vec<String>,
}

/// Decides who may do what.
#[derive(Debug)]
pub struct Authorizer {
    modes: Vec<AuthorizationMode>,
    roles: ArcSwap<RoleTable>,
    nodes: NodeAuthorizer,
}

impl Authorizer {
    /// An authorizer of these modes, which knows no roles yet.
    #[must_use]
    pub fn new(modes: Vec<AuthorizationMode>) -> Self {
        let nodes = NodeAuthorizer {
            graph: Arc::default(),
            rules: node_rules(),
        };
        Self {
            modes,
            roles: ArcSwap::default(),
            nodes,
        }
    }

    /// An authorizer that allows everything.
    #[must_use]
    pub fn always_allow() -> Arc<Self> {
        Arc::new(Self::new(vec![AuthorizationMode::AlwaysAllow]))
    }

    /// Whether roles and bindings count.
    #[must_use]
    pub fn uses_roles(&self) -> bool {
        self.modes.contains(&AuthorizationMode::Rbac)
    }

    /// Where it looks what kubelets need, if that counts.
    #[must_use]
    pub fn node_graph(&self) -> Option<&Arc<NodeGraph>> {
        let counts = self.modes.contains(&AuthorizationMode::Node);
        counts.then_some(&self.nodes.graph)
    }

    /// Decides by these roles from now on.
    pub fn set_roles(&self, roles: RoleTable) {
        self.roles.store(Arc::new(roles));
    }

    /// The rules of a role, of the cluster if the namespace is empty; `None` for one that is not known.
    #[must_use]
    pub fn role_rules(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        self.roles.load().rules(namespace, name)
    }

    /// Whether somebody may do something, and why.
    #[must_use]
    pub fn decide(&self, asked: &Attributes<'_>) -> Decision {
        let allowed = |reason| Decision {
            allowed: true,
            reason,
        };
        if asked.user.groups.iter().any(|group| group == MASTERS) {
            return allowed(String::new());
        }
        let mut reasons = Vec::new();
        for mode in &self.modes {
            match mode {
                AuthorizationMode::AlwaysAllow => return allowed(String::new()),
                AuthorizationMode::AlwaysDeny => {
                    reasons.push("Everything is forbidden.".to_owned())
                }
                AuthorizationMode::Rbac => match self.roles.load().decide(asked) {
                    Ok(binding) => return allowed(format!("RBAC: allowed by {binding}")),
                    Err(missing) if missing.is_empty() => {}
                    Err(missing) => reasons.push(format!("RBAC: {}", aggregate(missing))),
                },
                AuthorizationMode::Node => match self.nodes.decide(asked) {
                    Ok(()) => return allowed(String::new()),
                    Err(why) if why.is_empty() => {}
                    Err(why) => reasons.push(why),
                },
            }
        }
        Decision {
            allowed: false,
            reason: reasons.join("\n"),
        }
    }

    /// What a user may do in a namespace.
    #[must_use]
    pub fn rules(&self, user: &User, namespace: &str) -> SelfRules {
        let mut found = SelfRules::default();
        for mode in &self.modes {
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

/// Several errors as Go writes them.
fn aggregate(mut errors: Vec<&str>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    errors.retain(|error| seen.insert(*error));
    match errors.as_slice() {
        [one] => (*one).to_owned(),
        all => format!("[{}]", all.join(", ")),
    }
}

/// Every verb on every resource and every path.
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
    use super::*;

    #[test]
    fn modes_are_asked_in_order_and_masters_may_do_everything() {
        use AuthorizationMode::{AlwaysAllow, AlwaysDeny, Rbac};
        let mut user = User::default();
        let decide = |user: &User, modes: &[AuthorizationMode]| {
            let authorizer = Authorizer::new(modes.to_vec());
            authorizer.decide(&Attributes::of_path(user, "get", "/metrics"))
        };
        assert!(decide(&user, &[AlwaysDeny, AlwaysAllow]).allowed);
        assert!(!decide(&user, &[Rbac]).allowed);
        let refused = decide(&user, &[Rbac, AlwaysDeny]);
        assert!(!refused.allowed);
        assert_eq!(refused.reason, "Everything is forbidden.");
        user.groups.push(MASTERS.to_owned());
        assert!(decide(&user, &[AlwaysDeny]).allowed);
    }
}
