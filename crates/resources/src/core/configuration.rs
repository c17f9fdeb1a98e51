//! ConfigMaps and Secrets: data of a bounded size that may be made immutable.

pub(crate) mod table;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringwatch_apimachinery::go_json;
use ringwatch_apimachinery::path::{get, remove, set, text};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_registry::RequestContext;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use x509_parser::prelude::Pem;

use super::pod::warnings::{self, names_secrets_to_mount};
use crate::strategy::kind_hooks::KindHooks;
use crate::validation::Field;
use crate::validation::values::config_key;

/// Maximum size of an object's data in bytes.
const DATA_BYTES_MAX: usize = 1024 * 1024;

/// The behaviour of ConfigMaps: validation of keys and size, and immutability.
#[derive(Debug)]
pub(super) struct ConfigMaps;

/// The behaviour of Secrets: `stringData`, validation of keys, size and type, and immutability.
#[derive(Debug)]
pub(super) struct Secrets;

/// Keeps the references to secrets short.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceAccounts;

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

impl KindHooks for ConfigMaps {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        wrong_config_map(object)
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = frozen(object, old, &["data", "binaryData"]);
        errors.extend(wrong_config_map(object));
        errors
    }
}

/// Returns the errors in the data of a ConfigMap. Follows `ValidateConfigMap`.
fn wrong_config_map(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut bytes = 0;
    for (key, value) in members(object, "data") {
        errors.extend(wrong_key("data", key));
        if get(object, "binaryData").is_some_and(|binary| binary.get(key).is_some()) {
            let why = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(
                format!("data[{key}]"),
                &json!(key),
                why,
            ));
        }
        bytes += value.len();
    }
    for (key, value) in members(object, "binaryData") {
        errors.extend(wrong_key("binaryData", key));
        bytes += decoded_len(value);
    }
    // The error has no field, and Kubernetes writes an empty path as `[]`.
    errors.extend(too_much("[]", bytes));
    errors
}

impl KindHooks for ServiceAccounts {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        keep_names_of_secrets(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, _old: &Value) {
        keep_names_of_secrets(object);
    }

    /// Warns of an annotation that does nothing any more when it is new.
    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if !old.is_some_and(|old| names_secrets_to_mount(&Field::root(old))) {
            warnings::service_account(&Field::root(object), &mut warnings);
        }
        warnings
    }
}

/// Reduces references to secrets to names (`cleanSecretReferences` of `registry/core/serviceaccount/strategy.go`,
/// 1.36).
fn keep_names_of_secrets(object: &mut Value) {
    let secrets = object.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        secret.retain(|member, _| member == "name");
    }
}

impl KindHooks for Secrets {
    /// Moves `stringData`, which is write-only, into `data` as base64.
    fn default(&self, object: &mut Value) {
        let Some(Value::Object(strings)) = remove(object, "stringData") else {
            return;
        };
        for (key, value) in strings {
            let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
            let mut data = get(object, "data").cloned().unwrap_or_else(|| json!({}));
            if let Some(data) = data.as_object_mut() {
                data.insert(key, encoded.into());
            }
            set(object, "data", data);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        wrong_secret(object)
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if get(object, "type") != get(old, "type") {
            let kind = get(object, "type").unwrap_or(&Value::Null);
            errors.push(FieldError::invalid("type", kind, "field is immutable"));
        }
        errors.extend(frozen(object, old, &["data"]));
        errors.extend(wrong_secret(object));
        errors
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        lacks_pem(object).map(str::to_owned).into_iter().collect()
    }
}

/// Returns the errors in the data of a Secret. Follows `ValidateSecret`.
fn wrong_secret(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut bytes = 0;
    for (key, value) in members(object, "data") {
        errors.extend(wrong_key("data", key));
        bytes += decoded_len(value);
    }
    errors.extend(too_much("data", bytes));
    errors.extend(missing_keys(object));
    errors
}

/// Returns what a secret with a certificate and its key lacks to be read. Follows `warningsForSecret`, but for whether
/// the two belong together.
fn lacks_pem(secret: &Value) -> Option<&'static str> {
    if text(secret, "type") != "kubernetes.io/tls" {
        return None;
    }
    let has_block = |key: &str| {
        let value = get(secret, "data").and_then(|data| data.get(key)?.as_str());
        let content = STANDARD.decode(value.unwrap_or_default());
        let content = content.unwrap_or_default();
        Pem::iter_from_buffer(&content).any(|block| block.is_ok())
    };
    if !has_block("tls.crt") {
        return Some("tls: failed to find any PEM data in certificate input");
    }
    let is_missing = !has_block("tls.key");
    is_missing.then_some("tls: failed to find any PEM data in key input")
}

/// Returns the keys and values of the map of strings at a path.
fn members<'a>(object: &'a Value, map: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    get(object, map)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

/// Returns the number of bytes that a base64 text encodes.
fn decoded_len(text: &str) -> usize {
    let text = text.trim_end_matches('=');
    text.len() / 4 * 3 + (text.len() % 4 * 3) / 4
}

fn too_much(field: &str, bytes: usize) -> Option<FieldError> {
    (bytes > DATA_BYTES_MAX).then(|| {
        let why = format!("may not be more than {DATA_BYTES_MAX} bytes");
        FieldError::new(FieldErrorKind::TooLong, field, why)
    })
}

/// Returns the errors in a key of the data.
fn wrong_key(map: &str, key: &str) -> impl Iterator<Item = FieldError> {
    let field = format!("{map}[{key}]");
    let shown = Value::from(key);
    let wrong = config_key(key).into_iter();
    wrong.map(move |why| FieldError::invalid(field.as_str(), &shown, why))
}

/// Returns the errors of an update that changes data of an immutable object or makes it mutable.
fn frozen(object: &Value, old: &Value, maps: &[&str]) -> Vec<FieldError> {
    if get(old, "immutable") != Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let mut errors = Vec::new();
    if get(object, "immutable") != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden("immutable", why));
    }
    for map in maps {
        if get(object, map) != get(old, map) {
            errors.push(FieldError::forbidden(*map, why));
        }
    }
    errors
}

/// Returns the errors in the data that a secret of a type must have. Follows `ValidateSecret`.
fn missing_keys(secret: &Value) -> Vec<FieldError> {
    let value = |key: &str| get(secret, "data").and_then(|data| data.get(key));
    let has = |key: &str| value(key).is_some();
    let missing = |key: &str| FieldError::required(format!("data[{key}]"));
    let config = |key: &str| match value(key) {
        None => vec![missing(key)],
        Some(value) => not_json(key, value.as_str().unwrap_or_default())
            .into_iter()
            .collect(),
    };
    match text(secret, "type") {
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            vec![missing("username"), missing("password")]
        }
        "kubernetes.io/dockercfg" => config(".dockercfg"),
        "kubernetes.io/dockerconfigjson" => config(".dockerconfigjson"),
        "kubernetes.io/ssh-auth" => {
            let key = value("ssh-privatekey").and_then(Value::as_str);
            let is_missing = key.is_none_or(str::is_empty);
            is_missing
                .then(|| missing("ssh-privatekey"))
                .into_iter()
                .collect()
        }
        "kubernetes.io/tls" => {
            let keys = ["tls.crt", "tls.key"].into_iter();
            keys.filter(|key| !has(key)).map(missing).collect()
        }
        "kubernetes.io/service-account-token" => {
            let annotations = secret.get("metadata").and_then(|it| it.get("annotations"));
            let named = annotations.and_then(|it| it.get(SERVICE_ACCOUNT_NAME));
            if named.and_then(Value::as_str).unwrap_or_default().is_empty() {
                let field = format!("metadata.annotations[{SERVICE_ACCOUNT_NAME}]");
                return vec![FieldError::required(field)];
            }
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// Returns the error of a value in base64 that is no JSON object, without showing it.
fn not_json(key: &str, value: &str) -> Option<FieldError> {
    // What is no base64 was refused when it was decoded.
    let content = STANDARD.decode(value).unwrap_or_default();
    // As Go reads it: broken text is replaced, and there is no bound of the depth worth to be told.
    let text = String::from_utf8_lossy(&content);
    let why = match serde_json::from_str::<IgnoredAny>(&text) {
        Ok(_) => {
            let other = match text.trim_start().as_bytes().first() {
                Some(b'{' | b'n') | None => return None,
                Some(b'[') => json!([]),
                Some(b'"') => json!(""),
                Some(b't' | b'f') => json!(true),
                Some(_) => json!(0),
            };
            go_json::not_of_type(&other, "map[string]interface {}")
        }
        Err(error) => go_json::message(&error, text.as_bytes()),
    };
    let shown = Value::from("<secret contents redacted>");
    Some(FieldError::invalid(format!("data[{key}]"), &shown, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_data_is_folded_in() {
        let mut secret = json!({"data": {"a": "eA==", "b": "eQ=="}, "stringData": {"a": "b"}});
        Secrets.default(&mut secret);
        assert_eq!(secret, json!({"data": {"a": "Yg==", "b": "eQ=="}}));
    }

    #[test]
    fn data_is_bounded() {
        let text = "x".repeat(DATA_BYTES_MAX);
        let message = "Too long: may not be more than 1048576 bytes";
        let fits = json!({"data": {"v": text}});
        assert_eq!(wrong_config_map(&fits), []);
        let huge = json!({"data": {"v": text, "w": "x"}});
        let [error] = &wrong_config_map(&huge)[..] else {
            panic!("one error");
        };
        assert_eq!(
            (error.field.as_str(), error.message().as_str()),
            ("[]", message)
        );
        let secret = json!({"data": {"v": STANDARD.encode(text + "x")}});
        let [error] = &wrong_secret(&secret)[..] else {
            panic!("one error");
        };
        assert_eq!(
            (error.field.as_str(), error.message().as_str()),
            ("data", message)
        );
        assert_eq!(decoded_len("Yg=="), 1);
        assert_eq!(decoded_len("YWI="), 2);
        assert_eq!(decoded_len("YWJj"), 3);
    }

    #[test]
    fn what_is_frozen_stays() {
        let old = json!({"immutable": true, "data": {"v": "4"}});
        let labelled = json!({"immutable": true, "data": {"v": "4"}, "metadata": {}});
        assert_eq!(ConfigMaps.validate_update(&labelled, &old), []);
        let changed = json!({"data": {"v": "z"}});
        let fields: Vec<_> = ConfigMaps
            .validate_update(&changed, &old)
            .into_iter()
            .map(|error| (error.field.clone(), error.message()))
            .collect();
        let message = "Forbidden: field is immutable when `immutable` is set".to_owned();
        assert_eq!(
            fields,
            [
                ("immutable".to_owned(), message.clone()),
                ("data".to_owned(), message)
            ]
        );
        let errors = ConfigMaps.validate_update(&json!({"data": {"/": ""}}), &old);
        assert_eq!(errors.last().map(|it| it.field.as_str()), Some("data[/]"));
    }

    #[test]
    fn an_annotation_without_effect_is_told_once() {
        let annotated = json!({"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}});
        let warned = |old: Option<&Value>| ServiceAccounts.warnings(&annotated, old).len();
        assert_eq!(warned(None), 1);
        assert_eq!(warned(Some(&json!({}))), 1);
        assert_eq!(warned(Some(&annotated)), 0);
    }

    #[test]
    fn keys_and_types_are_checked() {
        let fields = |errors: Vec<FieldError>| -> Vec<String> {
            errors.into_iter().map(|error| error.field).collect()
        };
        let map = json!({"data": {"a/b": "", "..": "", "ok.x_Y-1": ""}});
        assert_eq!(fields(wrong_config_map(&map)), ["data[..]", "data[a/b]"]);
        let long = json!({"data": {"/".repeat(254): ""}});
        assert_eq!(wrong_config_map(&long).len(), 2);
        let tls = json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}});
        assert_eq!(fields(wrong_secret(&tls)), ["data[tls.key]"]);
        let token = json!({"type": "kubernetes.io/service-account-token"});
        assert_eq!(
            fields(wrong_secret(&token)),
            ["metadata.annotations[kubernetes.io/service-account.name]"]
        );
    }
}
