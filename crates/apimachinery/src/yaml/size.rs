//! The size of values that aliases copy.

use serde_json::Value;

/// The size of a value with all that is in it.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    /// The number of values.
    pub(super) nodes: usize,
    /// The number of bytes of texts and keys.
    pub(super) bytes: usize,
    /// The number of levels of lists and maps.
    pub(super) depth: usize,
}

impl Size {
    /// Returns the size of a value.
    pub(super) fn of(value: &Value) -> Self {
        let mut size = Self {
            nodes: 1,
            ..Self::default()
        };
        let mut add = |inner: &Value| {
            let inner = Self::of(inner);
            size.nodes += inner.nodes;
            size.bytes += inner.bytes;
            size.depth = size.depth.max(inner.depth);
        };
        match value {
            Value::Array(items) => items.iter().for_each(add),
            Value::Object(members) => {
                members.values().for_each(&mut add);
                size.bytes += members.keys().map(String::len).sum::<usize>();
            }
            Value::String(text) => {
                size.bytes = text.len();
                return size;
            }
            _ => return size,
        }
        size.depth += 1;
        size
    }
}
