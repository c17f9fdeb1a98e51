//! Definitions of the columns of tables, as clients get them.

use serde::Serialize;

use super::field_docs;

/// A column of a table: `metav1.TableColumnDefinition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// The heading of the column.
    pub name: &'static str,
    /// The OpenAPI type of the cells: `string`, `integer`, `boolean` or `date`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The OpenAPI format of the cells: `name` for the column with the object's name, mostly empty otherwise.
    pub format: &'static str,
    /// The description of the column for people.
    pub description: &'static str,
    /// The priority: clients show columns of 0 always, and those of 1 when there is room, as with
    /// `kubectl get -o wide`.
    pub priority: u8,
}

impl Column {
    /// Column with the object's name.
    pub(crate) const NAME: Self = Self {
        format: "name",
        ..Self::text("Name", field_docs::NAME)
    };
    /// Column with the time since the object was created.
    pub(crate) const AGE: Self = Self::text("Age", field_docs::CREATION_TIMESTAMP);
    /// Column with the names of the containers in a pod template.
    pub(crate) const CONTAINERS: Self =
        Self::text("Containers", "Names of each container in the template.");
    /// Column with the images of the containers in a pod template.
    pub(crate) const IMAGES: Self = Self::text(
        "Images",
        "Images referenced by each container in the template.",
    );

    pub(crate) const fn text(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            kind: "string",
            format: "",
            description,
            priority: 0,
        }
    }

    pub(crate) const fn number(name: &'static str, description: &'static str) -> Self {
        Self {
            kind: "integer",
            ..Self::text(name, description)
        }
    }

    pub(crate) const fn boolean(name: &'static str, description: &'static str) -> Self {
        Self {
            kind: "boolean",
            ..Self::text(name, description)
        }
    }

    pub(crate) const fn date(name: &'static str, description: &'static str) -> Self {
        Self {
            kind: "date",
            ..Self::text(name, description)
        }
    }

    /// Returns the column with priority 1: clients show it when there is room.
    pub(crate) const fn wide(self) -> Self {
        Self {
            priority: 1,
            ..self
        }
    }
}
