//! Patches of all syntaxes, applied to an object. The first byte is the syntax; the patch follows to the first zero
//! byte, and then the object, in JSON.
//!
//! A merge patch does what RFC 7386 says, but for nulls in lists, also when it is applied again. A strategic merge
//! patch leaves kind and version, but for what is no text, with which no object is read. No patch takes more memory
//! than the limits of `patches` allow for.

use ringwatch_endpoints::parsers;
use serde_json::{Map, Value};

use crate::memory::within;

/// Bytes of memory for a byte of patch and object, and for what a patch may copy.
const FACTOR: usize = 1_000;
const COPIES_BYTES: usize = 64 << 20;

pub(crate) fn run(bytes: &[u8]) -> bool {
    let Some((syntax, rest)) = bytes.split_first() else {
        return false;
    };
    let media_type = match syntax % 3 {
        0 => "application/json-patch+json",
        1 => "application/merge-patch+json",
        _ => "application/strategic-merge-patch+json",
    };
    let mut parts = rest.splitn(2, |byte| *byte == 0);
    let patch = parts.next().unwrap_or_default();
    let object = serde_json::from_slice::<Value>(parts.next().unwrap_or_default());
    let Some(object) = object.ok().filter(Value::is_object) else {
        return false;
    };
    let memory = FACTOR * bytes.len() + COPIES_BYTES;
    let patched = within(memory, media_type, || {
        parsers::patched(media_type, patch, &object)
    });
    let Ok(patched) = patched else {
        return false;
    };
    assert!(patched.is_object(), "{patched}");
    match syntax % 3 {
        0 => {}
        1 => {
            // Texts that are no Unicode are mended, which this parser does not do.
            let Ok(parsed) = serde_json::from_slice::<Value>(patch) else {
                return true;
            };
            assert_eq!(patched, merged(object, &parsed));
            let again = parsers::patched(media_type, patch, &patched);
            assert_eq!(again, Ok(merged(patched, &parsed)));
        }
        _ => {
            for member in ["apiVersion", "kind"] {
                let is_kept = object.get(member).is_none_or(|own| patched[member] == *own);
                let is_readable = patched[member].is_string();
                assert!(is_kept || !is_readable, "{member} is that of the object");
            }
        }
    }
    true
}

/// Returns the result of a merge patch, by the pseudocode of RFC 7386. Unlike there, a list that takes the place of
/// anything but a map is taken without the nulls of the maps in it, as kube-apiserver does.
fn merged(target: Value, patch: &Value) -> Value {
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Array(items) if !target.is_object() => {
            return items.iter().map(|item| merged(Value::Null, item)).collect();
        }
        other => return other.clone(),
    };
    let mut target = match target {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            let own = target.remove(name).unwrap_or_default();
            target.insert(name.clone(), merged(own, value));
        }
    }
    Value::Object(target)
}
