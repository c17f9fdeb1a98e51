//! The name of a type leads a reader who searches for it to one thing.

use std::collections::BTreeMap;

use super::{is_for_tests, package_folders, read, relative, root, sources, without_tests};

/// The number of modules that may each define a type of one name.
const MODULES_MAX: usize = 3;

/// Nouns that say nothing of what they hold.
const WORN_OUT: &[&str] = &["Outcome", "Part", "Place", "Scene", "Terms"];

/// Participles that do not end in "ed".
const IRREGULAR: &[&str] = &[
    "Begun", "Drawn", "Found", "Given", "Held", "Hidden", "Kept", "Known", "Made", "Read", "Seen",
    "Sent", "Shown", "Taken", "Told", "Written",
];

/// Names of futures and errors, which tokio names so too, and of a thing that is called so.
const PARTICIPLES_ALLOWED: &[&str] = &["Cancelled", "Closed", "Elapsed", "Embedded", "Exceeded"];

/// Packages that only tests use.
const HARNESSES: [&str; 2] = ["explore", "testing"];

#[test]
fn a_type_name_stands_in_few_modules() {
    let crowded: Vec<String> = definitions()
        .into_iter()
        .filter(|(_, files)| files.len() > MODULES_MAX)
        .map(|(name, files)| format!("{name}: {}", files.join(" ")))
        .collect();
    assert!(
        crowded.is_empty(),
        "say in the name of what each is:\n{}",
        crowded.join("\n")
    );
}

#[test]
fn a_type_name_is_a_noun_that_says_something() {
    let definitions = definitions().into_iter();
    let riddles: Vec<String> = definitions
        .filter(|(name, _)| is_riddle(name))
        .map(|(name, files)| format!("{name}: {}", files.join(" ")))
        .collect();
    assert!(
        riddles.is_empty(),
        "name the thing:\n{}",
        riddles.join("\n")
    );
}

#[test]
fn riddles_are_told_from_nouns() {
    let of = |names: &[&str]| names.iter().filter(|it| is_riddle(it)).count();
    assert_eq!(of(&["Held", "Asked", "Place", "Written"]), 4);
    assert_eq!(of(&["HeldWrites", "Closed", "Window", "Seed", "Need"]), 0);
    let text = "pub struct Asked;\nenum Way {}\n    type Output = u8;\npub(crate) trait Known {}\n";
    assert_eq!(names(text), ["Asked", "Way", "Known"]);
}

/// Returns true if a name is one participle or one worn-out noun.
fn is_riddle(name: &str) -> bool {
    let is_one_word = name.chars().filter(char::is_ascii_uppercase).count() == 1;
    let is_participle = name.ends_with("ed") && !name.ends_with("eed") || IRREGULAR.contains(&name);
    let is_allowed = PARTICIPLES_ALLOWED.contains(&name);
    WORN_OUT.contains(&name) || is_one_word && is_participle && !is_allowed
}

/// Returns the files that define a type of each name, those of test harnesses left out.
fn definitions() -> BTreeMap<String, Vec<String>> {
    let mut definitions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let crates = root().join("crates");
    let packages = package_folders().into_iter();
    let packages = packages.filter(|it| it == root() || it.parent() == Some(&crates));
    let packages = packages.filter(|it| !HARNESSES.iter().any(|name| it.ends_with(name)));
    for file in packages.flat_map(|it| sources(&it.join("src"))) {
        if is_for_tests(&file) {
            continue;
        }
        for name in names(&without_tests(&read(&file))) {
            let files = definitions.entry(name).or_default();
            files.push(relative(&file));
        }
    }
    definitions
}

/// Returns the names of the types that a text defines outside of blocks.
fn names(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|it| !it.starts_with(' '));
    lines.filter_map(name).map(str::to_owned).collect()
}

/// Returns the name of the type that a line defines.
fn name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    if word.starts_with("pub") {
        word = words.next()?;
    }
    let is_type = matches!(word, "struct" | "enum" | "trait" | "type" | "union");
    let name = words.next().filter(|_| is_type)?;
    name.split(|it: char| !it.is_alphanumeric()).next()
}
