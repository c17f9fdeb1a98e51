//! Converts between JSON and the values of expressions, without a schema.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map};
use serde_json::{Number, Value};

use super::conversions::as_text;
use super::merged_lists::list_items;
use super::optional::{inside, is_absent};

/// Returns JSON as a value of an expression. Names of members are kept as they are.
pub fn plain(value: &Value) -> CelValue {
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

/// Returns a value as JSON; `None` if JSON has no such value. Empty optionals are left out.
pub fn to_json(value: &CelValue) -> Option<Value> {
    Some(match value {
        CelValue::Null => Value::Null,
        CelValue::Bool(flag) => (*flag).into(),
        CelValue::Int(number) => (*number).into(),
        CelValue::UInt(number) => (*number).into(),
        CelValue::Float(number) => Number::from_f64(*number)?.into(),
        CelValue::String(text) => text.as_str().into(),
        CelValue::Bytes(bytes) => STANDARD.encode(bytes.as_slice()).into(),
        CelValue::List(items) => list_to_json(items)?,
        CelValue::Map(map) => {
            let mut members = serde_json::Map::with_capacity(map.map.len());
            for (name, value) in map.map.iter() {
                let Key::String(name) = name else { return None };
                if !is_absent(value) {
                    members.insert(name.to_string(), to_json(value)?);
                }
            }
            Value::Object(members)
        }
        CelValue::Opaque(opaque) => match list_items(value) {
            Some(items) => list_to_json(items)?,
            None => to_json(inside(opaque.as_ref())?)?,
        },
        other @ (CelValue::Timestamp(_) | CelValue::Duration(_)) => as_text(other).ok()?.into(),
        CelValue::Function(..) => return None,
    })
}

fn list_to_json(items: &[CelValue]) -> Option<Value> {
    let items: Option<Vec<Value>> = items.iter().map(to_json).collect();
    items.map(Value::Array)
}
