//! The public conformance files of CEL, run by this crate as kube-apiserver would run them.
//!
//! The files are no part of this repository. `table.tsv` says how many cases of each section pass, and why others do
//! not: a case that no longer passes fails the test, and so does one that passes though the table has a reason.
//! `RINGWATCH_RENEW=1` writes the table, with what each new case gives in the place of its reason.

mod cases;
mod text_format;
mod values;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ringwatch_testing::recorded;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/table.tsv");

/// Begins the reason of a case that nobody has judged.
const UNJUDGED: &str = "?? ";

#[test]
fn public_cases_pass_but_for_those_that_the_table_names() {
    let case = "conformance::public_cases_pass_but_for_those_that_the_table_names";
    let Some(folder) = recorded::cel_spec(case) else {
        return;
    };
    let table = fs::read_to_string(TABLE).unwrap_or_default();
    let found = written(&folder.join("tests/simple/testdata"), &reasons(&table));
    if std::env::var_os("RINGWATCH_RENEW").is_some() {
        fs::write(TABLE, found).expect("the table is written");
        return;
    }
    let known: Vec<&str> = table.lines().collect();
    let found: Vec<&str> = found.lines().collect();
    let lost = known.iter().filter(|line| !found.contains(line));
    let new = found.iter().filter(|line| !known.contains(line));
    let lost = lost.map(|line| format!("- {line}"));
    let wrong: Vec<String> = lost.chain(new.map(|line| format!("+ {line}"))).collect();
    assert!(
        wrong.is_empty(),
        "the table is other than what passes:\n{}",
        wrong.join("\n")
    );
    let unjudged = known.iter().any(|line| line.contains(UNJUDGED));
    assert!(!unjudged, "a reason of the table begins with '{UNJUDGED}'");
}

/// Returns the reasons of the table by file, section and case.
fn reasons(table: &str) -> BTreeMap<[&str; 3], &str> {
    let lines = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains(UNJUDGED));
    let lines = lines.filter_map(|line| {
        let mut fields = line.splitn(4, '\t');
        let mut field = || fields.next();
        Some(([field()?, field()?, field()?], field()?))
    });
    lines.collect()
}

/// Runs all files, and returns the table of what passes.
fn written(folder: &Path, reasons: &BTreeMap<[&str; 3], &str>) -> String {
    let entries = fs::read_dir(folder).expect("the folder of the files");
    let files = entries.map(|it| it.expect("a file").path());
    let mut files: Vec<_> = files
        .filter(|it| it.extension().is_some_and(|it| it == "textproto"))
        .collect();
    files.sort();
    let mut table = String::new();
    let mut sums = (0, 0);
    for path in files {
        let text = fs::read_to_string(&path).expect("a file");
        let file = path.file_stem().and_then(|it| it.to_str()).expect("a name");
        for (section, outcomes) in cases::run_file(file, &text_format::read(&text)) {
            let passed = outcomes.iter().filter(|(_, it)| it.is_ok()).count();
            sums = (sums.0 + passed, sums.1 + outcomes.len());
            writeln!(table, "{file}\t{section}\t\t{passed} of {}", outcomes.len()).expect("a line");
            for (name, outcome) in outcomes {
                let Err(why) = outcome else { continue };
                let known = reasons.get(&[file, section.as_str(), name.as_str()]);
                let why: String = why.replace(['\n', '\t'], " ").chars().take(100).collect();
                let unjudged = format!("{UNJUDGED}{why}");
                let reason = known.map_or(unjudged, |it| (*it).to_owned());
                writeln!(table, "{file}\t{section}\t{name}\t{reason}").expect("a line");
            }
        }
    }
    format!(
        "# file\tsection\tcase\tpassed, or why not\n\t\t\t{} of {}\n{table}",
        sums.0, sums.1
    )
}
