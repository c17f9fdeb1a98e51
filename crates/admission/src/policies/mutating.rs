//! Policies that change objects. They are evaluated one after the other, each with what those before it have made of
//! the object, and before all webhooks.

use async_trait::async_trait;
use ringwatch_apimachinery::{Error, PolicyDenial, PolicyKind};
use ringwatch_offload::{Work, offload};
use ringwatch_registry::Resource;
use ringwatch_registry::admission::Request;
use ringwatch_registry::store::admitted_to_storage_version;
use serde_json::Value;

use super::binding::Binding;
use super::evaluate::EvaluationInput;
use super::plugin::{Policies, bound};
use super::policy::Policy;
use crate::chain::{Plugin, Round};
use crate::match_context::RequestNamespace;
use crate::matching::is_exempt;
use crate::review::{ConvertedObjects, describe, is_own_kind};

/// The policies of MutatingAdmissionPolicies.
#[derive(Debug)]
pub struct MutatingPolicies(pub Policies);

#[async_trait]
impl Plugin for MutatingPolicies {
    fn name(&self) -> &'static str {
        "MutatingAdmissionPolicy"
    }

    async fn admit_in(
        &self,
        request: &Request<'_>,
        object: &mut Value,
        round: &mut Round,
    ) -> Result<(), Error> {
        if is_exempt(request) || object.is_null() {
            return Ok(());
        }
        let objects = self.0.current(request, object).await?;
        if round.second {
            round.policies.begin_again(object);
        }
        let mut namespace = self.0.match_context.namespace_of(request);
        let mut refusals = Vec::new();
        for (policy, binding) in bound(&objects) {
            let call = PolicyCall {
                policy,
                binding,
                request,
            };
            let failures = self.ask(&call, &mut namespace, object, round).await?;
            if policy.fails {
                let denial = failures
                    .into_iter()
                    .map(|it| (it.reason, call.denial(&it.why)));
                refusals.extend(denial);
            }
        }
        round.policies.leave(object);
        if refusals.is_empty() {
            return Ok(());
        }
        Err(refusal(request, object, &refusals))
    }
}

/// A failed mutation, with the reason of its Status.
struct MutationFailure {
    reason: &'static str,
    why: String,
}

impl MutationFailure {
    fn invalid(why: String) -> Self {
        Self {
            reason: "Invalid",
            why,
        }
    }
}

/// A call of a policy under one of its bindings, with the request whose object it changes.
struct PolicyCall<'a> {
    policy: &'a Policy,
    binding: &'a Binding,
    request: &'a Request<'a>,
}

impl MutatingPolicies {
    /// Lets a policy change the object; what went wrong.
    async fn ask(
        &self,
        call: &PolicyCall<'_>,
        namespace: &mut RequestNamespace<'_>,
        object: &mut Value,
        round: &mut Round,
    ) -> Result<Vec<MutationFailure>, Error> {
        let (policy, binding) = (call.policy, call.binding);
        let Some(resource) = namespace.matched(&policy.criteria, object).await? else {
            return Ok(Vec::new());
        };
        if let Some(criteria) = &binding.criteria
            && namespace.matched(criteria, object).await?.is_none()
        {
            return Ok(Vec::new());
        }
        offload(Work::Expressions).await;
        let match_context = &self.0.match_context;
        let params = match_context.params(policy, binding.params.as_ref(), call.request);
        let params = match params.await {
            Ok(params) => params,
            Err(why) => {
                return Ok(vec![MutationFailure {
                    reason: "Forbidden",
                    why: format!("failed to configure binding: {why}"),
                }]);
            }
        };
        let namespace = namespace.object().await?.unwrap_or(&Value::Null);
        let mut failures = Vec::new();
        for params in &params {
            let before = object.clone();
            let id = call.id(params);
            let evaluation = Evaluation {
                call,
                resource: &resource,
                params,
                namespace,
            };
            let asks = |round: &mut Round| !round.second || round.policies.is_outdated(&id);
            failures.extend(self.change(&evaluation, object, || asks(round))?);
            if *object != before {
                round.note_change(&before);
                round.policies.outdate();
            }
            if policy.reinvoked {
                round.policies.has_seen(id);
            }
        }
        Ok(failures)
    }

    /// Makes the changes of a policy with one of its params, if its conditions hold.
    fn change(
        &self,
        evaluation: &Evaluation<'_>,
        object: &mut Value,
        asks: impl FnOnce() -> bool,
    ) -> Result<Vec<MutationFailure>, Error> {
        let policy = evaluation.call.policy;
        let (request, resource) = (evaluation.call.request, evaluation.resource);
        let described = Value::Object(describe(request, resource, ""));
        let variables = |shown: &ConvertedObjects| {
            let input = EvaluationInput {
                match_context: &self.0.match_context,
                admission_request: request,
                resource,
                object: &shown.object,
                old: &shown.old,
                request: &described,
                params: evaluation.params,
                namespace: evaluation.namespace,
            };
            input.variables()
        };
        let mut shown = ConvertedObjects::new(request, resource, object);
        match policy.conditions.hold(&mut variables(&shown)) {
            Ok(true) => {}
            Ok(false) => return Ok(Vec::new()),
            Err(why) => return Ok(vec![MutationFailure::invalid(why)]),
        }
        if !asks() {
            return Ok(Vec::new());
        }
        let mut failures = Vec::new();
        for mutation in &policy.mutations {
            let mut variables = variables(&shown);
            variables.add_computed(&policy.variables);
            match mutation.apply(&mut variables, resource, shown.object.clone()) {
                Ok(changed) if is_own_kind(request) => {
                    *object = admitted_to_storage_version(request.resource, resource, changed)?;
                    shown = ConvertedObjects::new(request, resource, object);
                }
                Ok(changed) => {
                    object.clone_from(&changed);
                    shown.object = changed;
                }
                Err(why) => failures.push(MutationFailure::invalid(why)),
            }
        }
        Ok(failures)
    }
}

/// The evaluation of a policy with one of its params.
struct Evaluation<'a> {
    call: &'a PolicyCall<'a>,
    resource: &'a Resource,
    params: &'a Value,
    namespace: &'a Value,
}

impl PolicyCall<'_> {
    /// Returns the identity of this evaluation among those of the request: policy, binding and params.
    fn id(&self, params: &Value) -> [String; 4] {
        let of_params = |member: &str| {
            let text = params["metadata"].get(member).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        [
            self.policy.name.clone(),
            self.binding.name.clone(),
            of_params("namespace"),
            of_params("name"),
        ]
    }

    fn denial(&self, why: &str) -> String {
        let (policy, binding) = (&self.policy.name, &self.binding.name);
        format!("policy '{policy}' with binding '{binding}' denied request: {why}")
    }
}

/// Returns a refusal in the words of the first policy, with those of all as its causes.
fn refusal(request: &Request<'_>, object: &Value, all: &[(&'static str, String)]) -> Error {
    let Some((reason, message)) = all.first() else {
        return request.forbid(object, "");
    };
    let forbidden = request.forbid(object, message.as_str());
    let Error::Forbidden { name, .. } = &forbidden else {
        return forbidden;
    };
    let resource = request.resource;
    Error::DeniedByPolicy(Box::new(PolicyDenial {
        kind: PolicyKind::Mutating,
        reason: (*reason).into(),
        message: message.clone(),
        group: resource.group_version.group.clone(),
        resource: resource.plural.clone(),
        name: name.clone(),
        causes: all.iter().map(|(_, message)| message.clone()).collect(),
    }))
}
