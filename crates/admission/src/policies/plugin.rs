//! The plugin ValidatingAdmissionPolicy: evaluates each policy under each of its bindings.

use std::sync::Arc;

use async_trait::async_trait;
use indexmap::{IndexMap, IndexSet};
use ringwatch_apimachinery::{Error, PolicyDenial, PolicyKind};
use ringwatch_offload::{Work, offload};
use ringwatch_registry::admission::Request;
use serde_json::{Value, json};

use super::binding::Binding;
use super::evaluate::{Evaluation, EvaluationInput, Violation, evaluate};
use super::policy::Policy;
use crate::chain::Plugin;
use crate::match_context::{MatchContext, RequestNamespace};
use crate::matching::is_exempt;
use crate::parsed_objects::ParsedObjects;
use crate::review::{ConvertedObjects, describe};

/// A policy or a binding.
#[derive(Debug)]
pub struct PolicyObject(PolicyObjects);

#[derive(Debug)]
enum PolicyObjects {
    Policy(Policy),
    Binding(Binding),
}

impl PolicyObject {
    /// Reads a policy or a binding.
    ///
    /// # Errors
    /// A message that names the member that cannot be read.
    pub fn read(object: &Value) -> Result<Self, String> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let read = if kind.ends_with("Binding") {
            Binding::read(object).map(PolicyObjects::Binding)
        } else {
            Policy::read(object).map(PolicyObjects::Policy)
        };
        read.map(Self)
    }
}

/// The policies of one kind with their bindings; by itself the plugin ValidatingAdmissionPolicy.
#[derive(Debug)]
pub struct Policies {
    /// All policies and bindings, in the order of their names.
    pub objects: Arc<ParsedObjects<PolicyObject>>,
    /// The stores and caches in which matching looks things up.
    pub match_context: MatchContext,
}

#[async_trait]
impl Plugin for Policies {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        if is_exempt(request) {
            return Ok(());
        }
        let objects = self.current(request, object).await?;
        let mut namespace = self.match_context.namespace_of(request);
        let mut refusal = None;
        let mut annotations = AuditAnnotations::default();
        for (policy, binding) in bound(&objects) {
            let call = PolicyCall {
                policy,
                binding,
                request,
                object,
            };
            let evaluation = self.ask(&call, &mut namespace).await?;
            annotations.add(policy, evaluation.annotations);
            for violation in evaluation.violations {
                if binding.warns && !violation.always_denies {
                    call.warn(&violation);
                }
                if binding.audits && !violation.always_denies {
                    call.audit(&violation);
                }
                if binding.denies || violation.always_denies {
                    refusal.get_or_insert_with(|| call.refusal(&violation));
                }
            }
        }
        annotations.publish(request);
        refusal.map_or(Ok(()), Err)
    }
}

/// The distinct values of audit annotations, by their keys with the names of their policies.
#[derive(Default)]
struct AuditAnnotations(IndexMap<String, IndexSet<String>>);

impl AuditAnnotations {
    fn add(&mut self, policy: &Policy, annotations: Vec<(String, String)>) {
        for (key, value) in annotations {
            let key = format!("{}/{key}", policy.name);
            self.0.entry(key).or_default().insert(value);
        }
    }

    fn publish(self, request: &Request<'_>) {
        for (key, values) in self.0 {
            let values: Vec<String> = values.into_iter().collect();
            request.context.annotate(key, || values.join(", "));
        }
    }
}

/// Returns the policies, each with its bindings.
pub(super) fn bound(
    objects: &[Arc<PolicyObject>],
) -> impl Iterator<Item = (&Policy, &Binding)> + Send {
    let policies = objects.iter().filter_map(|it| match &it.0 {
        PolicyObjects::Policy(policy) => Some(policy),
        PolicyObjects::Binding(_) => None,
    });
    policies.flat_map(|policy| {
        let bindings = objects.iter().filter_map(move |it| match &it.0 {
            PolicyObjects::Binding(binding) if binding.policy == policy.name => Some(binding),
            _ => None,
        });
        bindings.map(move |binding| (policy, binding))
    })
}

/// A call of a policy under one of its bindings, with the request that it validates.
struct PolicyCall<'a> {
    policy: &'a Policy,
    binding: &'a Binding,
    request: &'a Request<'a>,
    object: &'a Value,
}

impl Policies {
    /// Returns all policies and bindings as they are now.
    ///
    /// # Errors
    /// [`Error::Forbidden`] if they have not been read in time, at the start of the server.
    pub(super) async fn current(
        &self,
        request: &Request<'_>,
        object: &Value,
    ) -> Result<Arc<[Arc<PolicyObject>]>, Error> {
        let objects = self.objects.get().await;
        objects.ok_or_else(|| request.forbid(object, "not yet ready to handle request"))
    }

    /// Evaluates a policy under one of its bindings.
    async fn ask(
        &self,
        call: &PolicyCall<'_>,
        namespace: &mut RequestNamespace<'_>,
    ) -> Result<Evaluation, Error> {
        let PolicyCall {
            policy,
            binding,
            request,
            object,
        } = call;
        let Some(resource) = namespace.matched(&policy.criteria, object).await? else {
            return Ok(Evaluation::default());
        };
        if let Some(criteria) = &binding.criteria
            && namespace.matched(criteria, object).await?.is_none()
        {
            return Ok(Evaluation::default());
        }
        offload(Work::Expressions).await;
        let params = self
            .match_context
            .params(policy, binding.params.as_ref(), request);
        let params = match params.await {
            Ok(params) => params,
            Err(why) if policy.fails => {
                let why = format!("failed to configure binding: {why}");
                return Ok(Violation::new(why).into());
            }
            Err(_) => return Ok(Evaluation::default()),
        };
        let shown = ConvertedObjects::new(request, &resource, object);
        let described = Value::Object(describe(request, &resource, ""));
        let namespace = namespace.object().await?.unwrap_or(&Value::Null);
        let mut all = Evaluation::default();
        for params in &params {
            let input = EvaluationInput {
                match_context: &self.match_context,
                admission_request: request,
                resource: &resource,
                object: &shown.object,
                old: &shown.old,
                request: &described,
                params,
                namespace,
            };
            let evaluation = evaluate(policy, &input);
            all.violations.extend(evaluation.violations);
            all.annotations.extend(evaluation.annotations);
        }
        Ok(all)
    }
}

impl PolicyCall<'_> {
    fn warn(&self, violation: &Violation) {
        let (policy, binding) = (&self.policy.name, &self.binding.name);
        self.request.context.warn(format!(
            "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {}",
            violation.message
        ));
    }

    fn audit(&self, violation: &Violation) {
        let key = "validation.policy.admission.k8s.io/validation_failure";
        self.request.context.annotate(key, || {
            let (message, place) = (json!(violation.message), violation.place);
            let (policy, binding) = (json!(self.policy.name), json!(self.binding.name));
            let actions = json!(self.binding.actions);
            format!(
                "[{{\"message\":{message},\"policy\":{policy},\"binding\":{binding},\"expressionIndex\":{place},\
                 \"validationActions\":{actions}}}]"
            )
        });
    }

    fn refusal(&self, violation: &Violation) -> Error {
        let (policy, binding) = (&self.policy.name, &self.binding.name);
        let why = format!(
            "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {}",
            violation.message
        );
        let forbidden = self.request.forbid(self.object, why.as_str());
        let Error::Forbidden { name, .. } = &forbidden else {
            return forbidden;
        };
        let resource = self.request.resource;
        Error::DeniedByPolicy(Box::new(PolicyDenial {
            kind: PolicyKind::Validating,
            reason: violation.reason.clone().into(),
            message: forbidden.to_string(),
            group: resource.group_version.group.clone(),
            resource: resource.plural.clone(),
            name: name.clone(),
            causes: vec![why],
        }))
    }
}
