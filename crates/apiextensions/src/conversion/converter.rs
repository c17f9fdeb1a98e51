//! The conversion of objects from any version of a definition to another.

use std::sync::Arc;

use ringwatch::storage::Completion;
use ringwatch_apimachinery::path::set;
use ringwatch_webhook::WebhookClient;
use serde_json::Value;

use super::webhook::{ConversionWebhook, NotConverted};
use crate::{Definition, SchemaCompletion};

/// The conversion of the objects of a definition between its versions.
///
/// Follows `crConverter` and `schemaCoercingConverter`: with the strategy None the apiVersion alone is changed, and
/// what comes out of either strategy loses the members that the schema of its version does not know. It gets no
/// defaults.
#[derive(Clone, Debug)]
pub struct Converter {
    /// The webhook of the strategy Webhook; `None` with the strategy None.
    webhook: Option<ConversionWebhook>,
    /// The schemas of all versions.
    schemas: Arc<SchemaCompletion>,
}

impl Converter {
    /// Makes the converter of a definition, which calls a webhook by this client.
    #[must_use]
    pub fn new(definition: &Definition, client: &Arc<dyn WebhookClient>) -> Self {
        Self {
            webhook: ConversionWebhook::read(definition.object(), client),
            schemas: Arc::new(definition.completion()),
        }
    }

    /// Returns true if labels, and fields that selectors look at, may differ between versions.
    pub(super) fn changes_content(&self) -> bool {
        self.webhook.is_some()
    }

    /// Converts objects to another version.
    ///
    /// # Errors
    /// [`NotConverted`] as soon as one of them is not.
    pub(super) async fn convert(
        &self,
        mut objects: Vec<Value>,
        version: &str,
    ) -> Result<Vec<Value>, NotConverted> {
        match &self.webhook {
            Some(webhook) => objects = webhook.convert(objects, version).await?,
            None => {
                for object in &mut objects {
                    set(object, "apiVersion", version.into());
                }
            }
        }
        for object in &mut objects {
            self.schemas.coerce(object);
        }
        Ok(objects)
    }

    /// Completes an object as it is read from a store, by the schema of the version in which it is stored.
    pub(super) fn complete(&self, stored: &mut Value) {
        self.schemas.complete(stored);
    }
}
