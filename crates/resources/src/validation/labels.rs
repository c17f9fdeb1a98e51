//! Labels, label selectors and node selectors.

use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use super::field::{Errors, Field};
use super::later_rules::NODE_VALUES;

const NO_OPERATOR: &str = "not a valid selector operator";
const NO_VALUES: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const VALUES: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

/// Checks the keys and values of labels.
pub(crate) fn labels(at: &Field<'_, '_>, errors: &mut Errors) {
    for (name, value) in at.value().as_object().into_iter().flatten() {
        let key = formats::label_key(name).into_iter();
        errors.extend(key.map(|why| at.invalid_value(name.as_str(), why)));
        let text = value.as_str().unwrap_or_default();
        let value = formats::label_value(text).into_iter();
        errors.extend(value.map(|why| at.invalid_value(text, why)));
    }
}

/// Checks a LabelSelector, if there is one.
pub(crate) fn selector(at: &Field<'_, '_>, errors: &mut Errors) {
    selector_with_values(at, None, errors);
}

/// Checks a LabelSelector, if there is one, the values in whose expressions have to conform to a later rule.
pub(crate) fn selector_by_later_rule(at: &Field<'_, '_>, rule: &'static str, errors: &mut Errors) {
    selector_with_values(at, Some(rule), errors);
}

/// Checks a LabelSelector, if there is one. Its values are left out if an older object could have wrong ones, from
/// before they were checked. Follows `ValidateLabelSelector` with `AllowInvalidLabelValueInSelector`.
pub(crate) fn selector_with(at: &Field<'_, '_>, any_values: bool, errors: &mut Errors) {
    if !any_values {
        return selector(at, errors);
    }
    labels(&at.at("matchLabels"), errors);
    for expression in at.items("matchExpressions") {
        requirement(&expression, errors);
    }
}

fn selector_with_values(at: &Field<'_, '_>, rule: Option<&'static str>, errors: &mut Errors) {
    labels(&at.at("matchLabels"), errors);
    for expression in at.items("matchExpressions") {
        requirement(&expression, errors);
        values(&expression, rule, errors);
    }
}

/// Checks that the values of an expression are values that labels may have.
fn values(expression: &Field<'_, '_>, rule: Option<&'static str>, errors: &mut Errors) {
    let first = errors.len();
    for value in expression.items("values") {
        value.must_conform(formats::label_value, errors);
    }
    for error in &mut errors[first..] {
        error.later_rule = rule;
    }
}

/// Returns true if a LabelSelector cannot be read.
pub(crate) fn is_unreadable(at: &Field<'_, '_>) -> bool {
    let mut errors = Errors::new();
    selector(at, &mut errors);
    !errors.is_empty()
}

fn requirement(at: &Field<'_, '_>, errors: &mut Errors) {
    let values = at.at("values");
    match at.at("operator").text() {
        "In" | "NotIn" if values.is_empty() => errors.push(values.required(NO_VALUES)),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(values.forbidden(VALUES)),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => errors.push(at.at("operator").invalid(NO_OPERATOR)),
    }
    at.at("key").must_conform(formats::label_key, errors);
}

/// Checks a NodeSelector: a list of terms of which one has to match.
pub(crate) fn node_selector(at: &Field<'_, '_>, errors: &mut Errors) {
    let terms = at.at("nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.items("") {
        node_selector_term(&term, true, errors);
    }
}

/// Checks a term of a NodeSelector. Values of preferred terms are not checked.
pub(crate) fn node_selector_term(at: &Field<'_, '_>, required: bool, errors: &mut Errors) {
    for expression in at.items("matchExpressions") {
        let given = expression.at("values");
        match expression.at("operator").text() {
            "Gt" | "Lt" if given.len() != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(given.required(why));
                expression
                    .at("key")
                    .must_conform(formats::label_key, errors);
            }
            "Gt" | "Lt" => expression
                .at("key")
                .must_conform(formats::label_key, errors),
            _ => requirement(&expression, errors),
        }
        if required {
            values(&expression, Some(NODE_VALUES), errors);
        }
    }
    for field in at.items("matchFields") {
        node_field(&field, errors);
    }
}

fn node_field(at: &Field<'_, '_>, errors: &mut Errors) {
    let values = at.at("values");
    if !matches!(at.at("operator").text(), "In" | "NotIn") {
        errors.push(at.at("operator").invalid(NO_OPERATOR));
    } else if values.len() != 1 {
        let why =
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.push(values.required(why));
    }
    if at.at("key").text() != "metadata.name" {
        errors.push(at.at("key").invalid("not a valid field selector key"));
        return;
    }
    for value in at.items("values") {
        value.must_conform(formats::dns_subdomain, errors);
    }
}

/// Returns a LabelSelector as Go writes it, which errors show.
pub(crate) fn shown_selector(selector: &Value) -> String {
    let members = ["matchLabels", "matchExpressions"];
    let members = members.iter().filter_map(|name| {
        let value = selector.get(*name).filter(|it| !it.is_null())?;
        Some(format!("{}:{value}", Value::from(*name)))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Returns true if a LabelSelector selects everything.
pub(crate) fn selects_all(selector: &Value) -> bool {
    list(selector, "matchExpressions").is_empty()
        && get(selector, "matchLabels")
            .and_then(Value::as_object)
            .is_none_or(serde_json::Map::is_empty)
}

/// Returns true if a LabelSelector selects these labels.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let exact = get(selector, "matchLabels").and_then(Value::as_object);
    let expression = |it: &Value| {
        let value = labels.get(text(it, "key"));
        match text(it, "operator") {
            "In" => value.is_some_and(|value| list(it, "values").contains(value)),
            "NotIn" => value.is_none_or(|value| !list(it, "values").contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    exact
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
        && list(selector, "matchExpressions").iter().all(expression)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_select() {
        let labels = json!({"a": "b"});
        let one = |operator: &str, key: &str, values: Value| {
            let expression = json!({"key": key, "operator": operator, "values": values});
            selects(&json!({"matchExpressions": [expression]}), &labels)
        };
        assert!(one("In", "a", json!(["b", "c"])));
        assert!(!one("In", "x", json!(["b"])));
        assert!(one("NotIn", "x", json!(["b"])));
        assert!(!one("NotIn", "a", json!(["b"])));
        assert!(one("Exists", "a", Value::Null));
        assert!(!one("DoesNotExist", "a", Value::Null));
        assert!(!one("Likes", "a", Value::Null));
    }
}
