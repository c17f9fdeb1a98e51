//! Bodies in YAML. What is read is a tree of JSON and takes no more memory than is set aside for a body. Of JSON, which is
//! YAML, both parsers read the same.

use ringwatch_apimachinery::work::{Work, memory_for};
use ringwatch_apiserver::endpoints::parsers;

use crate::json;
use crate::memory::within;

const MEDIA_TYPE: &str = "application/yaml";

/// Bytes beside those for the body: the aliases of a small document may stand for 20,000 nodes.
const ALIASES_BYTES: usize = 4 << 20;

pub(crate) fn run(bytes: &[u8]) -> bool {
    let memory = usize::try_from(memory_for(Work::Body, bytes)).unwrap();
    let read = within(memory + ALIASES_BYTES, "a document", || {
        parsers::document(MEDIA_TYPE, bytes)
    });
    let Ok(document) = read else {
        return false;
    };
    let text = document.value.to_string();
    let again = parsers::document(json::MEDIA_TYPE, text.as_bytes());
    assert_eq!(again.map(|it| it.value).as_ref(), Ok(&document.value));
    if let Ok(json) = parsers::document(json::MEDIA_TYPE, bytes) {
        assert_eq!(document.value, json.value, "JSON is YAML");
    }
    true
}
