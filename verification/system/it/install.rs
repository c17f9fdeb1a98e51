//! Installing and configuring the program: configuration files, completions, manual pages, the files of `deploy/`, and
//! the guides of `docs/`, which are run from their own text.

mod configuration;
mod guides;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use ringwatch_testing::recorded::checkout;

/// The exit code, standard output and standard error of the program.
fn ringwatch(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringwatch"));
    let output = command.args(arguments).output().expect("the binary");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("an exit code");
    (code, text(output.stdout), text(output.stderr))
}

/// The subcommands that `--help` of a command lists, each with the words that lead to it.
fn subcommands(of: &[String]) -> Vec<Vec<String>> {
    let line: Vec<&str> = of.iter().map(String::as_str).chain(["--help"]).collect();
    let (code, help, _) = ringwatch(&line);
    assert_eq!(code, 0, "{line:?}");
    let listed = help.lines().skip_while(|it| *it != "Commands:").skip(1);
    let listed = listed.take_while(|it| !it.is_empty());
    // A line that goes on with a description is indented further.
    let names = listed.filter(|it| it.starts_with("  ") && !it.starts_with("   "));
    let names = names.filter_map(|it| it.split_whitespace().next());
    let names = names.filter(|it| *it != "help");
    names.map(|it| [of, &[it.to_owned()]].concat()).collect()
}

/// All subcommands, those of subcommands too.
fn all_subcommands() -> Vec<Vec<String>> {
    let first = subcommands(&[]);
    let second = first.iter().flat_map(|it| subcommands(it));
    let all: Vec<_> = second.chain(first.clone()).collect();
    assert!(all.len() > 10, "{all:?}");
    all
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man");
    let (code, _, error) = ringwatch(&["man-pages", pages.to_str().expect("a path")]);
    assert_eq!((code, error.as_str()), (0, ""));
    for words in all_subcommands() {
        let page = pages.join(format!("ringwatch-{}.1", words.join("-")));
        let text = fs::read_to_string(&page).unwrap_or_else(|_| panic!("no {}", page.display()));
        assert!(text.contains(".SH SYNOPSIS"), "{words:?}");
    }
    let serve = fs::read_to_string(pages.join("ringwatch-serve.1")).expect("a page");
    assert!(serve.contains("secure\\-port"), "it has the flags");
}

#[test]
fn every_subcommand_is_completed_in_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, error) = ringwatch(&["completion", shell]);
        assert_eq!((code, error.as_str()), (0, ""), "{shell}");
        for word in all_subcommands().into_iter().flatten() {
            assert!(script.contains(&word), "{shell} does not complete {word}");
        }
        assert!(script.contains("secure-port"), "{shell} completes flags");
    }
    assert_eq!(ringwatch(&["completion", "csh"]).0, 2);
}

/// The lines of `command:` in a pod's manifest.
fn command_of(manifest: &str) -> Vec<String> {
    let lines = manifest
        .lines()
        .skip_while(|it| *it != "  - command:")
        .skip(1);
    let words = lines.map_while(|it| it.strip_prefix("    - "));
    words.map(ToOwned::to_owned).collect()
}

#[test]
fn the_manifest_of_the_static_pod_has_flags_that_are_taken() {
    let path = checkout().join("deploy/kubeadm/kube-apiserver.yaml");
    let manifest = fs::read_to_string(path).expect("a manifest");
    let command = command_of(&manifest);
    assert_eq!(command[..2], ["ringwatch", "serve"]);
    let mut line: Vec<&str> = command[1..].iter().map(String::as_str).collect();
    line.push("--print-config");
    let (code, configuration, error) = ringwatch(&line);
    assert_eq!((code, error.as_str()), (0, ""));
    for field in [
        "bindAddress: \"0.0.0.0\"",
        "securePort: 6443",
        "authorizationMode:",
    ] {
        assert!(configuration.contains(field), "{field}: {configuration}");
    }
    let version = format!("image: localhost/ringwatch:{}", env!("CARGO_PKG_VERSION"));
    assert!(manifest.contains(&version), "{version}");
}

#[test]
fn kubeadms_manifest_is_turned_into_the_one_that_is_shipped() {
    let manifest = fs::File::open(checkout().join("scripts/lib/kube-apiserver.yaml"));
    let mut replace = Command::new(checkout().join("deploy/kubeadm/replace"));
    let replace = replace.stdin(manifest.expect("kubeadm's"));
    let made = String::from_utf8(replace.output().expect("sh and awk").stdout).expect("text");
    let shipped = fs::read_to_string(checkout().join("deploy/kubeadm/kube-apiserver.yaml"));
    assert_eq!(made, shipped.expect("ours"));
    let nothing = Command::new(checkout().join("deploy/kubeadm/replace"))
        .stdin(std::process::Stdio::null())
        .output();
    assert!(
        !nothing.expect("sh").status.success(),
        "no manifest is refused"
    );
}

#[test]
fn the_unit_starts_what_the_package_has() {
    let read = |path: &str| fs::read_to_string(checkout().join(path)).expect("a file");
    let unit = read("deploy/systemd/ringwatch.service");
    let manifest = read("crates/cli/Cargo.toml");
    assert!(
        unit.contains("ExecStart=/usr/bin/ringwatch serve --config /etc/ringwatch/server.yaml")
    );
    assert!(manifest.contains("conf-files = [\"/etc/ringwatch/server.yaml\"]"));
    let configuration = checkout().join("deploy/debian/server.yaml");
    let path = configuration.to_str().expect("a path");
    let (code, said, error) = ringwatch(&["check-config", path]);
    assert_eq!((code, error.as_str()), (0, ""), "{said}");
    let directory = "dataDir: /var/lib/ringwatch";
    assert!(
        read("deploy/debian/server.yaml")
            .lines()
            .any(|it| it == directory)
    );
    assert!(unit.lines().any(|it| it == "StateDirectory=ringwatch"));
    let assets: BTreeSet<&str> = manifest
        .split('"')
        .filter_map(|it| it.strip_prefix("../../deploy/"))
        .collect();
    for asset in assets {
        assert!(checkout().join("deploy").join(asset).exists(), "{asset}");
    }
}
