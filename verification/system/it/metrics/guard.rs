//! Every family has a test that names it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::support::recorded::checkout;

/// The beginnings of the names of all families.
pub(super) const PREFIXES: [&str; 9] = [
    "aggregator_",
    "apiserver_",
    "etcd_",
    "kubernetes_",
    "pod_security_",
    "process_",
    "ringwatch_",
    "watch_cache_",
    "workqueue_",
];

/// Returns the Rust files below the folders, this one excepted.
fn sources(folders: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = folders
        .iter()
        .map(|folder| checkout().join(folder))
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs")
                && !path.ends_with("metrics/guard.rs")
            {
                found.push(path);
            }
        }
    }
    found
}

fn is_test(path: &Path) -> bool {
    path.iter()
        .any(|part| part == "tests" || part == "tests.rs" || part == "verification")
}

/// Returns the code of a file before its unit tests, and the tests.
fn parts(path: &Path) -> (String, String) {
    let text = fs::read_to_string(path).expect("a file");
    if is_test(path) {
        return (String::new(), text);
    }
    let (code, tests) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
    (code.to_owned(), tests.to_owned())
}

/// Returns the names of families among the string literals of a source.
fn names(code: &str) -> impl Iterator<Item = &str> {
    let literals = code.split('"').skip(1).step_by(2);
    literals.filter(|it| {
        PREFIXES.iter().any(|prefix| it.starts_with(prefix))
            && it.chars().all(|it| it.is_ascii_lowercase() || it == '_')
    })
}

/// Returns the families that the sources register, without the `_total` that is added to counters.
pub(super) fn registered() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in sources(&["src", "crates"]) {
        let (code, _) = parts(&path);
        if code.contains("prometheus_client::") {
            found.extend(names(&code).map(str::to_owned));
        }
    }
    found
}

/// True if a word of the text is the family or one of its samples.
fn is_named(text: &str, family: &str) -> bool {
    let endings = ["", "_total", "_count", "_sum", "_bucket"];
    endings.iter().any(|ending| {
        let name = format!("{family}{ending}");
        text.match_indices(&name).any(|(at, _)| {
            let next = text[at + name.len()..].chars().next().unwrap_or(' ');
            let before = text[..at].chars().next_back().unwrap_or(' ');
            !(next.is_alphanumeric() || next == '_' || before.is_alphanumeric() || before == '_')
        })
    })
}

#[tokio::test]
async fn every_family_is_named_by_a_test() {
    let registered = registered();
    let fixture = Fixture::start(InProcessServer::builder()).await;
    fixture.config_map("a", 1).await;
    let scrape = fixture.scrape().await;
    // Whatever is served was found in the sources, so none is overlooked.
    for family in scrape.families() {
        let is_known = registered.contains(family.trim_end_matches("_total"));
        assert!(
            is_known,
            "the sources do not register {family} in a way that this test finds"
        );
    }
    let tests: String = sources(&["src", "tests", "crates", "verification"])
        .iter()
        .map(|path| parts(path).1)
        .collect();
    let untested: Vec<&String> = registered
        .iter()
        .filter(|family| !is_named(&tests, family))
        .collect();
    assert!(untested.is_empty(), "no test names {untested:?}");
}
