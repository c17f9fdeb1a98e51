//! Validation of the conversion between the versions of a CustomResourceDefinition.
//!
//! The rules are those of apiextensions-apiserver's `validateCustomResourceConversion`. Fields have the names of
//! v1beta1, in which definitions are stored.

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{list, text};
use serde_json::Value;

use crate::admissionregistration::client_config;
use crate::certificates::pem::{self, check_authorities};
use crate::validation::{Errors, Field};

const STRATEGIES: [&str; 2] = ["None", "Webhook"];

/// Validates `spec.conversion` and returns the errors of the strategy, and of a webhook that is missing, invalid or not
/// wanted by the strategy. What the conversion of an older definition has wrong may stay so.
pub(super) fn validate(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Field::root(object);
    let conversion = root.at("spec.conversion");
    if !conversion.is_set() {
        return errors;
    }
    let strategy = conversion.at("strategy");
    if strategy.text() != "None" && root.at("spec.preserveUnknownFields").is_true() {
        let why = "must be None if spec.preserveUnknownFields is true";
        errors.push(strategy.invalid_value(strategy.text(), why));
    }
    strategy.must_be_one_of(&STRATEGIES, &mut errors);
    let client = conversion.at("webhookClientConfig");
    let versions = conversion.at("conversionReviewVersions");
    if strategy.text() != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        client.must_be_unset(why, &mut errors);
        if !versions.is_empty() {
            errors.push(versions.forbidden(why));
        }
        return errors;
    }
    if client.is_set() {
        client_config::client(&client, &mut errors);
        let bundle = client.at("caBundle");
        if !bundle.is_empty()
            && old.is_some_and(has_right_bundle)
            && let Some(why) = bundle_error(bundle.text())
        {
            errors.push(bundle.invalid(why));
        }
    } else {
        errors.push(client.required("required when strategy is set to Webhook"));
    }
    if versions.is_empty() {
        errors.push(versions.required(""));
    } else {
        let had_known = old.is_none_or(has_known_version);
        client_config::review_versions(&versions, had_known, &mut errors);
    }
    errors
}

/// Returns true if the objects of a definition are served.
pub(super) fn is_established(object: &Value) -> bool {
    let mut conditions = list(object, "status.conditions").iter();
    conditions.any(|it| text(it, "type") == "Established" && text(it, "status") == "True")
}

/// Returns true unless the conversion of a definition has versions of reviews of which none is known. Follows
/// `hasValidConversionReviewVersionOrEmpty`.
fn has_known_version(object: &Value) -> bool {
    let versions = list(object, "spec.conversion.conversionReviewVersions");
    versions.is_empty() || versions.iter().any(|it| it == "v1" || it == "v1beta1")
}

/// Returns true if a definition is in use and has no wrong certificates. Follows `allowInvalidCABundle`.
fn has_right_bundle(object: &Value) -> bool {
    let bundle = text(object, "spec.conversion.webhookClientConfig.caBundle");
    is_established(object) && (bundle.is_empty() || bundle_error(bundle).is_none())
}

fn bundle_error(bundle: &str) -> Option<String> {
    let why = check_authorities(&pem::bytes(bundle)).err()?;
    Some(format!("unable to load root certificates: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    fn wrong(conversion: &Value) -> Vec<String> {
        messages(&validate(
            &json!({"spec": {"conversion": conversion}}),
            None,
        ))
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

    #[test]
    fn what_was_wrong_before_may_stay_so() {
        let definition = |established: &str, bundle: &str, version: &str| {
            json!({
                "spec": {"conversion": {"strategy": "Webhook", "conversionReviewVersions": [version],
                    "webhookClientConfig": {"url": "https://a", "caBundle": bundle}}},
                "status": {"conditions": [{"type": "Established", "status": established}]},
            })
        };
        let bundle = "spec.conversion.webhookClientConfig.caBundle: Invalid value: \"eA==\": unable to load root certificates: unable to parse bytes as PEM block";
        let version = "spec.conversion.conversionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1";
        let new = definition("True", "eA==", "v9");
        for (old, expected) in [
            (None, vec![version]),
            (Some(definition("True", "", "v1")), vec![bundle, version]),
            (Some(definition("False", "", "v8")), vec![]),
            (Some(definition("True", "eQ==", "v1")), vec![version]),
        ] {
            assert_eq!(messages(&validate(&new, old.as_ref())), expected, "{old:?}");
        }
    }

    #[test]
    fn versions_that_keep_everything_are_not_converted() {
        let spec = json!({"preserveUnknownFields": true, "conversion": {"strategy": "Some"}});
        assert_eq!(
            messages(&validate(&json!({"spec": spec}), None)),
            [
                "spec.conversion.strategy: Invalid value: \"Some\": must be None if spec.preserveUnknownFields is true",
                "spec.conversion.strategy: Unsupported value: \"Some\": supported values: \"None\", \"Webhook\"",
            ]
        );
    }
}
