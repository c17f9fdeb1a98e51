//! Expressions in CEL, over a small object. Compiling and running end, whatever they cost, and two runs give the same.

use ringwatch_cel::{Expression, Variables};
use serde_json::json;

use crate::memory::within;

/// Bytes that an expression may take: what is set aside for requests with expressions, many times over, since a
/// parser's tables are made at its first use.
const BYTES: usize = 256 << 20;

pub(crate) fn run(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let names = ["object", "items", "number"];
    let compiled = within(BYTES, "compiling", || Expression::compile(text, &names));
    let Ok(expression) = compiled else {
        return false;
    };
    let run = || {
        let mut variables = Variables::new();
        let object =
            json!({"metadata": {"name": "a", "labels": {"b": "c"}}, "spec": {"replicas": 3}});
        variables.add("object", &object);
        variables.add("items", &json!(["a", "b", 1, 2.5, null, {"c": "d"}]));
        variables.add("number", &json!(7));
        variables.texts(&expression)
    };
    let first = within(BYTES, "running", run);
    assert_eq!(first, run(), "an expression has one value");
    true
}
