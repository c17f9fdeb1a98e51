//! The steps of a start that run after the server has begun to listen, and the checks of `/readyz` and `/livez` by which
//! each shows, under the names of kube-apiserver's post-start hooks.

use std::sync::Arc;

use ringwatch::clock::{Clock, Instant};
use ringwatch_apiserver::filters::Start;
use ringwatch_apiserver::health::{Check, Done, Health, Scope};

/// The check of kube-apiserver's hook that creates the first namespaces.
const NAMESPACES_CHECK: &str = "poststarthook/start-system-namespaces-controller";

/// The check of kube-apiserver's hook that creates the system's PriorityClasses, which are among the first objects.
const PRIORITY_CLASSES_CHECK: &str = "poststarthook/scheduling/bootstrap-system-priority-classes";

/// The check of kube-apiserver's hook that follows APIServices.
const AGGREGATION_CHECK: &str = "poststarthook/start-kube-aggregator-informers";

/// The check of kube-apiserver's hook that waits for the definitions of custom resources.
const DEFINITIONS_CHECK: &str = "poststarthook/crd-informer-synced";

/// The check of kube-apiserver's hook that creates the default roles. It is there where RBAC is enabled.
const ROLES_CHECK: &str = "poststarthook/rbac/bootstrap-roles";

/// The check of kube-apiserver's hook that creates the default flow schemas and priority levels. It is there where API
/// Priority and Fairness is enabled.
const FLOWS_CHECK: &str = "poststarthook/priority-and-fairness-config-producer";

/// The check of kube-apiserver's hook that begins to follow the encryption configuration. It is there where the file is
/// read again.
const ENCRYPTION_CHECK: &str = "poststarthook/start-encryption-provider-config-automatic-reload";

/// The steps; the server is ready once all are done. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct PostStartHooks {
    /// The first objects are created, namespaces among them.
    pub(super) bootstrapped: Done,
    /// The resources of all CustomResourceDefinitions are served.
    pub(super) definitions_synced: Done,
    /// The APIs of all APIServices are proxied.
    pub(super) aggregation_synced: Done,
    /// The steps of RBAC; `None` if it is disabled.
    pub(super) roles: Option<RoleHooks>,
    /// The Node authorizer's graph is complete; `None` without that authorizer.
    pub(super) nodes_synced: Option<Done>,
    /// The default flow schemas and priority levels are created; `None` without priority and fairness.
    pub(super) flows_ensured: Option<Done>,
    /// The encryption configuration is followed; `None` if its file is not read again.
    pub(super) encryption_followed: Option<Done>,
}

/// The steps of RBAC.
#[derive(Clone, Debug, Default)]
pub(super) struct RoleHooks {
    /// The default roles and bindings are created.
    pub(super) ensured: Done,
    /// The authorizer knows the stored roles and bindings.
    pub(super) synced: Done,
}

impl PostStartHooks {
    /// Returns the steps that must be done before requests for the API are answered.
    pub(super) fn before_the_api(&self) -> Start {
        let always = [&self.definitions_synced, &self.aggregation_synced];
        let roles = self.roles.as_ref().map(|roles| &roles.synced);
        let steps = always
            .into_iter()
            .chain(roles)
            .chain(self.nodes_synced.as_ref());
        Start(steps.cloned().collect())
    }

    /// Adds a check for each step that fails until it is done, but for `/livez` not before `alive_until`.
    pub(super) fn add_checks(&self, health: &mut Health, alive_until: Instant, clock: &Clock) {
        let mut add = |name, done: &Done| {
            health.add(name, Scope::Serving, done.check());
            health.add(name, Scope::Livez, after(alive_until, clock, done.check()));
        };
        add(NAMESPACES_CHECK, &self.bootstrapped);
        add(PRIORITY_CLASSES_CHECK, &self.bootstrapped);
        add(DEFINITIONS_CHECK, &self.definitions_synced);
        add(AGGREGATION_CHECK, &self.aggregation_synced);
        if let Some(roles) = &self.roles {
            add(ROLES_CHECK, &roles.ensured);
        }
        if let Some(ensured) = &self.flows_ensured {
            add(FLOWS_CHECK, ensured);
        }
        if let Some(followed) = &self.encryption_followed {
            add(ENCRYPTION_CHECK, followed);
        }
    }
}

/// Makes a check that does not fail before a time.
fn after(time: Instant, clock: &Clock, check: Check) -> Check {
    let clock = clock.clone();
    Arc::new(move || {
        if clock.now() > time {
            check()
        } else {
            Box::pin(async { Ok(()) })
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_check_does_not_fail_before_its_time() {
        let clock = Clock::real();
        let (done, time) = (Done::default(), clock.now() + Duration::from_secs(10));
        let check = after(time, &clock, done.check());
        check().await.expect("too early to fail");
        clock.sleep(Duration::from_secs(11)).await;
        check().await.expect_err("not done");
        done.set();
        check().await.expect("done");
    }
}
