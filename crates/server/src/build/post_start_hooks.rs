//! The steps of a start that run after the server has begun to listen, and the checks of `/readyz` and `/livez` by
//! which each shows, under the names of kube-apiserver's post-start hooks.

use std::sync::Arc;

use ringwatch::clock::{Clock, Instant};
use ringwatch_endpoints::health::{Check, Done, Health, Scope};
use ringwatch_filters::Start;

/// The checks of kube-apiserver's hooks for the first objects: the system's namespaces and PriorityClasses, the record
/// of allocated service addresses, the authorities for servers of aggregated APIs, and the APIServices of built-in
/// APIs.
const FIRST_OBJECTS_CHECKS: [&str; 5] = [
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/start-cluster-authentication-info-controller",
    "autoregister-completion",
];

/// The checks of kube-apiserver's hooks that follow the objects of admission.
const ADMISSION_CHECKS: [&str; 2] = [
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/start-apiserver-admission-initializer",
];

/// The checks of kube-apiserver's hooks that follow the definitions of custom resources, and wait for them.
const DEFINITIONS_CHECKS: [&str; 3] = [
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
];

/// The checks of kube-apiserver's hooks that follow APIServices, proxy their APIs, and ask their servers.
const AGGREGATION_CHECKS: [&str; 4] = [
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-openapi-controller",
];

/// The checks of kube-apiserver's hooks that keep the APIServices of custom resources, and the conditions of local
/// ones.
const LOCAL_APIS_CHECKS: [&str; 2] = [
    "poststarthook/kube-apiserver-autoregistration",
    "poststarthook/apiservice-status-local-available-controller",
];

/// The check of kube-apiserver's hook that publishes the address of the API.
const ADDRESS_CHECKS: [&str; 1] = ["poststarthook/bootstrap-controller"];

/// The check of kube-apiserver's hook that waits for the watch caches, though not for ever.
const STORAGE_CHECKS: [&str; 1] = ["poststarthook/storage-readiness"];

/// The check of kube-apiserver's hook that creates the default roles. It is there where RBAC is enabled.
const ROLES_CHECK: &str = "poststarthook/rbac/bootstrap-roles";

/// The check of kube-apiserver's hook that creates the default flow schemas and priority levels. It is there where API
/// Priority and Fairness is enabled.
const FLOWS_CHECK: &str = "poststarthook/priority-and-fairness-config-producer";

/// The check of kube-apiserver's hook that begins to follow the encryption configuration. It is there where the file is
/// read again.
const ENCRYPTION_CHECK: &str = "poststarthook/start-encryption-provider-config-automatic-reload";

/// The steps; the server is ready once all are done. Clones are the same. By default none is done, and there are those
/// that no flag disables.
#[derive(Clone, Debug, Default)]
pub(crate) struct PostStartHooks {
    /// The first objects are created, namespaces among them.
    pub(crate) bootstrapped: Done,
    /// The webhooks and policies of admission are known.
    pub(crate) admission_initialized: Done,
    /// The start has waited for the watch caches.
    pub(crate) storage_awaited: Done,
    /// The address of the API is published, if it is to be.
    pub(crate) address_published: Done,
    /// The resources of all CustomResourceDefinitions are served.
    pub(crate) definitions_synced: Done,
    /// The APIs of all APIServices are proxied.
    pub(crate) aggregation_synced: Done,
    /// The APIServices of custom resources are there.
    pub(crate) custom_apis_published: Done,
    /// The steps of RBAC; `None` if it is disabled.
    pub(crate) roles: Option<RoleHooks>,
    /// The Node authorizer's graph is complete; `None` without that authorizer.
    pub(crate) nodes_synced: Option<Done>,
    /// The default flow schemas and priority levels are created; `None` without priority and fairness.
    pub(crate) flows_ensured: Option<Done>,
    /// The encryption configuration is followed; `None` if its file is not read again.
    pub(crate) encryption_followed: Option<Done>,
}

/// The steps of RBAC.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoleHooks {
    /// The default roles and bindings are created.
    pub(crate) ensured: Done,
    /// The authorizer knows the stored roles and bindings.
    pub(crate) synced: Done,
}

impl PostStartHooks {
    /// Returns the steps that must be done before requests for the API are answered.
    pub(crate) fn before_the_api(&self) -> Start {
        let always = [&self.definitions_synced, &self.aggregation_synced];
        let roles = self.roles.as_ref().map(|roles| &roles.synced);
        let steps = always
            .into_iter()
            .chain(roles)
            .chain(self.nodes_synced.as_ref());
        Start(steps.cloned().collect())
    }

    /// Adds a check for each step that fails until it is done, but for `/livez` not before `alive_until`.
    pub(crate) fn add_checks(&self, health: &mut Health, alive_until: Instant, clock: &Clock) {
        let mut add = |name, done: &Done| {
            health.add(name, Scope::Serving, done.check());
            health.add(name, Scope::Livez, after(alive_until, clock, done.check()));
        };
        let steps: [(&[&str], &Done); 7] = [
            (&ADMISSION_CHECKS, &self.admission_initialized),
            (&STORAGE_CHECKS, &self.storage_awaited),
            (&DEFINITIONS_CHECKS, &self.definitions_synced),
            (&ADDRESS_CHECKS, &self.address_published),
            (&FIRST_OBJECTS_CHECKS, &self.bootstrapped),
            (&AGGREGATION_CHECKS, &self.aggregation_synced),
            (&LOCAL_APIS_CHECKS, &self.custom_apis_published),
        ];
        for (names, done) in steps {
            names.iter().for_each(|name| add(*name, done));
        }
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

    /// A step, and its checks of those that kube-apiserver's own tests require of all three paths, beside `ping`, `log`
    /// and `etcd`.
    type Required = (fn(&PostStartHooks) -> &Done, &'static [&'static str]);

    const REQUIRED: [Required; 7] = [
        (
            |it| &it.bootstrapped,
            &[
                "poststarthook/start-system-namespaces-controller",
                "poststarthook/start-service-ip-repair-controllers",
                "poststarthook/scheduling/bootstrap-system-priority-classes",
                "poststarthook/start-cluster-authentication-info-controller",
                "autoregister-completion",
            ],
        ),
        (
            |it| &it.admission_initialized,
            &[
                "poststarthook/start-apiserver-admission-initializer",
                "poststarthook/generic-apiserver-start-informers",
            ],
        ),
        (
            |it| &it.storage_awaited,
            &["poststarthook/storage-readiness"],
        ),
        (
            |it| &it.address_published,
            &["poststarthook/bootstrap-controller"],
        ),
        (
            |it| &it.definitions_synced,
            &[
                "poststarthook/start-apiextensions-informers",
                "poststarthook/start-apiextensions-controllers",
                "poststarthook/crd-informer-synced",
            ],
        ),
        (
            |it| &it.aggregation_synced,
            &[
                "poststarthook/start-kube-aggregator-informers",
                "poststarthook/apiservice-registration-controller",
                "poststarthook/apiservice-status-remote-available-controller",
                "poststarthook/apiservice-openapi-controller",
            ],
        ),
        (
            |it| &it.custom_apis_published,
            &[
                "poststarthook/apiservice-status-local-available-controller",
                "poststarthook/kube-apiserver-autoregistration",
            ],
        ),
    ];

    #[tokio::test(start_paused = true)]
    async fn each_required_check_waits_for_its_step() {
        let clock = Clock::real();
        let hooks = PostStartHooks::default();
        let mut health = Health::default();
        hooks.add_checks(&mut health, clock.now(), &clock);
        clock.sleep(Duration::from_secs(1)).await;
        let mut failing: Vec<&str> = REQUIRED
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let all = failing.clone();
        let ask = async |root: &str| {
            let mut failing = Vec::new();
            for name in &all {
                let answer = health.answer(&format!("/{root}/{name}"), "").await;
                if !answer.expect(name).status().is_success() {
                    failing.push(*name);
                }
            }
            failing
        };
        for (step, names) in REQUIRED {
            for root in ["healthz", "livez", "readyz"] {
                assert_eq!(ask(root).await, failing, "{root}");
            }
            step(&hooks).set();
            failing.retain(|name| !names.contains(name));
        }
        for root in ["healthz", "livez", "readyz"] {
            assert!(ask(root).await.is_empty(), "{root}");
        }
    }
}
