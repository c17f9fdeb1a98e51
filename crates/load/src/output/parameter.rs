//! Parameters as people write them: as flags and their values.

use serde_json::Value;

use super::number::short;

/// The parameters that are times, of which an outcome has the seconds.
const SECONDS: [&str; 4] = ["duration", "warm_up", "time_limit", "every"];

/// Returns the name of a parameter, as its flag has it.
pub(crate) fn name(name: &str) -> String {
    name.replace('_', "-")
}

/// Returns the value of the parameter of this name.
pub(crate) fn value(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "not given".to_owned(),
        Value::Array(none) if none.is_empty() => "none".to_owned(),
        Value::Number(number) => {
            let unit = if SECONDS.contains(&name) { "s" } else { "" };
            match number.as_f64().filter(|_| number.is_f64()) {
                Some(real) => short(real) + unit,
                None => format!("{number}{unit}"),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_flags_take_them() {
        for (parameter, json, text) in [
            ("warm_up", 2.5.into(), "2.5s"),
            ("rate", 20.0.into(), "20"),
            ("watchers", 1_000.into(), "1000"),
            ("encoding", "json".into(), "json"),
            ("way", Value::Null, "not given"),
            ("faults", Value::Array(Vec::new()), "none"),
        ] {
            assert_eq!(value(parameter, &json), text);
        }
        assert_eq!(name("warm_up"), "warm-up");
    }
}
