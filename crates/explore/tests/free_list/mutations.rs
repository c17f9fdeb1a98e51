//! The mutations that `mutations.toml` lists for the free list, each of which its model must refuse.

use std::process::Command;

#[test]
fn every_mutation_of_the_free_list_is_refused() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/mutate");
    let output = Command::new(script).output().expect("it can be run");
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{failed}");
    assert!(said.contains("5 of 5 refused"), "{said}");
}
