//! Continue tokens. A list never goes on outside of its prefix, and a token that is written is read as the same.

use ringwatch::storage::ContinueToken;

use crate::memory::within;

/// Bytes of memory for a byte of a token: that of JSON without maps in maps.
const FACTOR: usize = 1_000;

pub(crate) fn run(bytes: &[u8]) -> bool {
    const PREFIX: &str = "/registry/pods/default/";
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let read = within(FACTOR * text.len(), "a token", || {
        ContinueToken::decode(text, PREFIX)
    });
    let Ok(token) = read else {
        return false;
    };
    assert!(token.start.starts_with(PREFIX), "{token:?}");
    let steps = token.start.split('/');
    assert!(
        steps.clone().all(|step| step != ".." && step != "."),
        "{token:?}"
    );
    let written = token.encode(PREFIX).expect("what was read can be written");
    assert_eq!(ContinueToken::decode(&written, PREFIX), Ok(token));
    true
}
