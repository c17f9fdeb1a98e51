//! Go's words for what is wrong in a document.

use granit_parser::{ErrorKind, ScanError};

/// The error about a document that says that it is of another version than 1.1.
pub(super) const OTHER_VERSION: &str = "yaml: found incompatible YAML document";

/// The error about a control character.
pub(super) const CONTROL_CHARACTERS: &str = "yaml: control characters are not allowed";

/// Returns an error as Go's library begins it, with the line. What is common has its words too.
pub(super) fn of(error: &ScanError, text: &str) -> String {
    let own = error.kind().to_string();
    let what = match error.kind() {
        ErrorKind::UnsupportedYamlMajorVersion => return OTHER_VERSION.to_owned(),
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => {
            return CONTROL_CHARACTERS.to_owned();
        }
        ErrorKind::UnclosedFlowCollection { open: '{' } | ErrorKind::UnexpectedEofFlowMapping => {
            "did not find expected ',' or '}'"
        }
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::ExpectedFlowSequenceSeparator => "did not find expected ',' or ']'",
        ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => "did not find expected key",
        ErrorKind::MisplacedFlowCollectionEnd | ErrorKind::UnexpectedEofImplicitFlowMapping => {
            "did not find expected node content"
        }
        ErrorKind::UndeclaredTagHandle => "found undefined tag handle",
        ErrorKind::SimpleKeyExpected => "could not find expected ':'",
        ErrorKind::UnclosedQuotedScalar => "found unexpected end of stream",
        ErrorKind::TabInPlainScalar => "found a tab character that violates indentation",
        ErrorKind::UnexpectedCharacter { .. } | ErrorKind::TabInBlockIndentation => {
            "found character that cannot start any token"
        }
        // What was being read does not belong to Go's message.
        _ => match own.split_once(", ") {
            Some((before, what)) if before.starts_with("while ") => what,
            _ => &own,
        },
    };
    match line(error, text) {
        0 => format!("yaml: {what}"),
        line => format!("yaml: line {line}: {what}"),
    }
}

/// Returns the line that Go tells, which tells none in the first: its grammar counts them from zero, and some errors it
/// finds where it has read on.
fn line(error: &ScanError, text: &str) -> usize {
    let line = error.marker().line();
    match error.kind() {
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::ExpectedNodeContent
        | ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar
        | ErrorKind::MisplacedFlowCollectionEnd
        | ErrorKind::UndeclaredTagHandle
        | ErrorKind::UnexpectedEofImplicitFlowMapping => line - 1,
        ErrorKind::SimpleKeyExpected | ErrorKind::TabInPlainScalar => line + 1,
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence => line,
        ErrorKind::UnclosedQuotedScalar if text.contains('\n') => text.matches('\n').count() + 1,
        ErrorKind::UnclosedQuotedScalar => 0,
        _ if line == 1 => 0,
        _ => line,
    }
}
