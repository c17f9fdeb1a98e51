//! Refuses pods that violate the Pod Security Standards at the level of their namespace. Kubernetes' PodSecurity
//! plugin.
//!
//! Labels of a namespace set a level for each mode: violations of the enforced level are refused, those of the others
//! are annotated for the audit log or told to the client. Controllers of pods, such as Deployments, are not refused,
//! since the pods that they make are; their clients are warned.
//!
//! Ported from `admission/admission.go` of pod-security-admission and
//! `plugin/pkg/admission/security/podsecurity/admission.go`, Kubernetes 1.36.

mod checks;
mod configuration;
mod existing_pods;
mod level;
mod metrics;
mod namespace;
mod pod;
mod policy;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::meta::Object;
use ringwatch::storage::Interface;
use ringwatch_admission::Plugin;
use ringwatch_admission::lookup::find;
use ringwatch_apimachinery::path::get;
use ringwatch_apimachinery::{Error, FieldError};
use ringwatch_registry::{Operation, Request};
use serde_json::Value;

use metrics::EvaluationMode;
use pod::{CheckedPod, items, text};
use policy::{PREFIX, Policy};
use verdict::Verdicts;

pub use configuration::{PodSecurityConfiguration, PodSecurityConfigurationError};
pub use metrics::PodSecurityMetrics;

/// Subresources of pods that do not change what containers may do.
const IGNORED_SUBRESOURCES: [&str; 8] = [
    "exec",
    "attach",
    "binding",
    "eviction",
    "log",
    "portforward",
    "proxy",
    "status",
];

/// Checks pods against the level of their namespace.
#[derive(Debug)]
pub struct PodSecurity {
    configuration: PodSecurityConfiguration,
    metrics: PodSecurityMetrics,
    namespaces: Arc<dyn Interface>,
    pods: Arc<dyn Interface>,
}

/// A kind of object that the plugin looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodSubject {
    Namespace,
    Pod,
    /// Something that makes pods from the template at a path.
    Controller(&'static str),
}

impl PodSubject {
    fn new(request: &Request<'_>) -> Option<Self> {
        let group = request.resource.group_version.group.as_str();
        let template = match (group, request.resource.plural.as_str()) {
            ("", "namespaces") => return Some(Self::Namespace),
            ("", "pods") => return Some(Self::Pod),
            ("", "podtemplates") => "template",
            ("", "replicationcontrollers")
            | ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
            | ("batch", "jobs") => "spec.template",
            ("batch", "cronjobs") => "spec.jobTemplate.spec.template",
            _ => return None,
        };
        Some(Self::Controller(template))
    }
}

impl PodSecurity {
    /// Makes the plugin, which looks namespaces and pods up in these storages.
    #[must_use]
    pub fn new(
        configuration: PodSecurityConfiguration,
        metrics: PodSecurityMetrics,
        namespaces: Arc<dyn Interface>,
        pods: Arc<dyn Interface>,
    ) -> Self {
        Self {
            configuration,
            metrics,
            namespaces,
            pods,
        }
    }

    async fn validate_pod(&self, request: &Request<'_>, pod: &Value) -> Result<(), Error> {
        if IGNORED_SUBRESOURCES.contains(&request.subresource()) || self.exempts(request) {
            return Ok(());
        }
        let namespace = match self.namespace(request).await {
            Ok(namespace) => namespace,
            Err(error) => {
                self.metrics.failed(request, true);
                let name = request.namespace;
                let what = format!("failed to lookup namespace {name:?}");
                annotate(
                    request,
                    "error",
                    format!("Internal error occurred: {what}: {error}"),
                );
                return Err(Error::Internal(what));
            }
        };
        let (policy, errors) = self.policy(&namespace);
        if errors.is_empty() && policy.is_privileged() {
            self.metrics
                .evaluated(request, EvaluationMode::Enforce, policy.enforce, true);
            let level = level::LevelVersion::PRIVILEGED.to_string();
            annotate(request, "enforce-policy", level);
            return Ok(());
        }
        if let Some(old) = request
            .old
            .filter(|_| request.operation == Operation::Update)
            && !is_significant(&pod["spec"], &old["spec"])
        {
            return Ok(());
        }
        self.evaluate(request, (&policy, &errors), CheckedPod::new(pod), true)
    }

    /// Warns of a template whose pods would be refused.
    async fn validate_controller(
        &self,
        request: &Request<'_>,
        template: Option<&Value>,
    ) -> Result<(), Error> {
        if !request.subresource().is_empty() || self.exempts(request) {
            return Ok(());
        }
        let namespace = match self.namespace(request).await {
            Ok(namespace) => namespace,
            Err(error) => {
                self.metrics.failed(request, true);
                let name = request.namespace;
                let what = format!("failed to lookup namespace {name:?}: {error}");
                annotate(request, "error", what);
                return Ok(());
            }
        };
        let (policy, errors) = self.policy(&namespace);
        let levels = [policy.audit.level, policy.warn.level];
        if errors.is_empty() && levels == [level::Level::Privileged; 2] {
            return Ok(());
        }
        match template.filter(|it| !it.is_null()) {
            Some(template) => self.evaluate(
                request,
                (&policy, &errors),
                CheckedPod::new(template),
                false,
            ),
            None => Ok(()),
        }
    }

    /// Checks a pod or template in all modes. The enforced level counts for pods alone.
    fn evaluate(
        &self,
        request: &Request<'_>,
        (policy, errors): (&Policy, &[FieldError]),
        pod: CheckedPod<'_>,
        enforces: bool,
    ) -> Result<(), Error> {
        let exempt = &self.configuration.exempt_runtime_classes;
        if exempt.contains(pod.runtime_class()) {
            self.exempt(request, "runtimeClass");
            return Ok(());
        }
        if !errors.is_empty() {
            let what = format!("Failed to parse policy: {}", FieldError::join(errors));
            annotate(request, "error", what);
            self.metrics.failed(request, false);
        }
        let mut verdicts = Verdicts::new(pod);
        let mut refusal = None;
        if enforces {
            let level = policy.enforce;
            annotate(request, "enforce-policy", level.to_string());
            let verdict = verdicts.at(level);
            self.metrics.evaluated(
                request,
                EvaluationMode::Enforce,
                level,
                verdict.is_allowed(),
            );
            if !verdict.is_allowed() {
                let told = format!("violates PodSecurity \"{level}\": {}", verdict.details());
                refusal = Some(Error::Forbidden {
                    resource: request.resource.qualified_name(),
                    name: request.name.to_owned(),
                    message: told,
                    cause: None,
                });
            }
        }
        let would = |level, details| format!("would violate PodSecurity \"{level}\": {details}");
        let verdict = verdicts.at(policy.audit);
        if !verdict.is_allowed() {
            let told = would(policy.audit, verdict.details());
            annotate(request, "audit-violations", told);
            self.metrics
                .evaluated(request, EvaluationMode::Audit, policy.audit, false);
        }
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let verdict = verdicts.at(policy.warn);
        if !verdict.is_allowed() {
            request.context.warn(would(policy.warn, verdict.details()));
            self.metrics
                .evaluated(request, EvaluationMode::Warn, policy.warn, false);
        }
        Ok(())
    }

    /// Returns true, and notes it, if the namespace or the user is exempt.
    fn exempts(&self, request: &Request<'_>) -> bool {
        let configuration = &self.configuration;
        let reason = if configuration.exempt_namespaces.contains(request.namespace) {
            "namespace"
        } else if configuration
            .exempt_users
            .contains(&request.context.user.name)
        {
            "user"
        } else {
            return false;
        };
        self.exempt(request, reason);
        true
    }

    fn exempt(&self, request: &Request<'_>, reason: &str) {
        self.metrics.exempted(request);
        annotate(request, "exempt", reason.to_owned());
    }

    /// Returns the namespace of a request.
    async fn namespace(&self, request: &Request<'_>) -> Result<Arc<Object>, Error> {
        let name = request.namespace;
        let found = find(&*self.namespaces, &format!("/namespaces/{name}")).await?;
        found.ok_or_else(|| Error::not_found("namespaces", name))
    }

    fn policy(&self, namespace: &Object) -> (Policy, Vec<FieldError>) {
        let labels = namespace.attributes().labels();
        Policy::by_labels(&|key| labels.get(key), &self.configuration.defaults)
    }
}

#[async_trait]
impl Plugin for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        if !matches!(request.operation, Operation::Create | Operation::Update) {
            return Ok(());
        }
        match PodSubject::new(request) {
            Some(PodSubject::Namespace) => self.validate_namespace(request, object).await,
            Some(PodSubject::Pod) => self.validate_pod(request, object).await,
            Some(PodSubject::Controller(path)) => {
                self.validate_controller(request, get(object, path)).await
            }
            None => Ok(()),
        }
    }
}

/// Records an audit annotation of the plugin.
fn annotate(request: &Request<'_>, key: &str, value: String) {
    let key = format!("{PREFIX}{key}");
    request.context.annotate(key, || value);
}

/// Returns true if an update of a pod may make it violate a policy: containers or their images have changed.
fn is_significant(spec: &Value, old: &Value) -> bool {
    ["containers", "initContainers"].into_iter().any(|kind| {
        let count = |spec: &Value| items(&spec[kind]).count();
        let mut pairs = items(&spec[kind]).zip(items(&old[kind]));
        count(spec) != count(old) || pairs.any(|(new, old)| new["image"] != old["image"])
    }) || {
        let named = items(&old["ephemeralContainers"]).map(|it| (text(&it["name"]), &it["image"]));
        let known: HashMap<&str, &Value> = named.collect();
        let mut ephemeral = items(&spec["ephemeralContainers"]);
        ephemeral.any(|it| known.get(text(&it["name"])) != Some(&&it["image"]))
    }
}
