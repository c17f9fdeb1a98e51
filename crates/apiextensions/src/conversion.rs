//! Versions of a custom resource: objects are stored in one and served in another.
//!
//! ```text
//!   Store, in a served version --> ConvertedStorage --> storage, in the versions in which objects were written
//!                                        |
//!                                     Converter --> the strategy None, or a webhook
//! ```
//!
//! Each object says in which version it was written, and that may be any one that was ever the storage version. So each
//! is looked at, and those that are served as they are stored pass with their bytes. Others are converted: with the
//! strategy None they get the name of the other version, a webhook gives them its content; then what the schema of that
//! version does not know is dropped.
//!
//! Selectors are about objects as they are served. A webhook may change labels and fields, so with it a list or watch
//! with selectors of these converts everything in its scope, and selects after that. Watches share what is converted
//! for their events (`shared_conversions`).

mod converter;
mod list;
mod selection;
mod served_version;
mod shared_conversions;
mod storage;
#[cfg(test)]
mod tests;
mod watch;
mod webhook;

pub use self::converter::Converter;
pub use self::shared_conversions::SharedConversions;
pub use self::storage::ConvertedStorage;
pub use self::webhook::NotConverted;
