//! The packages: their lints, the dependency table of ARCHITECTURE.md, and files of one package in another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::{CODE_FOLDERS, package_folders, read, relative, root, sources};

/// The packages that may include sources of others by path: models, which build the engine's over other primitives.
const INCLUDES_OTHERS: [&str; 3] = ["loom-tests", "verification/shuttle", "verification/stress"];

/// The packages that replace functions of the C library and give libFuzzer one, in which nothing else stands.
const UNSAFE: [&str; 2] = [
    "verification/simulation/system",
    "verification/fuzz/libfuzzer",
];

/// All crates of ours that connections are made of: they know no path, verb or encoding of the API.
const BELOW_HTTP: [&str; 3] = ["apimachinery", "ringwatch", "tls"];

/// Crates, each with one on which it does not stand, not even by others.
const WITHOUT: [(&str, &str); 3] = [
    ("endpoints", "filters"),
    ("http", "endpoints"),
    ("openapi", "endpoints"),
];

/// The compiler refuses `unsafe` where the lints say so, so each crate must have them.
#[test]
fn every_crate_forbids_unsafe() {
    for folder in package_folders() {
        if UNSAFE.iter().any(|it| folder == root().join(it)) {
            continue;
        }
        let manifest = folder.join("Cargo.toml");
        let text = read(&manifest);
        let inherits = text.contains("[lints]\nworkspace = true\n");
        let is_workspace = text.contains("[workspace");
        let forbids = text.lines().any(|line| line == "unsafe_code = \"forbid\"");
        assert!(
            forbids || (inherits && !is_workspace),
            "{} may hold unsafe code",
            manifest.display()
        );
    }
}

#[test]
fn every_package_of_the_workspace_has_its_lints() {
    for folder in package_folders() {
        if UNSAFE.iter().any(|it| folder == root().join(it)) {
            continue;
        }
        let text = read(&folder.join("Cargo.toml"));
        let is_apart = folder != root() && text.contains("\n[workspace]");
        assert!(
            is_apart || text.contains("[lints]\nworkspace = true\n"),
            "{} lacks the workspace's lints",
            folder.display()
        );
    }
}

#[test]
fn crates_depend_on_each_other_as_architecture_says() {
    let documented = table();
    let mut are = BTreeMap::new();
    for folder in package_folders() {
        let is_crate = folder == root() || folder.parent() == Some(&root().join("crates"));
        if is_crate {
            let (name, dependencies) = of_manifest(&read(&folder.join("Cargo.toml")));
            are.insert(name, dependencies);
        }
    }
    for name in documented.keys().chain(are.keys()) {
        assert_eq!(
            are.get(name),
            documented.get(name),
            "{name}: its Cargo.toml, and the table of crates in ARCHITECTURE.md"
        );
    }
}

/// Connections stay below the API: what answers their requests is handed to them.
#[test]
fn connections_stand_on_low_crates_alone() {
    assert_eq!(below("http"), BELOW_HTTP.map(str::to_owned).into());
    let manifest = read(&root().join("crates/http/Cargo.toml"));
    let ours = manifest.lines().filter(|it| it.starts_with("ringwatch"));
    assert_eq!(
        ours.count(),
        BELOW_HTTP.len(),
        "not even its tests use others"
    );
}

#[test]
fn crates_stand_on_none_that_belong_above_them() {
    for (name, other) in WITHOUT {
        assert!(!below(name).contains(other), "{name} stands on {other}");
    }
}

#[test]
fn the_dependencies_of_a_manifest_are_found() {
    let manifest = "[package]\nname = \"ringwatch-x\"\n[dependencies]\nringwatch.workspace = true\nserde = \"1\"\n\
         ringwatch-tls = { workspace = true }\n[dev-dependencies]\nringwatch-testing.workspace = true\n";
    let (name, dependencies) = of_manifest(manifest);
    assert_eq!(name, "x");
    assert_eq!(dependencies, ["ringwatch", "tls"].map(str::to_owned).into());
}

#[test]
fn no_package_includes_the_files_of_another() {
    let mut included = Vec::new();
    for package in package_folders() {
        if INCLUDES_OTHERS.iter().any(|it| root().join(it) == package) {
            continue;
        }
        for file in CODE_FOLDERS
            .iter()
            .flat_map(|it| sources(&package.join(it)))
        {
            for path in paths(&read(&file)) {
                let target = resolved(&file.parent().expect("a folder").join(path));
                let is_own = CODE_FOLDERS
                    .iter()
                    .any(|it| target.starts_with(package.join(it)));
                if !is_own {
                    included.push(format!("{} includes {path}", relative(&file)));
                }
            }
        }
    }
    assert!(
        included.is_empty(),
        "a package's files are its own:\n{}",
        included.join("\n")
    );
}

/// Returns the crates that a crate depends on, and those on which these depend.
fn below(name: &str) -> BTreeSet<String> {
    let documented = table();
    let (mut below, mut next) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(name) = next.pop() {
        let dependencies = &documented[&name];
        next.extend(dependencies.difference(&below).cloned());
        below.extend(dependencies.iter().cloned());
    }
    below
}

/// Returns what the `#[path = "…"]` attributes of a file name.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim_start);
    let attributes = lines.filter_map(|line| line.strip_prefix("#[path = \""));
    attributes.filter_map(|rest| rest.split('"').next())
}

/// Returns a path without `..`.
fn resolved(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            resolved.pop();
        } else {
            resolved.push(part);
        }
    }
    resolved
}

/// Returns the rows of ARCHITECTURE.md's table of crates: a crate and those that it depends on.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let section = text.split("\n## ").find(|it| it.starts_with("Crates"));
    let rows = section.expect("a table of crates").lines();
    rows.filter(|row| row.starts_with("| `"))
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            let quoted = |cell: &str| -> Vec<String> {
                let quoted = cell.split('`').skip(1).step_by(2);
                quoted.map(str::to_owned).collect()
            };
            let name = quoted(cells[0]).remove(0);
            let dependencies = quoted(cells.last().expect("cells"));
            (name, dependencies.into_iter().collect())
        })
        .collect()
}

/// Returns the name of a package, and the names of ours among its `[dependencies]`, without their prefix.
fn of_manifest(text: &str) -> (String, BTreeSet<String>) {
    let short = |name: &str| name.strip_prefix("ringwatch-").unwrap_or(name).to_owned();
    let mut section = "";
    let mut name = String::new();
    let mut dependencies = BTreeSet::new();
    for line in text.lines() {
        let key = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if line.starts_with('[') {
            section = line;
        } else if section == "[package]" && key == "name" {
            name = short(line.split('"').nth(1).unwrap_or_default());
        } else if section == "[dependencies]" && key.starts_with("ringwatch") {
            dependencies.insert(short(key));
        }
    }
    (name, dependencies)
}
