//! The tables of Kubernetes' functions that decide on objects name items that are there, and give reasons.
//!
//! `verification/validation/check` sees, with Kubernetes' sources, that no function is without a row.

use std::collections::BTreeSet;
use std::fs;

use super::{read, relative, root};

/// The words before the names of items.
const KEYWORDS: [&str; 8] = [
    "fn",
    "const",
    "static",
    "struct",
    "enum",
    "trait",
    "type",
    "macro_rules!",
];
/// Kubernetes 1.36 has so many functions that decide, rounded down.
const ROWS_MIN: usize = 1_890;

#[test]
fn functions_of_kubernetes_name_rules_that_are_there() {
    let tables = fs::read_dir(root().join("verification/validation")).expect("the tables");
    let mut wrong = Vec::new();
    let mut named = BTreeSet::new();
    for table in tables {
        let table = table.expect("a file").path();
        if table.extension().is_none_or(|it| it != "tsv") {
            continue;
        }
        for (number, line) in read(&table).lines().enumerate() {
            let place = format!("{}:{}", relative(&table), number + 1);
            match row(line, |file| fs::read_to_string(root().join(file)).ok()) {
                Ok(function) if named.insert(function.clone()) => {}
                Ok(function) => wrong.push(format!("{place}: {function} has two rows")),
                Err(why) => wrong.push(format!("{place}: {why}")),
            }
        }
    }
    assert!(named.len() >= ROWS_MIN, "{} rows", named.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rows_that_name_nothing_are_wrong() {
    let source = |file: &str| (file == "crates/a.rs").then(|| "pub fn first() {}".to_owned());
    let answers = [
        "a.go\tValidateA\tcrates/a.rs first",
        "a.go\tValidateA\t- there is no A",
        "a.go\tValidateA\t-",
        "a.go\tValidateA\tcrates/a.rs fir",
        "a.go\tValidateA\tcrates/a.rs first; crates/b.rs first",
        "a.go\tValidateA",
    ]
    .map(|line| row(line, source).is_ok());
    assert_eq!(answers, [true, true, false, false, false, false]);
}

/// Returns the source file and function that a row is of, or what is wrong with the row.
fn row(line: &str, source: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [file, function, rules] = columns[..] else {
        return Err("there are three columns".to_owned());
    };
    if let Some(reason) = rules.strip_prefix('-') {
        if reason.trim().is_empty() {
            return Err("there is no reason".to_owned());
        }
    } else {
        for rule in rules.split("; ") {
            let (path, item) = rule
                .split_once(' ')
                .ok_or_else(|| format!("{rule:?} names no item"))?;
            let text = source(path).ok_or_else(|| format!("there is no {path}"))?;
            if !declares(&text, item) {
                return Err(format!("{path} declares no {item}"));
            }
        }
    }
    Ok(format!("{file} {function}"))
}

fn declares(text: &str, item: &str) -> bool {
    KEYWORDS.iter().any(|keyword| {
        let declaration = format!("{keyword} {item}");
        text.match_indices(&declaration).any(|(at, found)| {
            let next = text[at + found.len()..].chars().next();
            !next.is_some_and(|it| it.is_alphanumeric() || it == '_')
        })
    })
}
