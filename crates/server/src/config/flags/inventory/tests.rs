//! Compares the lists of flags with kube-apiserver's names, and with the table in `docs/compatibility.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use clap::Parser;

use super::super::ServeFlags;
use super::*;

/// The flags of kube-apiserver 1.36: on each line the name, the type, the default (`-` for none), and `deprecated`,
/// `deprecated,hidden` or `-`.
const KUBE_APISERVER: &str = include_str!("kube_apiserver_flags.txt");
/// The differences from kube-apiserver of the flags that work: on each line a name and a text.
const DIFFERENCES: &str = include_str!("differences.txt");

/// The flags of kube-apiserver 1.36 that its help shows.
const VISIBLE: usize = 171;
/// The flags that only this server has.
const OWN: [&str; 8] = [
    "config",
    "data-dir",
    "max-watches-per-user",
    "memory-budget-mib",
    "print-config",
    "quota-backend-bytes",
    "test-cluster",
    "test-cluster-pods-ready-after",
];

/// The lines in the document around the table.
const TABLE_BEGINS: &str =
    "<!-- The table of flags begins; a test of crates/server writes it. -->\n";
const TABLE_ENDS: &str = "<!-- The table of flags ends. -->\n";
/// The environment variable with which the test writes the table.
const RENEW: &str = "RINGWATCH_RENEW";

#[derive(Parser, Debug)]
#[command(name = "serve")]
struct Line {
    #[command(flatten)]
    flags: ServeFlags,
}

fn parse(flags: &[&str]) -> Result<ServeFlags, String> {
    let line = Line::try_parse_from(std::iter::once(&"serve").chain(flags))
        .map_err(|error| error.to_string())?;
    line.flags.check()?;
    Ok(line.flags)
}

fn kube_apiserver() -> BTreeMap<&'static str, (&'static str, bool)> {
    let lines = KUBE_APISERVER.lines().map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [name, _, default, shown] = fields[..] else {
            panic!("{line}");
        };
        let default = if default == "-" { "" } else { default };
        (name, (default, !shown.contains("hidden")))
    });
    lines.collect()
}

/// Returns the names of the flags that work: the fields of `ServeFlags`.
fn working() -> Vec<String> {
    let command = ServeFlags::augment_args(Command::new("serve"));
    let mut names: Vec<String> = command
        .get_arguments()
        .flat_map(|argument| {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            argument.get_long().into_iter().chain(aliases)
        })
        .map(ToOwned::to_owned)
        .collect();
    for name in inert::FLAGS
        .iter()
        .map(|flag| flag.name)
        .chain(refused().map(|it| it.0))
    {
        let place = names
            .iter()
            .rposition(|it| it == name)
            .expect("an argument");
        names.remove(place);
    }
    names
}

#[test]
fn every_flag_of_kube_apiserver_is_in_one_list() {
    let known = kube_apiserver();
    assert_eq!(known.values().filter(|(_, shown)| *shown).count(), VISIBLE);
    let mut lists: BTreeMap<String, usize> = BTreeMap::new();
    let others = inert::FLAGS
        .iter()
        .map(|flag| flag.name)
        .chain(refused().map(|it| it.0));
    for name in working().into_iter().chain(others.map(ToOwned::to_owned)) {
        *lists.entry(name).or_default() += 1;
    }
    for name in OWN {
        assert_eq!(lists.remove(name), Some(1), "{name} is this server's own");
    }
    for name in known.keys() {
        let count = lists.remove(*name).unwrap_or(0);
        assert_eq!(count, 1, "--{name} is in {count} of the lists of flags");
    }
    assert!(lists.is_empty(), "not flags of kube-apiserver: {lists:?}");
}

#[test]
fn defaults_of_flags_without_effect_are_kube_apiservers() {
    let known = kube_apiserver();
    for flag in inert::FLAGS {
        assert_eq!(known[flag.name].0, flag.default, "{}", flag.name);
    }
}

#[test]
fn a_flag_without_effect_says_so_when_it_is_given() {
    assert!(parse(&[]).expect("flags").inventory.notices().is_empty());
    let flags = parse(&["--contention-profiling", "--vmodule=a=1", "--vmodule=b=2"]);
    let notices = flags.expect("flags").inventory.notices();
    assert_eq!(
        notices,
        [
            "--contention-profiling has no effect here: there is no Go runtime to profile",
            "--vmodule has no effect here: there is one log level for all modules, -v",
        ]
    );
}

#[test]
fn refused_flags_say_what_to_do() {
    for flag in [
        "--service-account-signing-endpoint=x",
        "--egress-selector-config-file",
        "--authorization-policy-file=x",
    ] {
        let error = parse(&[flag]).expect_err(flag);
        assert!(error.contains("cannot be used here: "), "{error}");
        assert!(error.contains(';'), "{error}");
    }
}

#[test]
fn wrong_values_of_flags_without_effect_are_refused() {
    for (flags, words) in [
        (&["--contention-profiling=perhaps"][..], "true or false"),
        (&["--emulated-version=1.30"], "is not between [1.36, 1.36]"),
        (
            &["--coordinated-leadership-renew-deadline=15s"],
            "--coordinated-leadership-lease-duration must be greater than",
        ),
    ] {
        let error = parse(flags).expect_err("a wrong value");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn help_shows_no_refused_flag_and_says_which_have_no_effect() {
    let help = Line::try_parse_from(["serve", "--help"])
        .expect_err("help")
        .to_string();
    let (working, without_effect) = help.split_once(HEADING).expect("the heading");
    for flag in inert::FLAGS {
        let line = format!("--{}", flag.name);
        let shows = |text: &str| text.split([' ', '\n', '[']).any(|word| word == line);
        assert!(!shows(working) && shows(without_effect), "{line}");
    }
    assert!(!help.contains("--authorization-policy-file"));
}

/// Returns the table of all flags for the document.
fn table() -> String {
    let working: BTreeSet<String> = working().into_iter().collect();
    let differences = DIFFERENCES.lines().filter(|line| !line.is_empty());
    let differences: BTreeMap<&str, &str> = differences
        .map(|line| line.split_once(' ').expect("a name and a text"))
        .collect();
    let mut table = "| flag | here | differences |\n|---|---|---|\n".to_owned();
    for name in kube_apiserver().keys() {
        let inert = inert::FLAGS.iter().find(|flag| flag.name == *name);
        let refused = refused().find(|(refused, _)| refused == name);
        let (state, text) = match (inert, refused) {
            (Some(flag), _) => ("no effect", flag.reason),
            (_, Some((_, reason))) => ("refused", reason),
            _ => ("works", differences.get(name).copied().unwrap_or_default()),
        };
        table.push_str(&format!("| `--{name}` | {state} | {text} |\n"));
    }
    for name in differences.keys() {
        assert!(working.contains(*name), "{name} does not work");
    }
    table
}

#[test]
fn the_table_of_flags_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    let text = fs::read_to_string(&path).expect("the document");
    let (before, rest) = text.split_once(TABLE_BEGINS).expect("the table's begin");
    let (written, after) = rest.split_once(TABLE_ENDS).expect("the table's end");
    let table = table();
    if std::env::var_os(RENEW).is_some() {
        let renewed = format!("{before}{TABLE_BEGINS}{table}{TABLE_ENDS}{after}");
        fs::write(&path, renewed).expect("written");
        return;
    }
    assert!(
        written == table,
        "docs/compatibility.md is out of date; run this test with {RENEW}=1"
    );
}
