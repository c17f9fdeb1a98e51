//! Validation of how a CustomResourceDefinition converts between its versions.
//!
//! As apiextensions-apiserver's `validateCustomResourceConversion` has it, in the words of v1beta1, in which
//! definitions are stored.

use serde_json::Value;

use super::path::{get, list, text};
use crate::registry::{FieldError, FieldErrorKind};

const STRATEGY: &str = "spec.conversion.strategy";
const CLIENT: &str = "spec.conversion.webhookClientConfig";
const REVIEW_VERSIONS: &str = "spec.conversion.conversionReviewVersions";

/// Errors of the strategy, and of a webhook that is missing or asked for in vain.
pub(super) fn validate(object: &Value) -> Vec<FieldError> {
    let is_set = |path| get(object, path).is_some_and(|it| !it.is_null());
    let mut errors = Vec::new();
    if !is_set("spec.conversion") {
        return errors;
    }
    let strategy = text(object, STRATEGY);
    match strategy {
        "" => errors.push(FieldError::required(STRATEGY)),
        "None" | "Webhook" => {}
        _ => {
            let detail = format!("{strategy:?}: supported values: \"None\", \"Webhook\"");
            let kind = FieldErrorKind::NotSupported;
            errors.push(FieldError::new(kind, STRATEGY, detail));
        }
    }
    let with = |kind, path, why: &str| FieldError::new(kind, path, why);
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if is_set(CLIENT) {
            errors.push(with(FieldErrorKind::Forbidden, CLIENT, why));
        }
        if !list(object, REVIEW_VERSIONS).is_empty() {
            errors.push(with(FieldErrorKind::Forbidden, REVIEW_VERSIONS, why));
        }
        return errors;
    }
    let [url, service] = ["url", "service"].map(|it| get(object, &format!("{CLIENT}.{it}")));
    if !is_set(CLIENT) {
        let why = "required when strategy is set to Webhook";
        errors.push(with(FieldErrorKind::Required, CLIENT, why));
    } else if url.is_some() == service.is_some() {
        let why = "exactly one of url or service is required";
        errors.push(with(FieldErrorKind::Required, CLIENT, why));
    } else if let Some(service) = service {
        errors.extend(service_errors(service));
    }
    if list(object, REVIEW_VERSIONS).is_empty() {
        errors.push(FieldError::required(REVIEW_VERSIONS));
    }
    errors
}

fn service_errors(service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for member in ["name", "namespace"] {
        if text(service, member).is_empty() {
            errors.push(FieldError::required(format!("{CLIENT}.service.{member}")));
        }
    }
    let port = get(service, "port").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        let path = format!("{CLIENT}.service.port");
        errors.push(FieldError::invalid(path, &port.into(), why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::checks::messages;
    use super::*;

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
                "spec.conversion.webhookClientConfig.service.name: Required value",
                "spec.conversion.webhookClientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                "spec.conversion.conversionReviewVersions: Required value"
            ]
        );
    }
}
