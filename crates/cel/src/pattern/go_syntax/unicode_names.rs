//! The names of Unicode's classes that Go knows: categories and scripts with their long names, but no properties and no
//! short names of scripts, which the regex crates know besides.

use std::collections::HashSet;
use std::sync::LazyLock;

/// The names of Unicode 15, as Go 1.26 has them, in their canonical form.
static NAMES: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("unicode_names.txt").lines().collect());

/// Returns true if Go knows a class of that name.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.contains(canonical(name).as_str())
}

/// Returns true for the names of the class of surrogates, which the regex crates do not know.
pub(super) fn is_surrogates(name: &str) -> bool {
    matches!(canonical(name).as_str(), "cs" | "surrogate")
}

/// Returns a name without what does not count: case, spaces, hyphens and underscores.
fn canonical(name: &str) -> String {
    let counts = |it: &char| !matches!(it, ' ' | '-' | '_');
    let name: String = name.chars().filter(counts).collect();
    name.to_ascii_lowercase()
}
