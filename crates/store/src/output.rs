//! The output of commands: tables for people, JSON for programs.

use std::fmt::Write as _;

use ringwatch::storage::backend::copy::{FinishedCopy, PassResult};
use ringwatch::storage::backend::embedded::maintenance::{CheckReport, StoreStatus};
use serde_json::{Value, json};

use super::command_line::OutputForm;

/// Returns a status in a form.
pub(crate) fn status(status: &StoreStatus, form: OutputForm) -> String {
    let StoreStatus {
        revision,
        compacted_revision,
        keys,
        size_bytes,
        used_bytes,
        digest,
        format,
    } = status;
    let digest = digest.to_string();
    match form {
        OutputForm::Json => line(
            &json!({"revision": revision, "compactedRevision": compacted_revision,
            "keys": keys, "sizeBytes": size_bytes, "usedBytes": used_bytes, "digest": digest,
            "format": format}),
        ),
        OutputForm::Table => table(&[
            ("REVISION", revision.to_string()),
            ("COMPACTED REVISION", compacted_revision.to_string()),
            ("KEYS", keys.to_string()),
            ("SIZE", bytes(*size_bytes)),
            ("IN USE", bytes(*used_bytes)),
            ("DIGEST", digest),
            ("FORMAT", format.to_string()),
        ]),
    }
}

/// Returns the outcome of a check in a form.
pub(crate) fn checked(checked: &CheckReport, form: OutputForm) -> String {
    let CheckReport {
        records,
        revision,
        digest,
        findings,
        more_findings,
    } = checked;
    let digest = digest.to_string();
    match form {
        OutputForm::Json => line(
            &json!({"records": records, "revision": revision, "digest": digest,
            "findings": findings, "moreFindings": more_findings}),
        ),
        OutputForm::Table => {
            let mut text = table(&[
                ("RECORDS", records.to_string()),
                ("REVISION", revision.to_string()),
                ("DIGEST", digest),
                (
                    "FINDINGS",
                    (findings.len() as u64 + more_findings).to_string(),
                ),
            ]);
            for finding in findings {
                let _ = writeln!(text, "- {finding}");
            }
            if *more_findings > 0 {
                let _ = writeln!(text, "- and {more_findings} more");
            }
            text
        }
    }
}

/// Returns the outcome of a copy that is whole in a form.
pub(crate) fn copied(copied: &FinishedCopy, form: OutputForm) -> String {
    let FinishedCopy {
        revision,
        target_revision,
        keys,
        expired,
        changes,
        digest,
    } = copied;
    let digest = digest.to_string();
    match form {
        OutputForm::Json => line(
            &json!({"finished": true, "sourceRevision": revision, "targetRevision": target_revision,
            "keys": keys, "expired": expired, "changes": changes, "digest": digest}),
        ),
        OutputForm::Table => table(&[
            ("SOURCE REVISION", revision.to_string()),
            ("TARGET REVISION", target_revision.to_string()),
            ("KEYS", keys.to_string()),
            ("EXPIRED", expired.to_string()),
            ("CHANGES", changes.to_string()),
            ("DIGEST", digest),
        ]),
    }
}

/// Returns the outcome of a copy that is left unfinished in a form.
pub(crate) fn prepared(prepared: &PassResult, form: OutputForm) -> String {
    let PassResult { revision, changes } = prepared;
    match form {
        OutputForm::Json => {
            line(&json!({"finished": false, "sourceRevision": revision, "changes": changes}))
        }
        OutputForm::Table => table(&[
            ("SOURCE REVISION", revision.to_string()),
            ("CHANGES", changes.to_string()),
            (
                "UNFINISHED",
                "stop what writes to the source, then run this without --prepare".to_owned(),
            ),
        ]),
    }
}

/// Returns a size for people.
pub(crate) fn bytes(size: u64) -> String {
    format!("{size} bytes ({})", indicatif::BinaryBytes(size))
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

/// Returns rows of a name and a value, the values in one column.
fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:width$}  {value}");
        text
    })
}
