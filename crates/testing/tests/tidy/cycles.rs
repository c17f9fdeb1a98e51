//! The modules of a folder import each other in one direction.
//!
//! A graph is drawn for each folder of each crate, out of the `crate::` and `super::` paths of its files. In a folder
//! of rooms it is that of the rooms. Names that `lib.rs` or the file beside a folder re-exports count as their
//! module's. Modules that reach each other form a knot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{
    SYSTEM_TESTS, imports, module_of, package_folders, read, relative, root, sources, without_tests,
};

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let mut circles = Vec::new();
    let crates = package_folders().into_iter().map(|it| it.join("src"));
    let crates = crates.chain([root().join(SYSTEM_TESTS)]);
    for folder in crates.flat_map(|it| folders(&it)) {
        let graph = Graph::read(&folder);
        for knot in graph.knots() {
            circles.push(format!("{}:\n{}", relative(&folder), graph.circle(&knot)));
        }
    }
    assert!(
        circles.is_empty(),
        "modules that import each other in a circle:\n{}",
        circles.join("\n")
    );
}

#[test]
fn a_circle_is_found_and_shown() {
    let edges = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")];
    let graph = Graph(
        edges
            .iter()
            .map(|(from, to)| {
                (
                    ((*from).to_owned(), (*to).to_owned()),
                    PathBuf::from("x.rs"),
                )
            })
            .collect(),
    );
    let knots = graph.knots();
    assert_eq!(knots, [["b", "c"].map(str::to_owned).into()]);
    let circle = graph.circle(&knots[0]);
    assert_eq!(circle, "  b imports c (x.rs)\n  c imports b (x.rs)");
}

/// Imports between the modules of a folder, each with a file that has it.
struct Graph(BTreeMap<(String, String), PathBuf>);

impl Graph {
    fn read(folder: &Path) -> Self {
        let files = sources(folder);
        let tests = test_modules(&files);
        let base = module_of(&folder.join("lib.rs"));
        let exports = exports(folder);
        let mut edges = BTreeMap::new();
        for file in &files {
            let module = module_of(file);
            let is_test = tests.iter().any(|test| module.starts_with(test));
            let Some(from) = module.get(base.len()).filter(|_| !is_test) else {
                continue;
            };
            for path in imports(&without_tests(&read(file)), &module) {
                let Some(name) = path.get(base.len()).filter(|_| path.starts_with(&base)) else {
                    continue;
                };
                // A name with more behind it is a module, even if a function of that name is exported.
                let is_whole = path.len() == base.len() + 1;
                let to = exports.get(name).filter(|_| is_whole).unwrap_or(name);
                let is_module = files
                    .iter()
                    .any(|it| module_of(it).get(base.len()) == Some(to));
                if to != from && is_module {
                    edges.insert((from.clone(), to.clone()), file.clone());
                }
            }
        }
        Self(edges)
    }

    /// Returns the shortest way of imports from one module to another, both included.
    fn way(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut ways = vec![vec![from.to_owned()]];
        let mut seen = BTreeSet::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                let last = way.last().expect("a module");
                for (_, next) in self.0.keys().filter(|(it, _)| it == last) {
                    let mut way = way.clone();
                    way.push(next.clone());
                    if next == to {
                        return Some(way);
                    }
                    if seen.insert(next.clone()) {
                        longer.push(way);
                    }
                }
            }
            ways = longer;
        }
        None
    }

    /// Returns the sets of modules that all reach each other.
    fn knots(&self) -> Vec<BTreeSet<String>> {
        let modules: BTreeSet<&String> = self.0.keys().map(|(from, _)| from).collect();
        let mut knots: Vec<BTreeSet<String>> = Vec::new();
        for module in &modules {
            if knots.iter().any(|knot| knot.contains(*module)) {
                continue;
            }
            let mutual = modules.iter().filter(|other| {
                self.way(module, other).is_some() && self.way(other, module).is_some()
            });
            let knot: BTreeSet<String> = mutual.map(|it| (*it).clone()).collect();
            if knot.len() > 1 {
                knots.push(knot);
            }
        }
        knots
    }

    /// Returns the shortest circle within a knot, an import a line.
    fn circle(&self, knot: &BTreeSet<String>) -> String {
        let circles = knot.iter().filter_map(|module| self.way(module, module));
        let shortest = circles.min_by_key(Vec::len).expect("a circle");
        let steps = shortest.windows(2).map(|step| {
            let file = &self.0[&(step[0].clone(), step[1].clone())];
            let file = file.strip_prefix(root()).unwrap_or(file);
            format!("  {} imports {} ({})", step[0], step[1], file.display())
        });
        steps.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the folder of a crate's sources, and those within it.
fn folders(crate_folder: &Path) -> BTreeSet<PathBuf> {
    let files = sources(crate_folder).into_iter();
    files
        .flat_map(|file| {
            file.ancestors()
                .skip(1)
                .map(Path::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|folder| folder.starts_with(crate_folder))
        .collect()
}

/// Returns the modules that are compiled for tests alone.
fn test_modules(files: &[PathBuf]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for file in files {
        let text = read(file);
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let is_test = pair[0].starts_with("#[cfg(") && pair[0].contains("test");
            let name = pair[1].trim_start_matches("pub ").strip_prefix("mod ");
            let name = name.and_then(|name| name.strip_suffix(';'));
            if let Some(name) = name.filter(|_| is_test) {
                let mut path = module_of(file);
                path.push(name.to_owned());
                found.push(path);
            }
        }
    }
    found
}

/// Returns the names that the head of a folder re-exports, with the module of each.
fn exports(folder: &Path) -> BTreeMap<String, String> {
    let heads = [folder.join("lib.rs"), folder.with_extension("rs")];
    let head = heads.into_iter().find(|it| it.exists());
    let text = head.map(|head| without_tests(&read(&head)));
    let text = text.unwrap_or_default().replace('\n', " ");
    let mut found = BTreeMap::new();
    for statement in text.split(';') {
        let Some((_, tree)) = statement.rsplit_once("use ") else {
            continue;
        };
        let tree = tree
            .trim_start_matches("self::")
            .trim_start_matches("crate::");
        let Some((module, names)) = tree.split_once("::") else {
            continue;
        };
        for name in names.split([',', '{', '}']).map(str::trim) {
            let name = name.rsplit("::").next().unwrap_or_default();
            let name = name.rsplit(" as ").next().unwrap_or_default();
            found.insert(name.to_owned(), module.to_owned());
        }
    }
    found
}
