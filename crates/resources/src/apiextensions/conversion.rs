//! Validation of the conversion between the versions of a CustomResourceDefinition.
//!
//! The rules are those of apiextensions-apiserver's `validateCustomResourceConversion`. Fields have the names of
//! v1beta1, in which definitions are stored.

use ringwatch_apimachinery::FieldError;
use serde_json::Value;

use crate::{
    admissionregistration::client_config,
    validation::{Errors, Field},
};

const STRATEGIES: [&str; 2] = ["None", "Webhook"];

/// Validates `spec.conversion` and returns the errors of the strategy, and of a webhook that is missing, invalid or not
/// wanted by the strategy.
pub(super) fn validate(object: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Field::root(object);
    let conversion = root.at("spec.conversion");
    if conversion.is_set() {
        check(&conversion, &mut errors);
    }
    errors
}

fn check(conversion: &Field<'_, '_>, errors: &mut Errors) {
    let strategy = conversion.at("strategy");
    let client = conversion.at("webhookClientConfig");
    let versions = conversion.at("conversionReviewVersions");
    strategy.must_be_one_of(&STRATEGIES, errors);
    if strategy.text() != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        client.must_be_unset(why, errors);
        if !versions.is_empty() {
            errors.push(versions.forbidden(why));
        }
        return;
    }
    if client.is_set() {
        client_config::client(&client, errors);
    } else {
        errors.push(client.required("required when strategy is set to Webhook"));
    }
    if versions.is_empty() {
        errors.push(versions.required(""));
    } else {
        client_config::review_versions(&versions, true, errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    fn wrong(conversion: &Value) -> Vec<String> {
        messages(&validate(&json!({"spec": {"conversion": conversion}})))
    }

    #[test]
    fn a_conversion_says_how() {
        assert_eq!(wrong(&Value::Null), [""; 0]);
        assert_eq!(wrong(&json!({"strategy": "None"})), [""; 0]);
        assert_eq!(
            wrong(&json!({})),
            ["spec.conversion.strategy: Required value"]
        );
        assert_eq!(
            wrong(&json!({"strategy": "Some", "webhookClientConfig": {"url": "https://a"}})),
            [
                "spec.conversion.strategy: Unsupported value: \"Some\": supported values: \"None\", \"Webhook\"",
                "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook"
            ]
        );
        assert_eq!(
            wrong(&json!({"strategy": "None", "conversionReviewVersions": ["v1"]})),
            [
                "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook"
            ]
        );
    }

    #[test]
    fn a_webhook_is_somewhere() {
        let webhook = |client: Value| {
            let versions = json!(["v1"]);
            wrong(
                &json!({"strategy": "Webhook", "webhookClientConfig": client,
                "conversionReviewVersions": versions}),
            )
        };
        assert_eq!(webhook(json!({"url": "https://a"})), [""; 0]);
        assert_eq!(
            webhook(json!({"url": "https://a", "service": null, "caBundle": null})),
            [""; 0]
        );
        assert_eq!(
            webhook(json!({"url": null, "service": {"namespace": "a", "name": "b", "port": 1}})),
            [""; 0]
        );
        assert_eq!(
            webhook(json!({"url": null, "service": null})),
            [
                "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required"
            ]
        );
        assert_eq!(
            webhook(Value::Null),
            [
                "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook"
            ]
        );
        assert_eq!(
            webhook(json!({"url": "https://a", "service": {}})),
            [
                "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required"
            ]
        );
        assert_eq!(
            wrong(
                &json!({"strategy": "Webhook", "webhookClientConfig": {"service":
                {"namespace": "a", "port": 0}}})
            ),
            [
                "spec.conversion.webhookClientConfig.service.namespace: Required value",
                "spec.conversion.webhookClientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                "spec.conversion.conversionReviewVersions: Required value"
            ]
        );
    }

    #[test]
    fn a_webhook_is_called_as_admission_webhooks_are() {
        let webhook = |client: Value, versions: &[&str]| {
            wrong(
                &json!({"strategy": "Webhook", "webhookClientConfig": client,
                "conversionReviewVersions": versions}),
            )
        };
        let form = "desired format: https://host[/path]";
        assert_eq!(
            webhook(json!({"url": "http://u@a?b#c"}), &["v1"]),
            [
                &format!(
                    "url: Invalid value: \"http\": 'https' is the only allowed URL scheme; {form}"
                ),
                "url: Invalid value: \"u\": user information is not permitted in the URL",
                "url: Invalid value: \"c\": fragments are not permitted in the URL",
                "url: Invalid value: \"b\": query parameters are not permitted in the URL",
            ]
            .map(|it| format!("spec.conversion.webhookClientConfig.{it}"))
        );
        assert_eq!(
            webhook(
                json!({"service": {"namespace": "a", "name": "b", "port": 1, "path": "x//y"}}),
                &["v1beta1"]
            ),
            [
                "path: Invalid value: \"x//y\": must start with a '/'",
                "path: Invalid value: \"x//y\": segment[0] may not be empty",
                "path: Invalid value: \"x//y\": segment[1] may not be empty"
            ]
            .map(|it| format!("spec.conversion.webhookClientConfig.service.{it}"))
        );
        assert_eq!(
            webhook(json!({"url": "https://a"}), &["v2", "v2"]),
            [
                "spec.conversion.conversionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
                "spec.conversion.conversionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one of v1, v1beta1"
            ]
        );
    }
}
