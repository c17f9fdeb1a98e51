//! The roots of the API that have v3 documents of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringwatch_registry::Resource;

use super::Root;

/// The roots of discovery that every server has.
const ALWAYS: [&str; 3] = ["api", "apis", "version"];

/// The roots of the documents about the keys of service accounts, which not every server publishes.
const KEYS: [&str; 2] = [".well-known/openid-configuration", "openid/v1/jwks"];

/// Returns the roots of these resources by their paths, without a leading slash. `served` has other paths of the
/// server.
pub(super) fn collect<'a>(
    resources: impl Iterator<Item = &'a Arc<Resource>>,
    served: &[String],
) -> BTreeMap<String, Root> {
    let is_served = |root: &&&str| {
        served
            .iter()
            .any(|path| path.trim_start_matches('/') == **root)
    };
    let keys = KEYS.iter().filter(is_served);
    let always = ALWAYS
        .iter()
        .chain(keys)
        .map(|path| ((*path).to_owned(), Root::Discovery));
    let mut roots: BTreeMap<String, Root> = always.collect();
    for resource in resources {
        let group_version = &resource.group_version;
        let path = if group_version.group.is_empty() {
            format!("api/{group_version}")
        } else {
            // The discovery of groups of custom resources is in no document.
            if !resource.is_custom() {
                roots.insert(format!("apis/{}", group_version.group), Root::Discovery);
            }
            format!("apis/{group_version}")
        };
        let root = roots
            .entry(path)
            .or_insert_with(|| Root::Version(group_version.clone(), Vec::new()));
        if let Root::Version(_, resources) = root {
            resources.push(Arc::clone(resource));
        }
    }
    roots
}
