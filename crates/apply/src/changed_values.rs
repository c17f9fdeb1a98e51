//! Compares two objects that have the same fields, of which some have other values, as most updates leave them: without
//! copies, and with a look at the schema only where they differ.

use serde_json::{Map, Value};

use super::path::PathElement;
use super::schema::Schema;
use super::set::FieldSet;
use super::shape::Shape;
use super::value::equal;
use super::walk::Comparison;

type Members = Map<String, Value>;

/// Returns the differences of two objects without their entries of managers; `None` if they differ in anything but
/// values that are texts, numbers or booleans in both. What their type always has need not be added to such objects.
pub(super) fn changed_values(
    schema: Schema<'_>,
    old: &Members,
    new: &Members,
) -> Option<Comparison> {
    let mut changed = ChangedValues {
        schema,
        path: Vec::new(),
        modified: FieldSet::default(),
    };
    changed.object(old, new)?;
    Some(Comparison {
        modified: changed.modified,
        ..Comparison::default()
    })
}

struct ChangedValues<'a> {
    schema: Schema<'a>,
    /// The path to the object that is compared.
    path: Vec<PathElement>,
    modified: FieldSet,
}

impl ChangedValues<'_> {
    fn object(&mut self, old: &Members, new: &Members) -> Option<()> {
        let is_metadata =
            matches!(self.path.as_slice(), [PathElement::Field(name)] if name == "metadata");
        let own = |members: &(&String, &Value)| !(is_metadata && members.0 == "managedFields");
        let mut news = new.iter().filter(own);
        for (name, old) in old.iter().filter(own) {
            let (other, new) = news.next()?;
            if name != other {
                return None;
            }
            self.member(name, old, new)?;
        }
        news.next().is_none().then_some(())
    }

    fn member(&mut self, name: &str, old: &Value, new: &Value) -> Option<()> {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                self.path.push(PathElement::field(name));
                self.object(old, new)?;
                self.path.pop();
                Some(())
            }
            (old, new) if equal(old, new) => Some(()),
            // The type of an embedded object sets these.
            _ if matches!(name, "kind" | "apiVersion") => None,
            (
                Value::String(_) | Value::Number(_) | Value::Bool(_),
                Value::String(_) | Value::Number(_) | Value::Bool(_),
            ) => {
                self.path.push(PathElement::field(name));
                let whole = self.whole();
                self.modified.insert(&self.path[..whole]);
                self.path.pop();
                Some(())
            }
            _ => None,
        }
    }

    /// Returns how many steps of the path lead to the outermost object on it that is one whole; all of them if there is
    /// none.
    fn whole(&self) -> usize {
        let object = Value::Object(Map::new());
        let is_whole =
            |steps: &usize| self.schema.shape(&self.path[..*steps], &object) == Shape::Leaf;
        (0..self.path.len())
            .find(is_whole)
            .unwrap_or(self.path.len())
    }
}
