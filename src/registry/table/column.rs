//! What the cells of a row mean.

use serde::Serialize;

use super::field_docs;

/// A column of a table, in the words of a TableColumnDefinition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// What is written above it.
    pub name: &'static str,
    /// In OpenAPI's words: `string`, `integer`, `boolean` or `date`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `name` for what names the object; mostly empty.
    pub format: &'static str,
    /// What it tells.
    pub description: &'static str,
    /// 0 for what everybody sees, 1 for what is shown when there is room.
    pub priority: u8,
}

impl Column {
    /// The object's name.
    pub(super) const NAME: Self = Self {
        format: "name",
        ..Self::text("Name", field_docs::NAME)
    };
    /// For how long the object has existed.
    pub(super) const AGE: Self = Self::text("Age", field_docs::CREATION_TIMESTAMP);
    /// The containers of a template.
    pub(super) const CONTAINERS: Self =
        Self::text("Containers", "Names of each container in the template.");
    /// Their images.
    pub(super) const IMAGES: Self = Self::text(
        "Images",
        "Images referenced by each container in the template.",
    );

    pub(super) const fn text(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            kind: "string",
            format: "",
            description,
            priority: 0,
        }
    }

    pub(super) const fn number(name: &'static str, description: &'static str) -> Self {
        Self {
            kind: "integer",
            ..Self::text(name, description)
        }
    }

    pub(super) const fn boolean(name: &'static str, description: &'static str) -> Self {
        Self {
            kind: "boolean",
            ..Self::text(name, description)
        }
    }

    pub(super) const fn date(name: &'static str, description: &'static str) -> Self {
        Self {
            kind: "date",
            ..Self::text(name, description)
        }
    }

    /// Shown when there is room.
    pub(super) const fn wide(self) -> Self {
        Self {
            priority: 1,
            ..self
        }
    }
}
