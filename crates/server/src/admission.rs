//! Which plugins have their say in writes, what each is made of, and what follows the objects by which some of
//! them decide.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use ringwatch::clock::Clock;
use ringwatch::storage::Interface;
use ringwatch_admission::policies::{MutatingPolicies, Policies, PolicyObject};
use ringwatch_admission::webhooks::{
    Configuration, MutatingWebhooks, ValidatingWebhooks, Webhooks,
};
use ringwatch_admission::{
    Chain, MatchContext, ParsedObjects, Plugin, PluginSet, ServedType, ServedTypes,
};
use ringwatch_apimachinery::webhook_client::WebhookClient;
use ringwatch_apiserver::ServiceAddresses;
use ringwatch_apiserver::webhook_client;
use ringwatch_authorization::Authorizer;
use ringwatch_controllers::admission_objects::AdmissionObjects;
use ringwatch_plugins::{
    CertificateSigners, CertificateSubjects, ClaimResize, DefaultClass, DefaultTolerations,
    LimitRanger, NamespaceLifecycle, NodeRestriction, NodeStorages, NodeTaint, Priority,
    ResourceQuota, RuntimeClass, ServiceAccount, StorageProtection, TopologyLabels,
};
use ringwatch_registry::{Store, Stores};

/// The storage prefix of quotas.
const QUOTAS: &str = "resourcequotas";

/// The group of configurations.
const GROUP: &str = "admissionregistration.k8s.io";

/// The admission plugins, and what they follow.
#[derive(Debug)]
pub struct Admission {
    /// The plugins.
    pub chain: Arc<Chain>,
    /// In which versions what is written is served; `None` if nobody wants to know.
    pub types: Option<Arc<ServedTypes>>,
    /// The client of webhooks.
    pub client: Option<Arc<dyn WebhookClient>>,
    mutating: Arc<ParsedObjects<Configuration>>,
    validating: Arc<ParsedObjects<Configuration>>,
    policies: Arc<ParsedObjects<PolicyObject>>,
    mutating_policies: Arc<ParsedObjects<PolicyObject>>,
}

/// The storages of built-in resources, by the prefix of their keys.
type ByPrefix = BTreeMap<String, Arc<dyn Interface>>;

impl Admission {
    /// The plugins of a set, over the storages of what they look up.
    pub(super) fn new(
        named: PluginSet,
        authorizer: &Arc<Authorizer>,
        built_in: Vec<ServedType>,
        by_prefix: &ByPrefix,
        clock: &Clock,
    ) -> Self {
        let mut admission = Self {
            chain: Arc::default(),
            types: None,
            client: None,
            mutating: Arc::new(ParsedObjects::new(clock.clone())),
            validating: Arc::new(ParsedObjects::new(clock.clone())),
            policies: Arc::new(ParsedObjects::new(clock.clone())),
            mutating_policies: Arc::new(ParsedObjects::new(clock.clone())),
        };
        let quotas = built_in.iter().find(|(it, _)| it.storage_prefix == QUOTAS);
        let quotas =
            quotas.map(|(resource, storage)| Store::new(Arc::clone(resource), Arc::clone(storage)));
        let mut plugins = own_plugins(by_prefix, quotas, clock);
        plugins.extend(admission.webhooks(built_in, by_prefix, authorizer, clock));
        plugins.retain(|plugin| named.has(plugin.name()));
        admission.chain = Arc::new(Chain::new(plugins));
        admission
    }

    fn webhooks(
        &mut self,
        built_in: Vec<ServedType>,
        by_prefix: &ByPrefix,
        authorizer: &Arc<Authorizer>,
        clock: &Clock,
    ) -> Vec<Arc<dyn Plugin>> {
        let storage = |prefix: &str| by_prefix.get(prefix).cloned();
        let (Some(namespaces), Some(services), Some(slices)) = (
            storage("namespaces"),
            storage("services/specs"),
            storage("endpointslices"),
        ) else {
            return Vec::new();
        };
        let types = Arc::new(ServedTypes::new(built_in));
        self.types = Some(Arc::clone(&types));
        let match_context = MatchContext {
            namespaces,
            types,
            authorizer: Arc::clone(authorizer),
        };
        let services = ServiceAddresses { services, slices };
        let client = webhook_client::client(services, clock.clone());
        self.client = Some(Arc::clone(&client));
        let webhooks = |configurations: &Arc<ParsedObjects<Configuration>>| Webhooks {
            configurations: Arc::clone(configurations),
            match_context: match_context.clone(),
            client: Arc::clone(&client),
        };
        let policies = |objects: &Arc<ParsedObjects<PolicyObject>>| Policies {
            objects: Arc::clone(objects),
            match_context: match_context.clone(),
        };
        vec![
            Arc::new(MutatingWebhooks(webhooks(&self.mutating))),
            Arc::new(ValidatingWebhooks(webhooks(&self.validating))),
            Arc::new(MutatingPolicies(policies(&self.mutating_policies))),
            Arc::new(policies(&self.policies)),
        ]
    }

    /// Returns the tasks that keep the configurations and policies up to date.
    pub(super) fn follow(&self, all: &Stores, clock: &Clock) -> Vec<BoxFuture<'static, ()>> {
        let stores = |plurals: &[&str]| -> Vec<Arc<Store>> {
            let stores = plurals.iter().map(|plural| all.get(GROUP, plural));
            stores.flatten().cloned().collect()
        };
        let configurations = |what, into: &Arc<_>| {
            let following = AdmissionObjects {
                what,
                stores: stores(&[what]),
                read: Configuration::read,
                into: Arc::clone(into),
                clock: clock.clone(),
            };
            following.run().boxed()
        };
        let policies = |what, plurals: [&str; 2], into: &Arc<_>| {
            let following = AdmissionObjects {
                what,
                stores: stores(&plurals),
                read: PolicyObject::read,
                into: Arc::clone(into),
                clock: clock.clone(),
            };
            following.run().boxed()
        };
        vec![
            configurations("mutatingwebhookconfigurations", &self.mutating),
            configurations("validatingwebhookconfigurations", &self.validating),
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
                &self.policies,
            ),
        ]
    }
}

/// The plugins that ask nobody outside, over the storages of what they look up. Quotas are also written, in a store of
/// their own that asks no plugin.
fn own_plugins(by_prefix: &ByPrefix, quotas: Option<Store>, clock: &Clock) -> Vec<Arc<dyn Plugin>> {
    let mut plugins: Vec<Arc<dyn Plugin>> = vec![
        Arc::new(StorageProtection),
        Arc::new(NodeTaint),
        Arc::new(DefaultTolerations),
        Arc::new(CertificateSigners::APPROVAL),
        Arc::new(CertificateSigners::SIGNING),
        Arc::new(CertificateSubjects),
    ];
    let over = |prefix| by_prefix.get(prefix).cloned();
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
    plugins.extend(quotas.map(|it| Arc::new(ResourceQuota::new(it)) as Arc<dyn Plugin>));
    plugins
}
