//! The chain of plugins, which runs in kube-apiserver's order.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use ringwatch_apimachinery::Error;
use ringwatch_registry::admission::{Admission, Request};
use serde_json::Value;

use super::metrics::AdmissionMetrics;
use super::plugin_set::position;
use super::reinvocation::Reinvocations;
use super::steps::{Part, Step};

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
}

/// Plugins in kube-apiserver's order.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    plugins: Vec<(Arc<dyn Plugin>, Part)>,
    metrics: AdmissionMetrics,
}

impl Chain {
    /// Makes a chain of these plugins, in whatever order they are given.
    #[must_use]
    pub fn new(mut plugins: Vec<Arc<dyn Plugin>>) -> Self {
        plugins.sort_by_key(|plugin| position(plugin.name()));
        let plugins = plugins.into_iter().map(|plugin| {
            let part = Part::of(plugin.name());
            (plugin, part)
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
        self
    }

    async fn admit_once(
        &self,
        request: &Request<'_>,
        object: &mut Value,
        round: &mut Round,
    ) -> Result<(), Error> {
        for (plugin, part) in &self.plugins {
            let run = plugin.admit_in(request, object, round);
            self.timed(plugin.name(), *part, Step::Admit, request, run)
                .await?;
        }
        Ok(())
    }

    async fn admit_all(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        let mut round = Round::default();
        self.admit_once(request, object, &mut round).await?;
        if round.again {
            round.second = true;
            self.admit_once(request, object, &mut round).await?;
        }
        Ok(())
    }

    async fn validate_all(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        for (plugin, part) in &self.plugins {
            let run = plugin.validate(request, object);
            self.timed(plugin.name(), *part, Step::Validate, request, run)
                .await?;
        }
        Ok(())
    }

    /// Runs a plugin, and measures it if it takes part in this step.
    async fn timed(
        &self,
        plugin: &'static str,
        part: Part,
        step: Step,
        request: &Request<'_>,
        run: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        if !part.has(step, request.operation) {
            return run.await;
        }
        let clock = &request.context.clock;
        let since = clock.now();
        let outcome = run.await;
        let (took, operation) = (clock.now() - since, request.operation);
        self.metrics
            .plugin(plugin, step, operation, took, outcome.is_err());
        outcome
    }

    /// Measures a whole step.
    async fn whole(
        &self,
        step: Step,
        request: &Request<'_>,
        run: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        let clock = &request.context.clock;
        let since = clock.now();
        let outcome = run.await;
        let took = clock.now() - since;
        self.metrics
            .step(step, request.operation, took, outcome.is_err());
        outcome
    }
}

#[async_trait]
impl Admission for Chain {
    /// Lets every plugin change what is written, until one refuses it; all of them once more if
    /// policies or webhooks have changed it.
    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        self.whole(Step::Admit, request, self.admit_all(request, object))
            .await
    }

    /// Asks every plugin about what the object has become, until one refuses it.
    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        self.whole(Step::Validate, request, self.validate_all(request, object))
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
            .map(|(plugin, _)| plugin.name())
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
}
