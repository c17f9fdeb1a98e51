//! Checks the labels of a namespace, and warns of pods in it that violate a level that is newly enforced.

use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::get;
use ringwatch_registry::{Operation, Request};
use serde_json::Value;

use super::PodSecurity;
use super::level::{Level, LevelVersion};
use super::policy::{PREFIX, Policy};

impl PodSecurity {
    /// Refuses labels that are not valid, unless they are so already.
    pub(super) async fn validate_namespace(
        &self,
        request: &Request<'_>,
        namespace: &Value,
    ) -> Result<(), Error> {
        if !request.subresource().is_empty() {
            return Ok(());
        }
        let defaults = &self.configuration.defaults;
        let read = |object| Policy::by_labels(&|key| label(object, key), defaults);
        let (policy, errors) = read(namespace);
        let is_exempt = self.configuration.exempt_namespaces.contains(request.name);
        let old = request
            .old
            .filter(|_| request.operation == Operation::Update);
        let Some(old) = old else {
            if !errors.is_empty() {
                return Err(request.invalid(errors));
            }
            if is_exempt {
                self.warn_of_exemption(request, &policy, namespace);
            }
            return Ok(());
        };
        let (old, old_errors) = read(old);
        if !errors.is_empty() && errors != old_errors {
            return Err(request.invalid(errors));
        }
        if !forbids_more(policy.enforce, old.enforce) {
            return Ok(());
        }
        if is_exempt {
            self.warn_of_exemption(request, &policy, namespace);
            return Ok(());
        }
        for warning in self.warnings_of_pods(request, policy.enforce).await {
            request.context.warn(warning);
        }
        Ok(())
    }

    /// Warns that labels have no effect, since the namespace is exempt.
    fn warn_of_exemption(&self, request: &Request<'_>, policy: &Policy, namespace: &Value) {
        if policy.is_privileged() || policy.is_equivalent(&self.configuration.defaults) {
            return;
        }
        let modes = [
            ("enforce", policy.enforce),
            ("audit", policy.audit),
            ("warn", policy.warn),
        ];
        let is_set = |mode: &str| {
            let keys = [format!("{PREFIX}{mode}"), format!("{PREFIX}{mode}-version")];
            keys.iter().any(|key| label(namespace, key).is_some())
        };
        let set: Vec<String> = modes
            .into_iter()
            .filter(|(mode, level)| level.level != Level::Privileged && is_set(mode))
            .map(|(mode, level)| format!("{mode}={level}"))
            .collect();
        request.context.warn(format!(
            "namespace {:?} is exempt from Pod Security, and the policy ({}) will be ignored",
            request.name,
            set.join(", ")
        ));
    }
}

/// Returns true if a level may forbid pods that another one allows: not if it is less strict in the same version.
fn forbids_more(new: LevelVersion, old: LevelVersion) -> bool {
    let relaxes = new.version == old.version && new.level <= old.level;
    new.level != Level::Privileged && !relaxes
}

fn label<'a>(namespace: &'a Value, key: &str) -> Option<&'a str> {
    get(namespace, "metadata.labels")?.get(key)?.as_str()
}
