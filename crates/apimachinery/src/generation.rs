//! The generation of an object, which counts the changes of what its users want.

use serde_json::{Value, json};

use super::path::{get, keep, set};

/// Sets the generation: one more than the old one if `begins`, else the old one.
pub fn set_generation(object: &mut Value, old: &Value, begins: bool) {
    keep(object, old, "metadata.generation");
    if begins {
        let generation = get(old, "metadata.generation").and_then(Value::as_i64);
        let next = generation.unwrap_or_default().saturating_add(1);
        set(object, "metadata.generation", json!(next));
    }
}
