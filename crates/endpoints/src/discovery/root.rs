//! `/`: all paths that are not about resources.

use serde_json::json;

/// Returns the body of `/`: the paths, sorted, with those that every server has.
pub(super) fn root(mut paths: Vec<String>) -> Vec<u8> {
    for always in ["/apis/", "/version"] {
        paths.push(always.to_owned());
    }
    paths.sort_unstable();
    paths.dedup();
    json!({"paths": paths}).to_string().into_bytes()
}
