//! The versions and encodings of documents.

/// The version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenApiVersion {
    /// Swagger 2.0: one document of everything.
    V2,
    /// OpenAPI 3.0: a document for each group version.
    V3,
}

/// The encoding of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON text.
    Json,
    /// The messages of gnostic.
    Protobuf,
}
