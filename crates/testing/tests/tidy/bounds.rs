//! The table of bounds names constants that are there.

use super::{read, root};

#[test]
fn the_bounds_that_are_told_are_in_the_code() {
    let text = read(&root().join("docs/bounds.md"));
    let mut named = 0;
    for row in text.lines().filter(|line| line.starts_with("| ")) {
        let cell = row.split(" | ").nth(3).unwrap_or_default();
        let mut quoted = cell.split('`').skip(1).step_by(2);
        let (Some(constant), Some(file)) = (quoted.next(), quoted.next()) else {
            continue;
        };
        let code = read(&root().join(file));
        let is_there = code.lines().any(|line| {
            let line = line.trim_start_matches("pub").trim_start();
            line.contains(&format!("const {constant}:"))
        });
        assert!(is_there, "docs/bounds.md tells of {constant} in {file}");
        named += 1;
    }
    assert!(named > 30, "docs/bounds.md tells of {named} constants");
}
