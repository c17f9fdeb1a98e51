//! The plugins of kube-apiserver in their order, and which of them run in this server.

const NODE_RESTRICTION: &str = "NodeRestriction";

/// The names of kube-apiserver's plugins in the order in which they run, and whether this server has them. Those that
/// it has run unless they are switched off; but NodeRestriction only if it is switched on, or if the Node authorizer is
/// used, which relies on it.
const PLUGINS: [(&str, Availability); 37] = [
    ("AlwaysAdmit", Availability::No),
    ("NamespaceAutoProvision", Availability::No),
    ("NamespaceLifecycle", Availability::Yes),
    ("NamespaceExists", Availability::No),
    ("LimitPodHardAntiAffinityTopology", Availability::No),
    ("LimitRanger", Availability::Yes),
    ("ServiceAccount", Availability::Yes),
    (NODE_RESTRICTION, Availability::IfEnabled),
    ("TaintNodesByCondition", Availability::Yes),
    ("AlwaysPullImages", Availability::No),
    ("ImagePolicyWebhook", Availability::No),
    ("PodSecurity", Availability::Yes),
    ("PodNodeSelector", Availability::No),
    ("Priority", Availability::Yes),
    ("DefaultTolerationSeconds", Availability::Yes),
    ("PodTolerationRestriction", Availability::No),
    ("EventRateLimit", Availability::No),
    ("ExtendedResourceToleration", Availability::No),
    ("DefaultStorageClass", Availability::Yes),
    ("StorageObjectInUseProtection", Availability::Yes),
    ("OwnerReferencesPermissionEnforcement", Availability::No),
    ("PersistentVolumeClaimResize", Availability::Yes),
    ("RuntimeClass", Availability::Yes),
    ("CertificateApproval", Availability::Yes),
    ("CertificateSigning", Availability::Yes),
    ("ClusterTrustBundleAttest", Availability::No),
    ("CertificateSubjectRestriction", Availability::Yes),
    ("DefaultIngressClass", Availability::Yes),
    ("DenyServiceExternalIPs", Availability::No),
    ("PodTopologyLabels", Availability::Yes),
    ("NodeDeclaredFeatureValidator", Availability::No),
    ("MutatingAdmissionPolicy", Availability::Yes),
    ("MutatingAdmissionWebhook", Availability::Yes),
    ("ValidatingAdmissionPolicy", Availability::Yes),
    ("ValidatingAdmissionWebhook", Availability::Yes),
    ("ResourceQuota", Availability::Yes),
    ("AlwaysDeny", Availability::No),
];

/// Availability of a plugin in this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Availability {
    Yes,
    /// It is here, and runs if it is enabled.
    IfEnabled,
    No,
}

/// Returns the position of a plugin in kube-apiserver's order; the last for a name that is not in it.
pub(super) fn position(name: &str) -> usize {
    let found = PLUGINS.iter().position(|(known, _)| *known == name);
    found.unwrap_or(PLUGINS.len())
}

/// Reads the name of a plugin, as in `--enable-admission-plugins`.
///
/// # Errors
/// A message for the user with the names of all plugins.
pub fn parse_plugin(text: &str) -> Result<&'static str, String> {
    match PLUGINS.iter().find(|(known, _)| *known == text) {
        Some((name, _)) => Ok(name),
        None => Err(format!("no such admission plugin; here are {}", all_here())),
    }
}

fn all_here() -> String {
    let here = PLUGINS.iter().filter(|(_, here)| *here != Availability::No);
    let names: Vec<_> = here.map(|(name, _)| *name).collect();
    names.join(", ")
}

/// The names of the enabled plugins.
#[derive(Clone, Debug, Default)]
pub struct PluginSet {
    enabled: Vec<&'static str>,
    disabled: Vec<&'static str>,
}

impl PluginSet {
    /// Checks that plugins may be enabled and disabled together. To enable a plugin that is on by default changes
    /// nothing, but to disable it as well is a contradiction.
    ///
    /// # Errors
    /// A message for the user when a plugin is both enabled and disabled, or enabled and not here.
    pub fn check(enabled: &[&'static str], disabled: &[&'static str]) -> Result<(), String> {
        if let Some(both) = enabled.iter().find(|name| disabled.contains(name)) {
            return Err(format!(
                "{both} in enable-admission-plugins and disable-admission-plugins overlapped"
            ));
        }
        let absent = |name: &&&'static str| PLUGINS.contains(&(**name, Availability::No));
        match enabled.iter().find(absent) {
            Some(absent) => Err(format!(
                "{absent} is an admission plugin that this server does not have; here are {}",
                all_here()
            )),
            None => Ok(()),
        }
    }

    /// Makes the set of the default plugins and the enabled ones, without the disabled ones.
    #[must_use]
    pub fn new(enabled: &[&'static str], disabled: &[&'static str]) -> Self {
        Self {
            enabled: enabled.to_vec(),
            disabled: disabled.to_vec(),
        }
    }

    /// Makes the set of these plugins alone, as of `--admission-control`.
    #[must_use]
    pub fn only(enabled: &[&'static str]) -> Self {
        let others = PLUGINS.iter().map(|(name, _)| *name);
        Self {
            enabled: enabled.to_vec(),
            disabled: others.filter(|name| !enabled.contains(name)).collect(),
        }
    }

    /// Returns the set with NodeRestriction, on which the Node authorizer relies, unless it is disabled.
    #[must_use]
    pub fn with_node_restriction(mut self) -> Self {
        self.enabled.push(NODE_RESTRICTION);
        self
    }

    /// Returns true if a plugin is enabled.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let enabled = PLUGINS.contains(&(name, Availability::Yes)) || self.enabled.contains(&name);
        enabled && !self.disables(name)
    }

    /// Returns true if a plugin, which may not be here, is disabled by name.
    #[must_use]
    pub fn disables(&self, name: &str) -> bool {
        self.disabled.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_switched_by_name() {
        let all = PluginSet::new(&[], &[]);
        assert!(all.has("Priority") && all.has("NamespaceLifecycle"));
        assert!(!all.has("AlwaysDeny") && !all.has("Nope"));
        assert!(all.has("ServiceAccount"));
        assert!(!PluginSet::new(&[], &["ServiceAccount"]).has("ServiceAccount"));
        let name = NODE_RESTRICTION;
        assert!(!all.has(name) && all.with_node_restriction().has(name));
        let disabled = PluginSet::new(&[], &[name]).with_node_restriction();
        assert!(!disabled.has(name));
        let fewer = PluginSet::new(&[], &["Priority", "AlwaysPullImages"]);
        assert!(!fewer.has("Priority") && fewer.has("NamespaceLifecycle"));
    }

    #[test]
    fn a_list_of_plugins_excludes_all_others() {
        let only = PluginSet::only(&["Priority", "ServiceAccount"]);
        assert!(only.has("Priority") && only.has("ServiceAccount"));
        assert!(!only.has("LimitRanger"));
        assert!(!only.with_node_restriction().has(NODE_RESTRICTION));
        let none = PluginSet::only(&[]);
        assert!(!none.has("Priority"));
    }

    #[test]
    fn what_is_not_here_is_not_enabled() {
        assert_eq!(parse_plugin("NodeRestriction"), Ok("NodeRestriction"));
        let unknown = parse_plugin("Nope").expect_err("unknown");
        assert!(unknown.contains("NamespaceLifecycle, "), "{unknown}");
        let absent = PluginSet::check(&["AlwaysPullImages"], &[]).expect_err("absent");
        assert!(absent.contains("does not have"), "{absent}");
        assert_eq!(
            PluginSet::check(&["Priority"], &["AlwaysPullImages"]),
            Ok(())
        );
        let both = PluginSet::check(&["Priority"], &["Priority"]).expect_err("both");
        assert_eq!(
            both,
            "Priority in enable-admission-plugins and disable-admission-plugins overlapped"
        );
    }
}
