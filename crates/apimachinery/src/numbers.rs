//! Numbers in the form in which kube-apiserver stores them.
//!
//! There a number is an integer of 64 bits or a float, and a float that is whole is written without a point. Clients in
//! Go read integers of no other form.

use serde_json::{Number, Value};

/// Writes whole numbers of an object without a point or an exponent, and those beyond 64 bits in as many digits as a
/// float tells. Follows the encoder of Go, up to where that writes more digits than 64 bits have.
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
    use super::*;

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
