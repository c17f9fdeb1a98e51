//! The chain of plugins, which runs in kube-apiserver's order.

use std::fmt::Debug;
use std::mem;
use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::clock::{Clock, Instant};
use ringwatch_apimachinery::Error;
use ringwatch_registry::admission::{Admission, Operation, Request};
use serde_json::Value;

use super::managed_fields::ManagedFieldsBefore;
use super::metrics::{AdmissionMetrics, PluginTimes};
use super::plugin_table::{PluginSupport, position};
use super::reinvocation::Reinvocations;
use super::steps::AdmissionStep;

/// An admission plugin: it changes or refuses writes before they are stored.
///
/// Objects are in the version in which they are stored. That of a deletion is null: there is only the old
/// one. Those of subresources of another kind (Scale, Binding) and of connections are of that kind.
#[async_trait]
pub trait Plugin: Send + Sync + Debug {
    /// Returns the name of the plugin, one of kube-apiserver's.
    fn name(&self) -> &'static str;

    /// Changes what is written, or refuses it, before it is checked.
    ///
    /// # Errors
    /// The plugin's refusal of the request, or a failure to decide.
    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        let _ = (request, object);
        Ok(())
    }

    /// Changes or refuses the object, as `admit` does, in a plugin that may ask for another round, in which those
    /// before it see its changes.
    ///
    /// # Errors
    /// The plugin's refusal of the request, or a failure to decide.
    async fn admit_in(
        &self,
        request: &Request<'_>,
        object: &mut Value,
        round: &mut Round,
    ) -> Result<(), Error> {
        let _ = round;
        self.admit(request, object).await
    }

    /// Refuses what the object has become.
    ///
    /// # Errors
    /// The plugin's refusal of the request, or a failure to decide.
    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        let _ = (request, object);
        Ok(())
    }
}

/// One call of all plugins. There is a second, and no more, if policies or webhooks have changed the object.
#[derive(Debug, Default)]
pub struct Round {
    /// True if every plugin has been called once already.
    pub second: bool,
    /// True if every plugin is to be called a second time.
    pub again: bool,
    /// The policies that have seen the object.
    pub(super) policies: Reinvocations<[String; 4]>,
    /// The webhooks that have seen the object.
    pub(super) webhooks: Reinvocations<(String, usize)>,
    managed_fields: ManagedFieldsBefore,
}

impl Round {
    /// Notes that a policy or webhook changes the object, which is this before: plugins see it again.
    pub(super) fn note_change(&mut self, before: &Value) {
        self.managed_fields.keep(before);
        self.again = true;
    }
}

/// Plugins in kube-apiserver's order.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    plugins: Vec<Member>,
    metrics: AdmissionMetrics,
}

/// A plugin in its place.
#[derive(Clone, Debug)]
struct Member {
    plugin: Arc<dyn Plugin>,
    handled: PluginSupport,
    times: PluginTimes,
}

impl Chain {
    /// Makes a chain of these plugins, in whatever order they are given.
    #[must_use]
    pub fn new(mut plugins: Vec<Arc<dyn Plugin>>) -> Self {
        plugins.sort_by_key(|plugin| position(plugin.name()));
        let plugins = plugins.into_iter().map(|plugin| Member {
            handled: PluginSupport::by(plugin.name()),
            plugin,
            times: PluginTimes::default(),
        });
        Self {
            plugins: plugins.collect(),
            metrics: AdmissionMetrics::default(),
        }
    }

    /// Reports the times of the chain and its plugins to these metrics.
    #[must_use]
    pub fn measured(mut self, metrics: AdmissionMetrics) -> Self {
        self.metrics = metrics;
        self.plugins
            .iter_mut()
            .for_each(|it| it.times = PluginTimes::default());
        self
    }

    /// Returns the plugins that take part in a step of such an operation.
    fn taking_part(
        &self,
        step: AdmissionStep,
        operation: Operation,
    ) -> impl Iterator<Item = &Member> {
        let members = self.plugins.iter();
        members.filter(move |member| member.handled.has(step, operation))
    }

    async fn admit_once(
        &self,
        request: &Request<'_>,
        object: &mut Value,
        round: &mut Round,
    ) -> Result<(), Error> {
        let mut timer = Timer::new(self, AdmissionStep::Admit, request);
        for member in self.taking_part(AdmissionStep::Admit, request.operation) {
            let outcome = member.plugin.admit_in(request, object, round).await;
            timer.observe(member, outcome.is_err());
            outcome?;
        }
        Ok(())
    }

    /// Returns true if a policy or webhook has changed the object.
    async fn admit_all(&self, request: &Request<'_>, object: &mut Value) -> Result<bool, Error> {
        let mut round = Round::default();
        self.admit_once(request, object, &mut round).await?;
        if round.again {
            round.second = true;
            self.admit_once(request, object, &mut round).await?;
        }
        round.managed_fields.restore(request.context, object);
        Ok(round.again)
    }

    async fn validate_all(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        let mut timer = Timer::new(self, AdmissionStep::Validate, request);
        for member in self.taking_part(AdmissionStep::Validate, request.operation) {
            let outcome = member.plugin.validate(request, object).await;
            timer.observe(member, outcome.is_err());
            outcome?;
        }
        Ok(())
    }

    /// Measures a whole step.
    async fn whole<T>(
        &self,
        step: AdmissionStep,
        request: &Request<'_>,
        run: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let clock = &request.context.clock;
        let since = clock.now();
        let outcome = run.await;
        let took = clock.now() - since;
        self.metrics
            .step(step, request.operation, took, outcome.is_err());
        outcome
    }
}

/// A timer of plugins that are called one after the other: each ends where the next one begins.
struct Timer<'a> {
    metrics: &'a AdmissionMetrics,
    step: AdmissionStep,
    operation: Operation,
    clock: &'a Clock,
    since: Instant,
}

impl<'a> Timer<'a> {
    /// Begins the time of the first plugin.
    fn new(chain: &'a Chain, step: AdmissionStep, request: &Request<'a>) -> Self {
        let clock = &request.context.clock;
        Self {
            metrics: &chain.metrics,
            step,
            operation: request.operation,
            clock,
            since: clock.now(),
        }
    }

    /// Measures a plugin that has ended, and begins the time of the next one.
    fn observe(&mut self, member: &Member, is_rejected: bool) {
        let now = self.clock.now();
        let took = now - mem::replace(&mut self.since, now);
        let (name, call) = (member.plugin.name(), (self.step, self.operation));
        member
            .times
            .observe(self.metrics, name, call, took, is_rejected);
    }
}

#[async_trait]
impl Admission for Chain {
    /// Lets every plugin change what is written, until one refuses it; all of them once more if
    /// policies or webhooks have changed it.
    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<bool, Error> {
        self.whole(
            AdmissionStep::Admit,
            request,
            self.admit_all(request, object),
        )
        .await
    }

    /// Asks every plugin about what the object has become, until one refuses it.
    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        self.whole(
            AdmissionStep::Validate,
            request,
            self.validate_all(request, object),
        )
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Named(&'static str);

    impl Plugin for Named {
        fn name(&self) -> &'static str {
            self.0
        }
    }

    #[test]
    fn plugins_are_asked_in_kube_apiservers_order() {
        let given = [
            "ResourceQuota",
            "MutatingAdmissionWebhook",
            "Priority",
            "ValidatingAdmissionWebhook",
            "NamespaceLifecycle",
            "LimitRanger",
        ];
        let plugins = given.map(|name| Arc::new(Named(name)) as Arc<dyn Plugin>);
        let chain = Chain::new(plugins.to_vec());
        let names: Vec<_> = chain
            .plugins
            .iter()
            .map(|member| member.plugin.name())
            .collect();
        assert_eq!(
            names,
            [
                "NamespaceLifecycle",
                "LimitRanger",
                "Priority",
                "MutatingAdmissionWebhook",
                "ValidatingAdmissionWebhook",
                "ResourceQuota",
            ]
        );
    }

    #[test]
    fn only_plugins_that_take_part_are_called() {
        let given = ["ResourceQuota", "NamespaceLifecycle", "Priority", "Another"];
        let plugins = given.map(|name| Arc::new(Named(name)) as Arc<dyn Plugin>);
        let chain = Chain::new(plugins.to_vec());
        let names = |step, operation| -> Vec<_> {
            let members = chain.taking_part(step, operation);
            members.map(|member| member.plugin.name()).collect()
        };
        let (admit, validate) = (AdmissionStep::Admit, AdmissionStep::Validate);
        assert_eq!(
            names(admit, Operation::Update),
            ["NamespaceLifecycle", "Priority", "Another"]
        );
        assert_eq!(
            names(validate, Operation::Update),
            ["Priority", "ResourceQuota", "Another"]
        );
        assert_eq!(names(validate, Operation::Connect), ["Another"]);
    }
}
