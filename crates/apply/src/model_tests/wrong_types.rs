//! Objects of built-in kinds in which one value is another one: those that Go's decoder does not take cannot be applied
//! either, and all others can, although apply looks at them in another way.

use proptest::prelude::*;
use ringwatch::codec;
use ringwatch_apimachinery::Error;
use serde_json::{Value, json};

use super::built_in::built_in;
use crate::{Manager, apply};

/// Adds the pointers to all values below one, but for those that say of what type an object is.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut add = |name: &str, value: &Value| {
        let pointer = format!("{at}/{name}");
        if !["/apiVersion", "/kind"].contains(&pointer.as_str()) {
            pointers(value, &pointer, found);
            found.push(pointer);
        }
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| add(name, value)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                add(&index.to_string(), item);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn values_that_the_decoder_refuses_cannot_be_applied(
        kind in 0..7_usize,
        place in any::<prop::sample::Index>(),
        value in prop::sample::select(vec![
            json!(5), json!(1.5), json!(7.0), json!(true), json!("x"), json!(""), json!([]), json!({}), json!([5]),
            json!(["x"]), json!([{}]), json!({"a": 5}), json!({"a": "x"}), json!({"name": []}),
        ]),
    ) {
        let mut object = built_in()[kind].clone();
        let mut places = Vec::new();
        pointers(&object, "", &mut places);
        let place = place.get(&places);
        *object.pointer_mut(place).expect("a place") = value;
        let version = object["apiVersion"].as_str().expect("a version").to_owned();
        let kind = codec::kind(&version, object["kind"].as_str().expect("a kind")).expect("a built-in kind");
        // A number that is whole is one without a point in what is applied.
        let mut decoded = object.as_object().expect("an object").clone();
        let decoded = codec::check_merged_types(kind, &mut decoded);
        let is_taken = decoded.is_ok_and(|unknown| unknown.is_empty());
        let applied = apply(None, &object, &Manager::for_tests("one", &version, ""), false);
        match applied {
            Ok(_) => prop_assert!(is_taken, "{place} {object}"),
            Err(Error::Untranslated(why)) => prop_assert!(!is_taken, "{place} {object}: {why}"),
            Err(error) => panic!("{error}"),
        }
    }
}
