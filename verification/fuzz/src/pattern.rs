//! Patterns in Go's syntax. One that is accepted is matched within the work that it may take.

use ringwatch_cel::pattern::{StepBudget, check, is_match};

use crate::memory::within;

/// The steps of work that a match may take.
const STEPS: u64 = 1_000_000;

/// Bytes that a pattern may take while it is compiled.
const BYTES: usize = 64 << 20;

pub(crate) fn run(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let (pattern, text) = text.split_once('\n').unwrap_or((text, "ab-c.d 12é"));
    if within(BYTES, "a pattern", || check(pattern)).is_err() {
        return false;
    }
    let first = is_match(pattern, text, &mut StepBudget::new(STEPS));
    let again = is_match(pattern, text, &mut StepBudget::new(STEPS));
    assert!(
        first.is_err() || again.is_err() || first == again,
        "{pattern:?} in {text:?}"
    );
    true
}
