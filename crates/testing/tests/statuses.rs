//! HTTP statuses of errors are chosen in one place, `crates/endpoints/src/errors`.

use std::fs;
use std::path::{Path, PathBuf};

/// Files that may name a 4xx or 5xx status, and why.
const EXCEPTIONS: [(&str, &str); 6] = [
    (
        "envtest/src/answers.rs",
        "answers as etcd does, not as an API server",
    ),
    (
        "webhook/src/network_client.rs",
        "compares the statuses of webhooks' answers, as their client",
    ),
    (
        "http/src/head_refusal.rs",
        "refuses heads of which no request can be made, in the bytes of Go's server",
    ),
    (
        "http/src/testing.rs",
        "stands for the service above, in tests",
    ),
    (
        "relay/src/upstream.rs",
        "compares the statuses of the upstream's answers, as its client",
    ),
    (
        "store/src/download.rs",
        "compares the status of a server's answer, as its client",
    ),
];

/// The module that chooses: a path below `crates/` and the beginning of the names of its files.
const CHOSEN_IN: &str = "endpoints/src/errors";

/// Names of `http::StatusCode` from 400 on.
const ERRORS: [&str; 22] = [
    "BAD_REQUEST",
    "UNAUTHORIZED",
    "PAYMENT_REQUIRED",
    "FORBIDDEN",
    "NOT_FOUND",
    "METHOD_NOT_ALLOWED",
    "NOT_ACCEPTABLE",
    "REQUEST_TIMEOUT",
    "CONFLICT",
    "GONE",
    "PRECONDITION_FAILED",
    "PAYLOAD_TOO_LARGE",
    "UNSUPPORTED_MEDIA_TYPE",
    "EXPECTATION_FAILED",
    "UNPROCESSABLE_ENTITY",
    "TOO_MANY_REQUESTS",
    "REQUEST_HEADER_FIELDS_TOO_LARGE",
    "INTERNAL_SERVER_ERROR",
    "NOT_IMPLEMENTED",
    "BAD_GATEWAY",
    "SERVICE_UNAVAILABLE",
    "GATEWAY_TIMEOUT",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "tests") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|it| it == "rs")
            && path.file_name().is_some_and(|name| name != "tests.rs")
        {
            found.push(path);
        }
    }
}

/// Returns the numbers of the lines, from 1, on which a source begins to choose the status of an error.
///
/// White space and comments are left out before it looks, so that a call that is broken over several lines is found.
fn choices(code: &str) -> Vec<usize> {
    let mut dense = String::new();
    let mut line_of_byte = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let line = line.trim();
        if !line.starts_with("//") {
            dense.extend(line.split_whitespace());
            line_of_byte.resize(dense.len(), number + 1);
        }
    }
    let named = dense.match_indices("StatusCode::").filter(|(at, path)| {
        let rest = &dense[at + path.len()..];
        let end = rest.find(|it: char| !it.is_ascii_uppercase() && it != '_');
        ERRORS.contains(&&rest[..end.unwrap_or(rest.len())])
    });
    let numbered = ["Status::failure(", "StatusCode::from_u16("]
        .into_iter()
        .flat_map(|call| dense.match_indices(call))
        .filter(|(at, call)| dense[at + call.len()..].starts_with(|it: char| it.is_ascii_digit()));
    let mut lines: Vec<usize> = named
        .chain(numbered)
        .map(|(at, _)| line_of_byte[at])
        .collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

#[test]
fn choices_are_found_across_lines() {
    let broken = "// StatusCode::GONE\nlet status = Status::failure(\n    // Why.\n    409,\n    reason,\n);\n\
        let code = http::StatusCode\n    ::NOT_FOUND;\n";
    assert_eq!(choices(broken), [2, 7]);
    let on_a_line =
        "f(StatusCode::GONE);\nStatus::failure(500, reason);\nStatusCode::from_u16(404)";
    assert_eq!(choices(on_a_line), [1, 2, 3]);
    let none = "StatusCode::OK;\nStatus::failure(\n    code,\n    reason,\n);\nStatusCode::NOT_FOUND_PAGE;";
    assert_eq!(choices(none), [0; 0]);
}

#[test]
fn statuses_of_errors_are_chosen_in_one_place() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).expect("the crates") {
        let folder = entry.expect("an entry").path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    assert!(
        files.len() > 300,
        "{} files are not the workspace",
        files.len()
    );
    let mut elsewhere = Vec::new();
    let mut used = Vec::new();
    for file in files {
        let name = file
            .strip_prefix(&crates)
            .expect("below")
            .display()
            .to_string();
        if name.starts_with(CHOSEN_IN) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for number in choices(code) {
            match EXCEPTIONS.iter().find(|(file, _)| *file == name) {
                Some((file, _)) => used.push(*file),
                None => elsewhere.push(format!("{name}:{number}")),
            }
        }
    }
    assert!(
        elsewhere.is_empty(),
        "choose in {CHOSEN_IN}:\n{}",
        elsewhere.join("\n")
    );
    for (file, why) in EXCEPTIONS {
        assert!(
            used.contains(&file),
            "{file} is no exception any more: {why}"
        );
    }
}
