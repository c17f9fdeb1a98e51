//! Names that are kept for webhooks and policies out of files.

use serde_json::Value;

use crate::validation::field::Field;

/// The end of the names of what files of the server configure. Such a name of an object is none of them.
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// Returns the warning about a name that looks as if a file of the server had the object. Follows
/// `WarningsForStaticSuffix`.
pub(super) fn warnings_about_name(object: &Value) -> Vec<String> {
    let root = Field::root(object);
    let is_static = root.at("metadata.name").text().ends_with(STATIC_SUFFIX);
    let warning = || {
        format!(
            "metadata.name: names ending with {STATIC_SUFFIX:?} are reserved for static manifest-based configurations and cannot be managed via the API"
        )
    };
    is_static.then(warning).into_iter().collect()
}
