//! The warnings about files of a volume that are in each other's way: the same path, or one below another.
//!
//! Follows `warningsForOverlappingVirtualPaths` in pkg/api/pod/warnings.go of Kubernetes 1.36.

use std::collections::BTreeMap;
use std::fmt;

use ringwatch_apimachinery::go_text::quoted;
use ringwatch_registry::context::WARNINGS_MAX;

use crate::validation::field::Field;

/// Maximum length of a path that is looked at; no node makes a file with a longer one.
const PATH_BYTES_MAX: usize = 4096;
/// Maximum number of bytes of the warnings about the files of a pod, each of which has names that clients chose.
const WARNING_BYTES_MAX: usize = 256 << 10;

/// A file of a volume, and what it is made of, where a volume has several sources.
#[derive(Debug)]
struct VolumeFile<'v> {
    path: &'v str,
    source: String,
}

impl fmt::Display for VolumeFile<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&quoted(self.path))?;
        if !self.source.is_empty() {
            write!(formatter, " ({})", self.source)?;
        }
        Ok(())
    }
}

/// The files of a volume met so far, filed by their paths with a slash behind, so that those in the way of another one
/// are found without a look at the rest.
#[derive(Debug, Default)]
struct EarlierFiles<'v> {
    all: Vec<VolumeFile<'v>>,
    filed: BTreeMap<String, Vec<usize>>,
}

impl<'v> EarlierFiles<'v> {
    /// Adds a file, and a warning for each of those before that it overlaps with, while there is room for them.
    fn add(
        &mut self,
        path: &'v str,
        source: &str,
        volume: &str,
        warnings: &mut RoomForWarnings<'_>,
    ) {
        let path = path.trim_end_matches('/');
        if path.is_empty() || path.len() > PATH_BYTES_MAX || warnings.bytes == 0 {
            return;
        }
        let source = source.to_owned();
        let file = VolumeFile { path, source };
        let key = format!("{path}/");
        let below = self.filed.range(key.clone()..);
        let below = below.take_while(|(other, _)| other.starts_with(&key));
        let above = key.match_indices('/').map(|(at, _)| &key[..=at]);
        let above = above.filter(|it| *it != key);
        let above = above.filter_map(|it| self.filed.get(it));
        let mut found: Vec<usize> = below
            .map(|(_, files)| files)
            .chain(above)
            .flatten()
            .take(WARNINGS_MAX)
            .copied()
            .collect();
        found.sort_unstable();
        for other in found.into_iter().map(|at| &self.all[at]) {
            warnings.push(volume, &file, other);
        }
        self.filed.entry(key).or_default().push(self.all.len());
        self.all.push(file);
    }
}

/// The warnings about a pod, and the bytes that those about its files may have yet.
struct RoomForWarnings<'w> {
    all: &'w mut Vec<String>,
    bytes: usize,
}

impl RoomForWarnings<'_> {
    fn push(&mut self, volume: &str, file: &VolumeFile<'_>, other: &VolumeFile<'_>) {
        let files = [file, other].map(|it| it.path.len() + it.source.len());
        let length = volume.len() + files.iter().sum::<usize>();
        self.bytes = self.bytes.saturating_sub(length + 1);
        if self.bytes > 0 {
            let warning = format!("{volume}: overlapping paths: {file} with {other}");
            self.all.push(warning);
        }
    }
}

/// Adds the warnings about the volumes of a pod.
pub(super) fn of_volumes(spec: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let mut warnings = RoomForWarnings {
        all: warnings,
        bytes: WARNING_BYTES_MAX,
    };
    for volume in spec.items("volumes") {
        let name = quoted(volume.at("name").text());
        for (member, kind, of) in [
            ("configMap", "ConfigMap ", "name"),
            ("secret", "Secret ", "secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ] {
            let source = volume.at(member);
            let of = if of.is_empty() {
                String::new()
            } else {
                quoted(source.at(of).text())
            };
            let title = format!("volume {name} ({kind}{of})");
            let mut files = EarlierFiles::default();
            for item in source.items("items") {
                files.add(item.at("path").text(), "", &title, &mut warnings);
            }
        }
        projected(&volume.at("projected"), &name, &mut warnings);
    }
}

fn projected(volume: &Field<'_, '_>, name: &str, warnings: &mut RoomForWarnings<'_>) {
    let title = format!("volume {name} (Projected)");
    let mut files = EarlierFiles::default();
    for source in volume.items("sources") {
        if source.is_empty() {
            warnings
                .all
                .push(format!("{title} has no sources provided"));
            continue;
        }
        // The first that has files counts.
        let kinds = [
            ("configMap", "ConfigMap "),
            ("secret", "Secret "),
            ("downwardAPI", "DownwardAPI"),
        ];
        let found = kinds
            .iter()
            .find(|(member, _)| source.at(member).at("items").is_set());
        let token = source.at("serviceAccountToken");
        if let Some((member, kind)) = found {
            let from = source.at(member);
            let of = from.at("name");
            let of = if of.is_set() {
                quoted(of.text())
            } else {
                String::new()
            };
            for item in from.items("items") {
                files.add(
                    item.at("path").text(),
                    &format!("{kind}{of}"),
                    &title,
                    warnings,
                );
            }
        } else if token.is_set() {
            files.add(
                token.at("path").text(),
                "ServiceAccountToken",
                &title,
                warnings,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_in_each_others_way_are_told() {
        let token = json!({"serviceAccountToken": {"path": "b"}});
        let spec = json!({"volumes": [
            {"name": "m", "configMap": {"name": "c", "items": [
                {"path": "a/"}, {"path": "a/b/c"}, {"path": "ab"}, {"path": "a/b"}, {"path": ""}]}},
            {"name": "s", "secret": {"secretName": "x", "items": [{"path": "a"}, {"path": "a"}]}},
            {"name": "d", "downwardAPI": {"items": [{"path": "a"}]}},
            {"name": "p", "projected": {"sources": [
                {}, {"secret": {"name": "x", "items": [{"path": "b/c"}]}}, token]}}]});
        let mut warnings = Vec::new();
        of_volumes(&Field::root(&spec), &mut warnings);
        let overlap =
            |volume: &str, which: &str| format!("volume {volume}: overlapping paths: {which}");
        assert_eq!(
            warnings,
            [
                overlap("\"m\" (ConfigMap \"c\")", "\"a/b/c\" with \"a\""),
                overlap("\"m\" (ConfigMap \"c\")", "\"a/b\" with \"a\""),
                overlap("\"m\" (ConfigMap \"c\")", "\"a/b\" with \"a/b/c\""),
                overlap("\"s\" (Secret \"x\")", "\"a\" with \"a\""),
                "volume \"p\" (Projected) has no sources provided".to_owned(),
                overlap(
                    "\"p\" (Projected)",
                    "\"b\" (ServiceAccountToken) with \"b/c\" (Secret \"x\")"
                ),
            ]
        );
    }
    #[test]
    fn warnings_have_a_bound_however_long_the_names_are() {
        let items = vec![json!({"path": "a"}); 100];
        let name = "x".repeat(WARNING_BYTES_MAX / 10);
        let spec =
            json!({"volumes": [{"name": "s", "secret": {"secretName": name, "items": items}}]});
        let mut warnings = Vec::new();
        of_volumes(&Field::root(&spec), &mut warnings);
        assert_eq!(warnings.len(), 9);
    }
}
