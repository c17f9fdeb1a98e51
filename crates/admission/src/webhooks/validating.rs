//! Webhooks that allow an object or refuse it. All are called at once.

use async_trait::async_trait;
use futures::future::join_all;
use ringwatch_apimachinery::Error;
use ringwatch_registry::admission::Request;
use serde_json::Value;

use super::Webhooks;
use super::call_error::CallOutcome;
use crate::chain::Plugin;

/// The webhooks of ValidatingWebhookConfigurations.
#[derive(Debug)]
pub struct ValidatingWebhooks(pub Webhooks);

#[async_trait]
impl Plugin for ValidatingWebhooks {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        let webhooks = &self.0;
        let configurations = webhooks.configurations(request, object).await?;
        let mut namespace = webhooks.match_context.namespace_of(request);
        let mut calls = Vec::new();
        for hook in configurations.iter().flat_map(|it| &it.hooks) {
            let applies = webhooks.applies(hook, request, &mut namespace, object);
            if let Some(resource) = applies.await? {
                let place = calls.len();
                calls.push(async move {
                    let called = webhooks.call(hook, request, &resource, object, false);
                    if let CallOutcome::Ignored(_) = called.await? {
                        let key = format!(
                            "failed-open.validating.webhook.admission.k8s.io/round_0_index_{place}"
                        );
                        request.context.annotate(key, || hook.name.as_str());
                    }
                    Ok(())
                });
            }
        }
        if calls.is_empty() {
            return Ok(());
        }
        let clock = &request.context.clock;
        let since = clock.now();
        let called = join_all(calls).await;
        request.context.webhooks_took(clock.now() - since);
        called.into_iter().collect()
    }
}
