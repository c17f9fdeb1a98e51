//! The rules of the house that a machine can check.
//!
//! It reads the sources and manifests of every package and builds none of them, so it runs alone in seconds. The
//! engine's layer table and the crates' dependency table stand in ARCHITECTURE.md and nowhere else; these tests read
//! them from there.

mod bounds;
mod composition;
mod cycles;
mod layout;
mod lints;
mod packages;
mod passed_on;
mod places;
mod public_api;
mod readers;
mod type_names;
mod validation;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Code lines (neither blank nor comment, tests at the end of the file left out) a file may have.
const FILE_CODE_LINES_MAX: usize = 400;

/// Files that may be longer, by how much at most, and why. A ratchet: numbers only go down.
const LONGER_FILES: &[(&str, usize, &str)] = &[(
    "crates/endpoints/src/errors.rs",
    420,
    "it is the one place where statuses of errors are chosen",
)];

/// The folders of a package that hold code.
const CODE_FOLDERS: [&str; 4] = ["src", "tests", "benches", "examples"];

/// Names that say nothing about what is inside.
const BANNED_NAMES: &[&str] = &[
    "utils", "util", "common", "helpers", "helper", "manager", "misc",
];

/// Words with which no doc comment begins: it names the thing or says what it does, such as "The time for which"
/// instead of "How long".
const NAMELESS: [&str; 8] = ["How", "Where", "When", "So", "Those", "Of", "Why", "Which"];

/// Words that no line of a doc comment begins with: it says what a thing is or does, not "what changes".
const RIDDLES: [&str; 5] = ["What", "Who", "Whose", "Whom", "Whether"];

#[test]
fn imports_go_down_the_layer_table() {
    let layers = Layers::from_architecture();
    let mut broken = Vec::new();
    for file in sources(&root().join("src")) {
        if is_for_tests(&file) {
            continue;
        }
        let module = module_of(&file);
        let text = without_tests(&read(&file));
        for path in imports(&text, &module) {
            if !layers.allows(&module, &path) {
                broken.push(format!("{} imports {}", file.display(), path.join("::")));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "not in the layer table:\n{}",
        broken.join("\n")
    );
}

#[test]
fn the_layer_table_catches_an_upward_import() {
    let layers = Layers::from_architecture();
    let module = ["storage".to_owned(), "etcd3".to_owned(), "store".to_owned()];
    let text = "use super::super::{backend::Backend, cacher};\nuse crate::ring::Log;\n";
    let paths = imports(text, &module);
    let allowed: Vec<bool> = paths
        .iter()
        .map(|path| layers.allows(&module, path))
        .collect();
    assert_eq!(allowed, [false, true, false], "{paths:?}");
}

#[test]
fn every_source_file_says_what_it_is() {
    let mut silent = Vec::new();
    for file in code() {
        if !read(&file).starts_with("//!") {
            silent.push(relative(&file));
        }
    }
    assert!(
        silent.is_empty(),
        "no //! at the top of:\n{}",
        silent.join("\n")
    );
}

#[test]
fn files_stay_small() {
    let mut long = Vec::new();
    let programs = package_folders()
        .into_iter()
        .flat_map(|it| sources(&it.join("src")));
    for file in programs.filter(|file| !is_for_tests(file)) {
        let lines = code_lines(&without_tests(&read(&file)));
        let name = relative(&file);
        let ratchet = LONGER_FILES.iter().find(|(longer, ..)| *longer == name);
        let allowed = ratchet.map_or(FILE_CODE_LINES_MAX, |(_, lines, _)| *lines);
        if lines > allowed {
            long.push(format!("{name}: {lines} lines of code, {allowed} allowed"));
        }
    }
    assert!(
        long.is_empty(),
        "does each still hold one idea?\n{}",
        long.join("\n")
    );
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    for file in code() {
        for part in relative(&file).trim_end_matches(".rs").split('/') {
            assert!(
                !BANNED_NAMES.contains(&part),
                "{}: name what it holds",
                file.display()
            );
        }
    }
}

#[test]
fn no_work_is_left_marked() {
    let marks = [
        ["TO", "DO"],
        ["FIX", "ME"],
        ["XX", "X"],
        ["todo", "!("],
        ["unimplemented", "!("],
    ];
    for file in code() {
        let text = read(&file);
        for mark in marks.map(|halves| halves.concat()) {
            assert!(!text.contains(&mark), "{} holds {mark}", file.display());
        }
    }
}

#[test]
fn doc_comments_begin_with_what_they_describe() {
    let text = |line: &str| {
        let line = line.trim_start();
        let text = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        text.map(|text| text.trim_start().to_owned())
    };
    let nameless = |lines: &[&str]| {
        let begins = lines.iter().enumerate().filter(|(at, line)| {
            let is_first = *at == 0 || text(lines[at - 1]).is_none();
            let first = text(line).filter(|_| is_first).unwrap_or_default();
            let first = first.split(|letter: char| !letter.is_alphabetic()).next();
            NAMELESS.contains(&first.unwrap_or_default())
        });
        begins.map(|(at, _)| at + 1).collect::<Vec<_>>()
    };
    assert_eq!(
        nameless(&[
            "/// How long.",
            "//! When it is so.",
            "",
            "/// The time.",
            "/// So it is."
        ]),
        [1]
    );
    let mut found = Vec::new();
    for file in code() {
        let text = read(&file);
        let lines: Vec<&str> = text.lines().collect();
        for line in nameless(&lines) {
            found.push(format!("{}:{line}", relative(&file)));
        }
    }
    assert!(
        found.is_empty(),
        "begin with what it is or does:\n{}",
        found.join("\n")
    );
}

#[test]
fn no_doc_comment_is_a_riddle() {
    let riddle = |line: &str| {
        let line = line.trim_start();
        let text = line
            .strip_prefix("/// ")
            .or_else(|| line.strip_prefix("//! "));
        text.is_some_and(|text| {
            let first = text.split(|letter: char| !letter.is_alphabetic()).next();
            RIDDLES.contains(&first.unwrap_or_default())
        })
    };
    assert!(riddle("    /// Whether it is so.") && !riddle("/// Whatever it is."));
    let mut found = Vec::new();
    for file in code() {
        for (number, line) in read(&file).lines().enumerate() {
            if riddle(line) {
                found.push(format!("{}:{}", relative(&file), number + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "say what it is or does:\n{}",
        found.join("\n")
    );
}

/// The rows of ARCHITECTURE.md's layer table: a module and what it may import.
struct Layers(Vec<(Vec<String>, Vec<Vec<String>>)>);

impl Layers {
    fn from_architecture() -> Self {
        let text = read(&root().join("ARCHITECTURE.md"));
        let rows: Vec<_> = text.lines().filter_map(Self::row).collect();
        assert!(rows.len() >= 10, "ARCHITECTURE.md has no layer table");
        Self(rows)
    }

    /// `| 3 | `storage::etcd3` | what | `storage`, `meta` |`
    fn row(line: &str) -> Option<(Vec<String>, Vec<Vec<String>>)> {
        let cells: Vec<&str> = line
            .trim()
            .trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        let [layer, module, _, imports] = cells.as_slice() else {
            return None;
        };
        layer.parse::<u8>().ok()?;
        Some((names(module).pop()?, names(imports)))
    }

    /// Returns the row of a path: the one with the longest module that is a prefix of it.
    fn row_of(&self, path: &[String]) -> Option<&(Vec<String>, Vec<Vec<String>>)> {
        let rows = self.0.iter().filter(|(module, _)| path.starts_with(module));
        rows.max_by_key(|(module, _)| module.len())
    }

    fn allows(&self, from: &[String], to: &[String]) -> bool {
        let Some((module, imports)) = self.row_of(from) else {
            return from.is_empty(); // lib.rs declares all modules
        };
        let Some((target, _)) = self.row_of(to) else {
            return true; // not a module of ours: an item of the crate root
        };
        target == module || imports.contains(target)
    }
}

/// Returns the backquoted names of a table cell, as paths.
fn names(cell: &str) -> Vec<Vec<String>> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted
        .map(|name| name.split("::").map(str::to_owned).collect())
        .collect()
}

/// Returns all paths into this crate that a file of `module` names.
fn imports(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = BTreeSet::new();
    for start in ["crate::", "super::", "ringwatch::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            expand(&text[at..], &[], module, &mut found);
        }
    }
    found.into_iter().collect()
}

/// Expands a use tree such as `super::{a::b, c}` at the start of `text` into absolute paths.
fn expand<'a>(
    text: &'a str,
    base: &[String],
    module: &[String],
    found: &mut BTreeSet<Vec<String>>,
) -> &'a str {
    let mut path = base.to_vec();
    let mut rest = text.trim_start();
    loop {
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            loop {
                rest = expand(rest, &path, module, found).trim_start();
                match rest.strip_prefix(',') {
                    Some(next) => rest = next,
                    None => return rest.strip_prefix('}').unwrap_or(rest),
                }
            }
        }
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if !name.is_empty() {
            step(&mut path, name, module);
        }
        match after.strip_prefix("::") {
            Some(next) => rest = next,
            None => {
                found.insert(path);
                return after;
            }
        }
    }
}

/// Follows one name of a path from inside `module`.
fn step(path: &mut Vec<String>, name: &str, module: &[String]) {
    match name {
        "crate" | "ringwatch" | "self" => {}
        "super" if path.is_empty() => {
            path.extend_from_slice(&module[..module.len().saturating_sub(1)]);
        }
        "super" => {
            path.pop();
        }
        name => path.push(name.to_owned()),
    }
}

/// The folder of the tests of the whole server, which are one crate.
const SYSTEM_TESTS: &str = "verification/system/it";

/// Returns the module that a file below `src/` or of the system tests holds: `src/storage/etcd3/store.rs` is
/// `["storage", "etcd3", "store"]`.
fn module_of(file: &Path) -> Vec<String> {
    let name = relative(file);
    let below = name.rsplit_once("src/").map(|(_, name)| name);
    let below = below.or_else(|| name.strip_prefix(SYSTEM_TESTS)?.strip_prefix('/'));
    let name = below.expect("a file of a crate").trim_end_matches(".rs");
    let mut path: Vec<String> = name.split('/').map(str::to_owned).collect();
    if matches!(path.last().map(String::as_str), Some("lib" | "main")) {
        path.pop();
    }
    path
}

/// Returns the code of a file, without the tests at its end and without comments.
fn without_tests(text: &str) -> String {
    let code = text.split_once("\nmod tests {").map(|(code, _)| code);
    let code = code.and_then(|code| code.rsplit_once("#[cfg(test)]"));
    let lines = code.map_or(text, |(code, _)| code).lines();
    let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn code_lines(text: &str) -> usize {
    text.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Unit tests and what they share stand in files and folders of these names, compiled for tests
/// alone.
fn is_for_tests(file: &Path) -> bool {
    let name = relative(file);
    let (_, name) = name.split_once("src/").unwrap_or(("", &name));
    let mut parts = name.trim_end_matches(".rs").split('/');
    parts.any(|part| matches!(part, "testing" | "tests") || part.ends_with("_tests"))
}

/// Returns the folders of all packages: the root, those beside it, and those of `crates/`, `tools/` and
/// `verification/`.
fn package_folders() -> Vec<PathBuf> {
    let parents = [
        root().to_owned(),
        root().join("crates"),
        root().join("tools"),
        root().join("verification"),
        root().join("verification/mutation"),
    ];
    let mut folders = vec![root().to_owned()];
    for parent in parents {
        let entries = fs::read_dir(&parent).expect("a readable folder");
        let entries = entries.map(|entry| entry.expect("an entry").path());
        folders.extend(entries.filter(|folder| folder.join("Cargo.toml").exists()));
    }
    folders.sort();
    assert!(folders.len() > 20, "{} packages", folders.len());
    folders
}

/// Returns the files of code of all packages, and of the tests of the whole server, which the binary's package names.
fn code() -> Vec<PathBuf> {
    let packages = package_folders().into_iter();
    let folders = packages.flat_map(|it| CODE_FOLDERS.map(|folder| it.join(folder)));
    let folders = folders.chain([root().join("verification/system")]);
    folders.flat_map(|folder| sources(&folder)).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    files(folder, "rs")
}

/// Returns the files below a folder whose names end so.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.map(|entry| entry.expect("a readable folder").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|it| it == extension) {
                files.push(entry);
            }
        }
    }
    files.sort();
    files
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn relative(file: &Path) -> String {
    let path = file.strip_prefix(root()).expect("a file of the project");
    path.to_string_lossy().replace('\\', "/")
}

/// Returns the root of the checkout.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).expect("a checkout")
}
