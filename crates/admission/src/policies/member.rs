//! The members of stored policies and bindings.

use serde_json::Value;

/// Returns a member that is text; empty if it is not there.
pub(super) fn text(value: &Value, name: &str) -> String {
    let text = value.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
