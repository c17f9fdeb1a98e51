//! Conversion of selectors inside objects to the text form that requests use, as `metav1.FormatLabelSelector` does.

use serde_json::Value;

/// The terms of a selector: the key of each and its text.
struct SelectorTerms(Vec<(String, String)>);

/// Formats a LabelSelector as text; empty if it selects everything.
#[must_use]
pub fn label_selector(selector: &Value) -> String {
    let mut terms = SelectorTerms::of_labels(selector.get("matchLabels"));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    let expressions = expressions.into_iter().flatten();
    terms.0.extend(expressions.map(expression));
    terms.text()
}

/// Formats a map of labels as text; empty if there are none.
#[must_use]
pub fn labels(labels: &Value) -> String {
    SelectorTerms::of_labels(Some(labels)).text()
}

impl SelectorTerms {
    fn of_labels(labels: Option<&Value>) -> Self {
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        let terms = labels.map(|(key, value)| {
            let value = value.as_str().unwrap_or_default();
            (key.clone(), format!("{key}={value}"))
        });
        Self(terms.collect())
    }

    fn text(mut self) -> String {
        self.0.sort();
        let texts: Vec<String> = self.0.into_iter().map(|(_, text)| text).collect();
        texts.join(",")
    }
}

/// Returns the key of one of `matchExpressions` and its text.
fn expression(expression: &Value) -> (String, String) {
    let text = |name: &str| {
        let value = expression.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let key = text("key");
    let values = expression.get("values").and_then(Value::as_array);
    let values = values.into_iter().flatten();
    let mut values: Vec<&str> = values.filter_map(Value::as_str).collect();
    values.sort_unstable();
    let values = values.join(",");
    let text = match text("operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    };
    (key.to_owned(), text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn terms_stand_in_the_order_of_their_keys() {
        let selector = json!({"matchLabels": {"m": "x"}, "matchExpressions": [
            {"key": "z", "operator": "Exists"},
            {"key": "b", "operator": "NotIn", "values": ["q", "p"]},
            {"key": "c", "operator": "DoesNotExist"},
            {"key": "a", "operator": "In", "values": ["2", "1"]}]});
        assert_eq!(
            label_selector(&selector),
            "a in (1,2),b notin (p,q),!c,m=x,z"
        );
        assert_eq!(label_selector(&json!({})), "");
        assert_eq!(labels(&json!({"b": "2", "a": "1"})), "a=1,b=2");
    }
}
