//! Kubernetes' own pods that pass and fail each level in each version. Without them the test is reported as skipped.

use std::fs;
use std::path::{Path, PathBuf};

use ringwatch_testing::recorded;
use serde_json::{Value, json};

use super::details;

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|it| it.expect("an entry").path()).collect()
}

fn file_name(path: &Path) -> &str {
    let name = path.file_name().and_then(|it| it.to_str());
    name.expect("a name")
}

/// Completes volumes as the API does before anything is checked: one without a source is an empty directory.
fn give_volumes_a_source(pod: &mut Value) {
    let volumes = pod["spec"]["volumes"].as_array_mut();
    for volume in volumes.into_iter().flatten() {
        if volume.as_object().is_some_and(|it| it.len() == 1) {
            volume["emptyDir"] = json!({});
        }
    }
}

#[test]
fn kubernetes_pods_pass_and_fail_as_they_should() {
    let case = "pod_security::kubernetes_pods_pass_and_fail_as_they_should";
    let Some(root) = recorded::pod_security(case) else {
        return;
    };
    let mut wrong = Vec::new();
    let mut seen = [0, 0];
    for level in ["baseline", "restricted"] {
        for version in entries(&root.join(level)) {
            let at = format!("{level}:{}", file_name(&version));
            for (index, outcome) in ["pass", "fail"].into_iter().enumerate() {
                for file in entries(&version.join(outcome)) {
                    seen[index] += 1;
                    let text = fs::read_to_string(&file).expect("a file");
                    let mut pod: Value = serde_saphyr::from_str(&text).expect("YAML");
                    give_volumes_a_source(&mut pod);
                    let found = details(&at, &pod);
                    if found.is_empty() != (outcome == "pass") {
                        wrong.push(format!("{at} {outcome}/{}: {found:?}", file_name(&file)));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.iter().all(|count| *count > 500), "{seen:?}");
}
