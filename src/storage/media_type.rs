//! The form in which objects are written. They are read in either.

/// How objects are encoded in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageMediaType {
    /// `application/json`.
    #[default]
    Json,
    /// `application/vnd.kubernetes.protobuf`. Kinds that have no message are written as JSON.
    Protobuf,
}

impl StorageMediaType {
    /// The media type of this name, if objects can be stored so.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "application/json" => Some(Self::Json),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }
}
