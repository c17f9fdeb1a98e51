//! Bodies in YAML. What is read is a tree of JSON and takes no more memory than is set aside for a body, but for its
//! aliases. Of JSON, which is YAML, both parsers read the same but for the
//! form of numbers.

use ringwatch_endpoints::parsers;
use ringwatch_offload::{Work, memory_for};

use crate::json;
use crate::memory::within;

const MEDIA_TYPE: &str = "application/yaml";

/// Bytes beside those for the body: the aliases of a small document may stand for 20,000 nodes.
const ALIASES_BYTES: usize = 4 << 20;

pub(crate) fn run(bytes: &[u8]) -> bool {
    let memory = usize::try_from(memory_for(Work::Body, bytes)).unwrap();
    let read = within(memory + ALIASES_BYTES, "a document", || {
        parsers::document(MEDIA_TYPE, bytes, ("", ""))
    });
    let Ok(document) = read else {
        return false;
    };
    let text = document.value.to_string();
    let again = json::document(text.as_bytes());
    assert_eq!(again.map(|it| it.value).as_ref(), Ok(&document.value));
    if let Ok(json) = json::document(bytes) {
        // A float without a fraction becomes an integer on its way through Go's YAML library.
        let is_same = json::is_same(&document.value, &json.value, |one, other| {
            one.as_f64() == other.as_f64()
        });
        assert!(is_same, "JSON is YAML: {}, {}", document.value, json.value);
    }
    true
}
