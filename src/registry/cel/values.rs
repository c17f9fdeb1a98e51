//! Values as expressions see them that know no schema.

use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;

/// A value as it is: names of members are data.
pub(in crate::registry) fn plain(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => CelValue::Int(integer),
            None => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(members) => {
            let key = |name: &String| Key::String(Arc::new(name.clone()));
            let members = members
                .iter()
                .map(|(name, value)| (key(name), plain(value)));
            CelValue::Map(Map {
                map: Arc::new(members.collect()),
            })
        }
    }
}
