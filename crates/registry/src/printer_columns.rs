//! Tables of custom resources, with the `additionalPrinterColumns` of their definition, or the age if there are none.

use std::fmt::Write as _;

use jiff::Timestamp;
use ringwatch_apimachinery::path::{get, list, text};
use serde::Serialize;
use serde_json::Value;

use super::human_duration::since;
use super::json_path::JsonPath;

/// The description of the column `Name`, as kube-apiserver gives it.
pub const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some \
    resources may allow a client to request the generation of an appropriate name \
    automatically. Name is primarily intended for creation idempotence and configuration \
    definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// The description of the column `Age`, as kube-apiserver gives it.
pub const CREATION_TIMESTAMP: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. \
    It is not guaranteed to be set in happens-before order across separate operations. Clients \
    may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by \
    the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// Maximum number of bytes of the texts of a row: more than the largest object has, so that any one column is shown
/// whole.
const ROW_BYTES_MAX: usize = 2 << 20;

/// Maximum number of values that are looked at for a row.
const ROW_VALUES_MAX: usize = 200_000;

/// The columns of one version of a custom resource, with the object's name as the first.
#[derive(Clone, Debug)]
pub struct PrinterColumns(Vec<PrinterColumn>);

/// A column definition as `metav1.TableColumnDefinition`, and the path to its cells.
#[derive(Clone, Debug, Serialize)]
pub struct PrinterColumn {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    format: String,
    description: String,
    priority: i64,
    /// The path of the cells in an object; `None` if it cannot be parsed, so that the cells are null.
    #[serde(skip)]
    path: Option<JsonPath>,
}

impl PrinterColumns {
    /// Reads the columns of one of a definition's versions.
    #[must_use]
    pub fn read(version: &Value) -> Self {
        let column = |name: &str, kind: &str, description: &str, path: &str| PrinterColumn {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: String::new(),
            description: description.to_owned(),
            priority: 0,
            path: JsonPath::parse(path),
        };
        let mut columns = vec![PrinterColumn {
            format: "name".to_owned(),
            ..column("Name", "string", NAME, ".metadata.name")
        }];
        let wanted = list(version, "additionalPrinterColumns");
        if wanted.is_empty() {
            let path = ".metadata.creationTimestamp";
            columns.push(column("Age", "date", CREATION_TIMESTAMP, path));
        }
        columns.extend(wanted.iter().map(|wanted| {
            let path = text(wanted, "jsonPath");
            let mut description = text(wanted, "description").to_owned();
            if description.is_empty() {
                let _ = write!(
                    description,
                    "Custom resource definition column (in JSONPath format): {path}"
                );
            }
            let (name, kind) = (text(wanted, "name"), text(wanted, "type"));
            PrinterColumn {
                format: text(wanted, "format").to_owned(),
                priority: get(wanted, "priority").and_then(Value::as_i64).unwrap_or(0),
                ..column(name, kind, &description, path)
            }
        }));
        Self(columns)
    }

    /// Returns the columns in their order.
    pub fn columns(&self) -> &[PrinterColumn] {
        &self.0
    }

    /// Returns the cells of the row of an object, one for each column. A definition may have any number of columns, so
    /// those that come when the row has its maximum of bytes or values are null.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let mut room = Room {
            bytes: ROW_BYTES_MAX,
            values: ROW_VALUES_MAX,
        };
        let cells = self.0.iter();
        let cells = cells.map(|column| column.cell(object, now, &mut room));
        cells.collect()
    }
}

impl PrinterColumn {
    /// Returns the cell of an object: null if there is no value at the path, or one of another type, or no room for it.
    fn cell(&self, object: &Value, now: Timestamp, room: &mut Room) -> Value {
        let path = self.path.as_ref();
        let found = path.and_then(|path| path.find(object, &mut room.values));
        let Some(found) = found.filter(|it| !it.is_null()) else {
            return Value::Null;
        };
        let cell = match self.kind.as_str() {
            "integer" => whole(found).map(Value::from),
            "number" => found.as_f64().map(Value::from),
            "boolean" => found.as_bool().map(Value::from),
            "date" => found.as_str().map(|it| since(it, now).into()),
            _ => room.shown(found).map(Value::from),
        };
        cell.unwrap_or_default()
    }
}

fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        #[allow(clippy::cast_possible_truncation, reason = "as Go converts")]
        value.as_f64().map(|number| number as i64)
    })
}

/// The room that is left in a row.
#[derive(Debug)]
struct Room {
    /// The bytes that its texts may still have; 0 once one did not fit.
    bytes: usize,
    /// The values that may still be looked at for it.
    values: usize,
}

impl Room {
    /// Formats a value as text, a string without quotes; `None` if it does not fit, and then for all that follow.
    fn shown(&mut self, value: &Value) -> Option<String> {
        let is_full = self.bytes == 0 || value.as_str().is_some_and(|it| it.len() > self.bytes);
        let text = match value {
            _ if is_full => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        let left = text
            .as_ref()
            .and_then(|text| self.bytes.checked_sub(text.len()));
        self.bytes = left.unwrap_or(0);
        left.and(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_what_the_definition_asks_for() {
        let columns = PrinterColumns::read(&json!({"additionalPrinterColumns": [
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "c"},
            {"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1},
            {"name": "On", "type": "boolean", "jsonPath": ".spec.n"},
            {"name": "Since", "type": "date", "jsonPath": ".status.since"},
            {"name": "Wrong", "type": "string", "jsonPath": "wrong"},
            {"name": "All", "type": "string", "jsonPath": ".spec"}]}));
        let object = json!({"metadata": {"name": "a"}, "spec": {"color": "red", "n": 2},
            "status": {"since": "2026-01-01T00:00:00Z"}});
        let now = "2026-01-01T00:00:09Z".parse().expect("a time");
        let spec = r#"{"color":"red","n":2}"#;
        let cells = json!(["a", "red", 2, null, "9s", null, spec]);
        assert_eq!(Value::from(columns.cells(&object, now)), cells);
        let head = serde_json::to_value(columns.columns()).expect("columns");
        assert_eq!(
            head[2],
            json!({"name": "N", "type": "integer", "format": "", "priority": 1,
                "description": "Custom resource definition column (in JSONPath format): .spec.n"})
        );
        let plain = PrinterColumns::read(&json!({}));
        let names: Vec<_> = plain.columns().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["Name", "Age"]);
    }

    /// Columns that all show the same path.
    fn columns(number: usize, path: &str) -> PrinterColumns {
        let column = json!({"name": "A", "type": "string", "jsonPath": path});
        PrinterColumns::read(&json!({"additionalPrinterColumns": vec![column; number]}))
    }

    #[test]
    fn a_row_is_full_at_its_maximum_of_bytes() {
        let now = Timestamp::UNIX_EPOCH;
        let text = "x".repeat(ROW_BYTES_MAX / 4 + 1);
        let object = json!({"metadata": {"name": "a"}, "s": text, "parts": {"s": text}});
        for path in [".s", ".parts"] {
            let columns = columns(20_000, path);
            let cells = columns.cells(&object, now);
            assert_eq!(cells.len(), columns.columns().len());
            let (shown, others) = cells.split_at(1 + 3);
            assert!(shown.iter().all(Value::is_string));
            assert!(others.iter().all(Value::is_null));
        }
        let whole = "x".repeat(ROW_BYTES_MAX - 1);
        let object = json!({"metadata": {"name": "a"}, "s": whole});
        let cells = columns(2, ".s").cells(&object, now);
        assert_eq!(Value::from(cells), json!(["a", whole, null]));
    }

    #[test]
    fn a_row_is_full_at_its_maximum_of_values() {
        let object = json!({"metadata": {"name": "a"}, "s": vec![1; 15_000]});
        let cells = columns(20_000, ".s[*]").cells(&object, Timestamp::UNIX_EPOCH);
        let shown = cells.iter().filter(|cell| cell.is_string()).count();
        assert_eq!(shown, 1 + ROW_VALUES_MAX / (15_000 + 1));
    }
}
