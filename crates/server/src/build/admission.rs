//! Builds the admission plugins, and the controllers that keep the webhook configurations and policies of some of them.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use ringwatch::clock::Clock;
use ringwatch_admission::policies::{MutatingPolicies, Policies, PolicyObject};
use ringwatch_admission::webhooks::{
    Configuration, MutatingWebhooks, ValidatingWebhooks, WebhookMetrics, Webhooks,
};
use ringwatch_admission::{Chain, MatchContext, ParsedObjects, Plugin};
use ringwatch_controllers::admission_objects::AdmissionObjects;
use ringwatch_plugins::{
    CertificateSigners, CertificateSubjects, ClaimResize, DefaultClass, LimitRanger,
    NamespaceLifecycle, NodeRestriction, NodeStorages, NodeTaint, PodSecurity, PodSecurityMetrics,
    Priority, ResourceQuota, RuntimeClass, ServiceAccount, StorageProtection, TopologyLabels,
};
use ringwatch_registry::{Store, Stores};
use ringwatch_webhook::WebhookClient;

use super::storages::Storages;
use crate::config::admission_file::AdmissionConfig;
use crate::config::flags::AdmissionFlags;

/// The group of configurations and policies.
const GROUP: &str = "admissionregistration.k8s.io";

/// The admission plugins, and the webhook configurations and policies that they evaluate.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The plugins.
    pub(crate) chain: Arc<Chain>,
    /// The configurations and policies.
    pub(crate) objects: AdmissionObjectSets,
}

/// The stored webhook configurations and policies, as plugins read them.
#[derive(Clone, Debug)]
pub(crate) struct AdmissionObjectSets {
    mutating_webhooks: Arc<ParsedObjects<Configuration>>,
    validating_webhooks: Arc<ParsedObjects<Configuration>>,
    mutating_policies: Arc<ParsedObjects<PolicyObject>>,
    validating_policies: Arc<ParsedObjects<PolicyObject>>,
}

/// The parts by which plugins evaluate webhook configurations and policies.
pub(crate) struct Evaluation<'parts> {
    /// Finds what an object matches.
    pub(crate) match_context: MatchContext,
    /// Calls webhooks.
    pub(crate) webhooks: &'parts Arc<dyn WebhookClient>,
    /// Counts their calls.
    pub(crate) metrics: WebhookMetrics,
}

/// Builds the plugins that flags and files configure.
pub(crate) fn configured_plugins(
    flags: &AdmissionFlags,
    config: AdmissionConfig,
    storages: &Storages,
    metrics: PodSecurityMetrics,
) -> Vec<Arc<dyn Plugin>> {
    let pod_security = PodSecurity::new(
        config.pod_security,
        metrics,
        storages.get_or_empty("namespaces"),
        storages.get_or_empty("pods"),
    );
    vec![Arc::new(flags.tolerations()), Arc::new(pod_security)]
}

impl AdmissionObjectSets {
    /// Creates the sets, empty until the controllers have read the objects.
    pub(crate) fn new(clock: &Clock) -> Self {
        Self {
            mutating_webhooks: Arc::new(ParsedObjects::new(clock.clone())),
            validating_webhooks: Arc::new(ParsedObjects::new(clock.clone())),
            mutating_policies: Arc::new(ParsedObjects::new(clock.clone())),
            validating_policies: Arc::new(ParsedObjects::new(clock.clone())),
        }
    }

    /// Returns the plugins that evaluate these objects.
    pub(crate) fn plugins(&self, evaluation: &Evaluation<'_>) -> [Arc<dyn Plugin>; 4] {
        let match_context = &evaluation.match_context;
        let webhooks = |configurations: &Arc<ParsedObjects<Configuration>>| Webhooks {
            configurations: Arc::clone(configurations),
            match_context: match_context.clone(),
            client: Arc::clone(evaluation.webhooks),
            metrics: evaluation.metrics.clone(),
        };
        let policies = |objects: &Arc<ParsedObjects<PolicyObject>>| Policies {
            objects: Arc::clone(objects),
            match_context: match_context.clone(),
        };
        [
            Arc::new(MutatingWebhooks(webhooks(&self.mutating_webhooks))),
            Arc::new(ValidatingWebhooks(webhooks(&self.validating_webhooks))),
            Arc::new(MutatingPolicies(policies(&self.mutating_policies))),
            Arc::new(policies(&self.validating_policies)),
        ]
    }

    /// Waits until all of the objects have been read.
    pub(crate) async fn known(&self) {
        tokio::join!(
            self.mutating_webhooks.known(),
            self.validating_webhooks.known(),
            self.mutating_policies.known(),
            self.validating_policies.known(),
        );
    }

    /// Returns the controllers that keep these objects up to date with the store.
    pub(crate) fn controllers(&self, all: &Stores, clock: &Clock) -> [BoxFuture<'static, ()>; 4] {
        let stores = |plurals: &[&str]| -> Vec<Arc<Store>> {
            let stores = plurals.iter().map(|plural| all.get(GROUP, plural));
            stores.flatten().cloned().collect()
        };
        let configurations = |what, into: &Arc<_>| {
            let controller = AdmissionObjects {
                what,
                stores: stores(&[what]),
                read: Configuration::read,
                into: Arc::clone(into),
                clock: clock.clone(),
            };
            controller.run().boxed()
        };
        let policies = |what, plurals: [&str; 2], into: &Arc<_>| {
            let controller = AdmissionObjects {
                what,
                stores: stores(&plurals),
                read: PolicyObject::read,
                into: Arc::clone(into),
                clock: clock.clone(),
            };
            controller.run().boxed()
        };
        [
            configurations("mutatingwebhookconfigurations", &self.mutating_webhooks),
            configurations("validatingwebhookconfigurations", &self.validating_webhooks),
            policies(
                "mutating admission policies",
                [
                    "mutatingadmissionpolicies",
                    "mutatingadmissionpolicybindings",
                ],
                &self.mutating_policies,
            ),
            policies(
                "validating admission policies",
                [
                    "validatingadmissionpolicies",
                    "validatingadmissionpolicybindings",
                ],
                &self.validating_policies,
            ),
        ]
    }
}

/// Returns the plugins that call no other server. Quotas are also written, through a store without admission.
pub(crate) fn own_plugins(storages: &Storages, clock: &Clock) -> Vec<Arc<dyn Plugin>> {
    let mut plugins: Vec<Arc<dyn Plugin>> = vec![
        Arc::new(StorageProtection),
        Arc::new(NodeTaint),
        Arc::new(CertificateSigners::APPROVAL),
        Arc::new(CertificateSigners::SIGNING),
        Arc::new(CertificateSubjects),
    ];
    let over = |prefix| storages.get(prefix);
    plugins.extend(over("namespaces").map(|namespaces| {
        Arc::new(NamespaceLifecycle::new(namespaces, clock.clone())) as Arc<dyn Plugin>
    }));
    plugins
        .extend(over("priorityclasses").map(|it| Arc::new(Priority::new(it)) as Arc<dyn Plugin>));
    plugins.extend(
        over("serviceaccounts").map(|it| Arc::new(ServiceAccount::new(it)) as Arc<dyn Plugin>),
    );
    plugins.extend(over("limitranges").map(|it| Arc::new(LimitRanger::new(it)) as Arc<dyn Plugin>));
    plugins.extend(
        over("runtimeclasses").map(|it| Arc::new(RuntimeClass::new(it)) as Arc<dyn Plugin>),
    );
    if let Some(classes) = over("storageclasses") {
        plugins.push(Arc::new(DefaultClass::of_storage(Arc::clone(&classes))));
        plugins.push(Arc::new(ClaimResize::new(classes)));
    }
    plugins.extend(
        over("ingressclasses")
            .map(|it| Arc::new(DefaultClass::of_ingresses(it)) as Arc<dyn Plugin>),
    );
    plugins.extend(over("minions").map(|it| Arc::new(TopologyLabels::new(it)) as Arc<dyn Plugin>));
    if let (Some(nodes), Some(pods), Some(claims), Some(volumes), Some(drivers)) = (
        over("minions"),
        over("pods"),
        over("persistentvolumeclaims"),
        over("persistentvolumes"),
        over("csidrivers"),
    ) {
        plugins.push(Arc::new(NodeRestriction::new(NodeStorages {
            nodes,
            pods,
            claims,
            volumes,
            drivers,
        })));
    }
    let quotas = storages.bare_store("resourcequotas");
    plugins.extend(quotas.map(|it| Arc::new(ResourceQuota::new(it)) as Arc<dyn Plugin>));
    plugins
}
