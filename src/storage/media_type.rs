//! The encoding in which objects are written. Both encodings are read.

/// The encoding of objects in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageMediaType {
    /// `application/json`.
    #[default]
    Json,
    /// `application/vnd.kubernetes.protobuf`. Kinds without a protobuf message, such as custom resources, are written
    /// as JSON.
    Protobuf,
}

impl StorageMediaType {
    /// Returns the media type of this name; `None` if objects cannot be stored in it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "application/json" => Some(Self::Json),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }
}
