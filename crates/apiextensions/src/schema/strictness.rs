//! The rules that the schemas of an older definition followed. No more is asked of those that replace them.

use serde_json::Value;

use super::keyword_checks::{KeywordWalk, Strictness, below, is_known_type, text};
use super::outcome::SchemaErrors;
use super::schema_reader::SCHEMA_LEVELS_MAX;

impl Strictness {
    /// Returns the rules that the schemas of an older definition followed.
    pub fn of<'v>(schemas: impl Iterator<Item = &'v Value>) -> Self {
        let mut followed = Self::ALL;
        for schema in schemas {
            followed.look_at(schema, 0);
        }
        followed
    }

    fn look_at(&mut self, schema: &Value, level: usize) {
        let Some(members) = schema.as_object().filter(|_| level < SCHEMA_LEVELS_MAX) else {
            return;
        };
        self.types &= is_known_type(text(members, "type"));
        let mut found = SchemaErrors::default();
        KeywordWalk::new(&mut found, Self::ALL).set_items(members);
        self.atomic_sets &= found.is_valid();
        let mut found = SchemaErrors::default();
        KeywordWalk::new(&mut found, Self::ALL).keys_are_there(members);
        self.map_keys &= found.is_valid();
        for inner in below(members) {
            self.look_at(inner, level + 1);
        }
    }
}
