//! The server side of `kubectl get`: conversion of objects to rows of a `meta.k8s.io/v1` Table, as Kubernetes' printers
//! do it.
//!
//! A [`TableConvertor`] has the columns of a kind and a function from an object and the time to its cells. The object
//! is the tree that is stored, so that all versions of a kind are shown alike. The cells are for people to read:
//! a missing value is `<none>`, `<unset>` or `<unknown>`, as kube-apiserver puts it for each kind.
//!
//! Rows are not cached, since the ages in them change with time.

mod column;
pub(crate) mod field_docs;
pub(crate) mod subject;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

pub use self::column::Column;

use self::subject::RowSubject;

/// The conversion of the objects of one built-in kind to rows.
#[derive(Clone, Copy, Debug)]
pub struct TableConvertor {
    /// The definitions of the columns, in the order of the cells.
    pub(crate) columns: &'static [Column],
    /// The function that makes the cells of an object, one for each column.
    pub(crate) cells: fn(&RowSubject<'_>) -> Vec<Value>,
    /// The function that makes the condition of an object's row, if it has any.
    pub(crate) condition: fn(&RowSubject<'_>) -> Option<RowCondition>,
}

/// A row of a Table: `metav1.TableRow` without its object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The cells, one for each column: strings, numbers, booleans and null.
    pub cells: Vec<Value>,
    /// Conditions of the row; only pods that have ended have one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<RowCondition>,
}

/// A condition of a row, which a client understands without knowing the columns: `metav1.TableRowCondition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RowCondition {
    /// The type of the condition, such as `Completed`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The status of the condition: `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// The reason as one word in camel case.
    pub reason: &'static str,
    /// The explanation for users.
    pub message: &'static str,
}

/// Makes the cells of a row from values of any types that convert to JSON.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(serde_json::Value::from($cell)),*] };
}
pub(crate) use cells;

impl TableConvertor {
    pub(crate) const fn new(
        columns: &'static [Column],
        cells: fn(&RowSubject<'_>) -> Vec<Value>,
    ) -> Self {
        Self {
            columns,
            cells,
            condition: |_| None,
        }
    }

    /// Returns the definitions of the kind's columns.
    #[must_use]
    pub fn columns(&self) -> &'static [Column] {
        self.columns
    }

    /// Converts an object of the kind, in its storage version, to a row as of `now`.
    #[must_use]
    pub fn row(&self, object: &Value, now: Timestamp) -> Row {
        let subject = RowSubject::new(object, now);
        Row {
            cells: (self.cells)(&subject),
            conditions: (self.condition)(&subject).into_iter().collect(),
        }
    }
}
