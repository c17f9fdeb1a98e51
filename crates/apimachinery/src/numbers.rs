//! Numbers as Go keeps them: an integer of 64 bits, or a float.
//!
//! A number with a point or an exponent is a float, even if it is whole, until the object is written
//! ([`ringwatch::meta::json_text`]): then a float that is whole has no point, and is an integer for who reads it.

use serde_json::{Number, Value};

/// Gives the numbers of an object the form that they have once it was written and read again: whole numbers have no
/// point or exponent.
pub fn normalize(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(members) => members.values_mut().for_each(normalize),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Returns true if two values are the same, with the same forms of numbers. Follows `reflect.DeepEqual`.
#[must_use]
pub fn deep_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (None, None) => one.as_f64() == other.as_f64(),
            (one, other) => one == other,
        },
        (Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| deep_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|((name, one), (same, other))| name == same && deep_equal(one, other))
        }
        _ => one == other,
    }
}

/// Returns another form of a number that is whole; `None` if it has none.
fn whole(number: &Number) -> Option<Number> {
    if number.is_i64() {
        return None;
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    // The sum makes one of both zeros. The digits are the fewest that tell the float, then zeros.
    let digits = (float + 0.0).to_string();
    let integer = digits.parse::<i64>().map(Number::from);
    let integer = integer.or_else(|_| digits.parse::<u64>().map(Number::from));
    integer.ok().or_else(|| Number::from_f64(float))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_integer_and_a_float_are_not_the_same() {
        let parsed = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
        for (one, other, same) in [
            ("5", "5", true),
            ("5.0", "5e0", true),
            ("5", "5.0", false),
            // Beyond 64 bits there are floats alone.
            ("9223372036854775808", "9223372036854775809", true),
            ("9223372036854775807", "9223372036854775807.0", false),
        ] {
            let (one, other) = (parsed(one), parsed(other));
            let nested = |it: &Value| json!({"a": [it], "b": "x"});
            assert_eq!(deep_equal(&one, &other), same, "{one} {other}");
            assert_eq!(deep_equal(&nested(&one), &nested(&other)), same);
        }
        assert!(!deep_equal(&json!([1]), &json!([1, 2])));
        assert!(!deep_equal(&json!({"a": 1}), &json!({"b": 1})));
    }

    #[test]
    fn whole_numbers_have_no_point() {
        for (written, stored) in [
            ("1000.0", "1000"),
            ("1e3", "1000"),
            ("1E+3", "1000"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("-7", "-7"),
            ("1.5", "1.5"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854776000"),
            ("18446744073709551615", "1.8446744073709552e+19"),
            ("1234567890123456789.0", "1234567890123456800"),
            ("1e300", "1e+300"),
        ] {
            let text = format!(r#"{{"a":[{written}]}}"#);
            let mut value: Value = serde_json::from_str(&text).expect("JSON");
            normalize(&mut value);
            assert_eq!(
                value.to_string(),
                format!(r#"{{"a":[{stored}]}}"#),
                "{written}"
            );
        }
    }
}
