//! All flow schemas in the order in which they are tried, and the levels that they lead to.

use std::sync::Arc;

use ringwatch_authorization::Attributes;

use super::{Level, Schema};

/// All flow schemas in the order in which they are tried, and the levels that they lead to.
#[derive(Debug, Default)]
pub struct FlowTable {
    schemas: Vec<(Schema, Arc<Level>)>,
    levels: Vec<Arc<Level>>,
}

/// The flow schema, priority level and flow of a request.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// The uid of its flow schema.
    pub schema_uid: &'a str,
    /// The priority level that limits the request.
    pub level: &'a Arc<Level>,
    /// The schema's name, and the flow distinguisher: by user, by namespace or empty.
    pub key: (&'a str, &'a str),
}

impl FlowTable {
    /// Builds a table. A schema of a level that does not exist selects no request.
    #[must_use]
    pub fn new(schemas: impl IntoIterator<Item = Schema>, levels: Vec<Level>) -> Self {
        let levels: Vec<_> = levels.into_iter().map(Arc::new).collect();
        let level = |name: &str| levels.iter().find(|level| &*level.name == name).cloned();
        let mut schemas: Vec<_> = schemas
            .into_iter()
            .filter_map(|schema| {
                let level = level(&schema.spec.priority_level_configuration.name)?;
                Some((schema, level))
            })
            .collect();
        schemas.sort_by(|(one, _), (other, _)| {
            let order = |it: &Schema| (it.spec.matching_precedence, it.metadata.name.clone());
            order(one).cmp(&order(other))
        });
        Self { schemas, levels }
    }

    /// Finds the flow of a request; `None` if no schema selects it.
    #[must_use]
    pub fn find<'a>(&'a self, attributes: &Attributes<'a>) -> Option<Flow<'a>> {
        let mut schemas = self.schemas.iter();
        let (schema, level) = schemas.find(|(schema, _)| schema.has(attributes))?;
        Some(Flow {
            schema_uid: &schema.metadata.uid,
            level,
            key: (&schema.metadata.name, schema.distinguisher(attributes)),
        })
    }

    /// Returns the names of all schemas, and the levels that they lead to.
    pub fn schemas(&self) -> impl Iterator<Item = (&str, &Arc<Level>)> {
        let schemas = self.schemas.iter();
        schemas.map(|(schema, level)| (&*schema.metadata.name, level))
    }

    /// Returns all priority levels.
    #[must_use]
    pub fn levels(&self) -> &[Arc<Level>] {
        &self.levels
    }
}
