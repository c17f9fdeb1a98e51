//! Tests that fail as often as a file of their name says, in the folder `FAILURES`.

use std::{env, fs, path::PathBuf};

fn run(name: &str) {
    let path = PathBuf::from(env::var("FAILURES").unwrap()).join(name);
    let left = fs::read_to_string(&path).unwrap_or_default();
    let left: u32 = left.parse().unwrap_or(0);
    if left > 0 {
        fs::write(path, (left - 1).to_string()).unwrap();
        panic!("{name} fails {left} times from now on");
    }
}

#[test]
fn one() {
    run("one");
}

#[test]
fn two() {
    run("two");
}

#[test]
fn three() {
    run("three");
}

#[test]
fn recorded() {
    run("recorded");
}

mod conformance {
    #[test]
    fn four() {
        super::run("four");
    }
}
