//! Every file looks alike: imports in three groups, and no line so long that it is cut on a page of code.

use std::collections::BTreeSet;

use super::{code, files, read, relative, root};

/// The number of characters in a line of code or prose.
const LINE_CHARACTERS_MAX: usize = 120;

#[test]
fn imports_stand_in_three_groups() {
    let files = code().into_iter();
    let mixed: Vec<String> = files
        .filter(|file| !has_three_groups(&read(file)))
        .map(|file| relative(&file))
        .collect();
    assert!(
        mixed.is_empty(),
        "import std, then crates, then the crate's own modules, with a blank line between:\n{}",
        mixed.join("\n")
    );
}

#[test]
fn lines_are_short() {
    let documents = ["docs", "tools", "verification"].map(|folder| root().join(folder));
    let documents = documents.iter().flat_map(|folder| files(folder, "md"));
    let pages = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "PERF.md",
        "README.md",
    ];
    let pages = pages.map(|page| root().join(page));
    let mut long = Vec::new();
    for file in code().into_iter().chain(documents).chain(pages) {
        let text = read(&file);
        let lines = long_lines(&text).into_iter();
        long.extend(lines.map(|line| format!("{}:{line}", relative(&file))));
    }
    assert!(
        long.is_empty(),
        "longer than {LINE_CHARACTERS_MAX} characters:\n{}",
        long.join("\n")
    );
}

#[test]
fn groups_that_are_mixed_are_seen() {
    assert!(has_three_groups(
        "use std::io;\n\nuse http::Uri;\n\nuse super::a;\nuse inner::b;\n\nmod inner;\n"
    ));
    assert!(!has_three_groups("use http::Uri;\nuse std::io;\n"));
    assert!(!has_three_groups("use super::a;\n\nuse http::Uri;\n"));
    assert!(!has_three_groups("use http::Uri;\n\nuse hyper::body;\n"));
    let long = "x ".repeat(LINE_CHARACTERS_MAX);
    assert_eq!(long_lines(&format!("a\n// {long}\n")), [2]);
    assert_eq!(
        long_lines(&format!("    \"{long}\",\n| {long} |\n```\n{long}\n```\n")),
        [0; 0]
    );
}

/// Returns true if the first imports of a file stand in groups: of std, of crates, of the crate's own modules.
fn has_three_groups(text: &str) -> bool {
    let own = own_names(text);
    let mut groups: Vec<BTreeSet<usize>> = vec![BTreeSet::new()];
    let mut is_open = false;
    let lines = text.lines().skip_while(|line| !line.starts_with("use "));
    for line in lines {
        if is_open {
            is_open = !line.ends_with(';');
        } else if let Some(path) = line.strip_prefix("use ") {
            let first = path.split([':', ';', ' ']).next().unwrap_or_default();
            let group = match first {
                "std" | "core" | "alloc" => 0,
                "crate" | "super" | "self" => 2,
                name if own.contains(name) => 2,
                _ => 1,
            };
            groups.last_mut().expect("a group").insert(group);
            is_open = !line.ends_with(';');
        } else if line.is_empty() {
            groups.push(BTreeSet::new());
        } else {
            break;
        }
    }
    let groups = groups.iter().filter(|group| !group.is_empty());
    let order: Option<Vec<usize>> = groups
        .map(|group| group.first().copied().filter(|_| group.len() == 1))
        .collect();
    order.is_some_and(|order| order.is_sorted_by(|a, b| a < b))
}

/// Returns the names of the modules and types that a file declares.
fn own_names(text: &str) -> BTreeSet<&str> {
    let declared = |line| {
        let mut words = str::split_whitespace(line).skip_while(|word| word.starts_with("pub"));
        let is_declared = words
            .next()
            .is_some_and(|it| matches!(it, "mod" | "enum" | "struct"));
        let name = words.next().filter(|_| is_declared)?;
        name.split(|it: char| !it.is_alphanumeric() && it != '_')
            .next()
    };
    text.lines().filter_map(declared).collect()
}

/// Returns the numbers of the lines that are too long. Tables, commands and what they print, addresses, and texts of
/// programs cannot be broken.
fn long_lines(text: &str) -> Vec<usize> {
    let (mut long, mut is_command) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        let start = line
            .trim_start()
            .trim_start_matches(['/', '!'])
            .trim_start();
        if start.starts_with("```") {
            is_command = !is_command;
        }
        let unbroken = is_command || start.starts_with(['|', '<']) || line.contains('"');
        let has_spaces = start.trim_start_matches(['-', ' ']).contains(' ');
        if line.chars().count() > LINE_CHARACTERS_MAX && !unbroken && has_spaces {
            long.push(index + 1);
        }
    }
    long
}
