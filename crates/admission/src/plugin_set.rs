//! The plugins that flags enable and disable.

use super::plugin_table::{Availability, NODE_RESTRICTION, PLUGINS, find};

/// Reads the name of a plugin, as in `--enable-admission-plugins`.
///
/// # Errors
/// A message for the user with the names of all plugins.
pub fn parse_plugin(text: &str) -> Result<&'static str, String> {
    match find(text) {
        Some(plugin) => Ok(plugin.name),
        None => Err(format!("no such admission plugin; here are {}", all_here())),
    }
}

fn all_here() -> String {
    let here = PLUGINS.iter();
    let here = here.filter(|it| it.availability != Availability::No);
    let names: Vec<_> = here.map(|it| it.name).collect();
    names.join(", ")
}

/// Returns the availability of a plugin; `None` if kube-apiserver has none of the name.
fn availability(name: &str) -> Option<Availability> {
    find(name).map(|it| it.availability)
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
        let mut absent = enabled
            .iter()
            .filter(|it| availability(it) == Some(Availability::No));
        match absent.next() {
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
        let others = PLUGINS.iter().map(|it| it.name);
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
        let is_default = availability(name) == Some(Availability::Yes);
        let enabled = is_default || self.enabled.contains(&name);
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
