//! The parts that a request passes on its way to the API: who sends it, whether it may run now, and who records it.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use ringwatch_audit::Auditor;
use ringwatch_authentication::Authenticator;
use ringwatch_authorization::Authorizer;
use ringwatch_endpoints::{Impersonation, Metrics};
use ringwatch_filters::{LargeWork, Limits};
use ringwatch_spans::{SpanMetrics, Tracer};

use super::authenticator::authenticator;
use super::inputs::ServerInputs;
use super::limits::request_limits;
use super::objects::Objects;
use super::tasks::Tasks;
use super::tracer::tracer;
use crate::config::security::RequestFiles;

/// The parts that a request passes.
pub(crate) struct Requests {
    /// Finds the user.
    pub(crate) authenticator: Arc<Authenticator>,
    /// Decides what a user may do.
    pub(crate) authorizer: Arc<Authorizer>,
    /// Decides who may act as whom.
    pub(crate) impersonation: Arc<Impersonation>,
    /// The limits on requests.
    pub(crate) limits: Limits,
    /// Records requests; `None` if none are.
    pub(crate) auditor: Option<Arc<Auditor>>,
    /// Makes spans; `None` if there are none.
    pub(crate) tracer: Option<Tracer>,
}

impl Requests {
    /// Builds the parts, and registers their metrics.
    pub(crate) fn new(
        inputs: &ServerInputs<'_>,
        files: RequestFiles,
        auditor: Option<Arc<Auditor>>,
        objects: &Objects,
        metrics: &Metrics,
        registry: &mut Registry,
    ) -> (Self, Tasks) {
        let (flags, clock, resources) = (inputs.flags, &inputs.clock, &objects.resources);
        let mut tasks = Tasks::default();
        let authorizer = Arc::clone(&resources.authorizer);
        let impersonation = Impersonation::new(Arc::clone(&authorizer), clock.clone(), registry);
        let limits = request_limits(
            &flags.limits,
            objects.enabled.fairness(),
            &resources.storages.factory.counts,
            LargeWork::new(
                inputs.runtimes,
                inputs.ledger.clone(),
                clock.clone(),
                registry,
            ),
            metrics,
        );
        limits.in_flight.register(registry);
        let (authentication, accounts) = (files.authentication, &files.service_accounts);
        let authenticator = authenticator(authentication, accounts, flags, resources, clock);
        authenticator.register(registry);
        let issuers = files
            .issuers
            .follow(Arc::clone(&authenticator), clock.clone());
        tasks.background("token issuers", issuers);
        let traces = files
            .spans
            .map(|config| tracer(&config, SpanMetrics::register(registry), clock));
        let (tracer, more) = traces.unzip();
        tasks.append(more.unwrap_or_default());
        let requests = Self {
            authenticator,
            authorizer,
            impersonation: Arc::new(impersonation),
            limits,
            auditor,
            tracer,
        };
        (requests, tasks)
    }
}
