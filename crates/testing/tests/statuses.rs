//! HTTP statuses of errors are chosen in one place, `crates/apiserver/src/endpoints/errors`.

use std::fs;
use std::path::{Path, PathBuf};

/// Files that may name a 4xx or 5xx status, and why.
const EXCEPTIONS: [(&str, &str); 1] = [(
    "apiserver/src/webhook_client.rs",
    "compares the statuses of webhooks' answers, as their client",
)];

/// The place.
const CHOSEN_IN: &str = "apiserver/src/endpoints/errors";

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

/// Returns true if a line chooses the status of an error.
fn chooses(line: &str) -> bool {
    let named = line.split("StatusCode::").skip(1).any(|rest| {
        let name: String = rest
            .chars()
            .take_while(|it| it.is_ascii_uppercase() || *it == '_')
            .collect();
        ERRORS.contains(&name.as_str())
    });
    let numbered = line
        .split("Status::failure(")
        .skip(1)
        .any(|rest| rest.starts_with(|it: char| it.is_ascii_digit()));
    named || numbered
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
        for (number, line) in code.lines().enumerate().filter(|(_, line)| chooses(line)) {
            match EXCEPTIONS.iter().find(|(file, _)| *file == name) {
                Some((file, _)) => used.push(*file),
                None => elsewhere.push(format!("{name}:{}: {}", number + 1, line.trim())),
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
