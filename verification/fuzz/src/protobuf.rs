//! Objects in protobuf, as bodies and as a store has them. What is read can be written as JSON and as protobuf, is then
//! read as the same, and takes no more than 16 times the memory.

use ringwatch::codec;
use ringwatch::meta::FieldSchema;
use ringwatch::storage::Versioner;
use ringwatch_endpoints::parsers;
use ringwatch_offload::{Work, memory_for};
use serde_json::Value;

use crate::memory::within;

/// The version and the kind of an object that does not tell them.
const DEFAULT: (&str, &str) = ("v1", "Pod");

/// The most memory that an input may take in the codec, as a multiple of the input's size.
const FACTOR: usize = 16;

pub(crate) fn run(bytes: &[u8]) -> bool {
    let budget = FACTOR * bytes.len();
    let json = within(budget, "to JSON", || codec::to_json(bytes, DEFAULT));
    let versioner = Versioner::new(FieldSchema::default());
    let stored = within(budget, "from a store", || {
        versioner.update_object(bytes.to_vec().into(), 7)
    });
    if let Ok(object) = stored {
        within(budget, "an object to JSON", || codec::json(&object)).unwrap();
    }
    let memory = usize::try_from(memory_for(Work::ProtobufBody, bytes)).unwrap();
    let body = within(memory, "a body", || {
        parsers::document("application/vnd.kubernetes.protobuf", bytes, DEFAULT)
    });
    let Ok(json) = json else {
        return false;
    };
    let value: Value = serde_json::from_slice(&json).expect("what is written is JSON");
    if let Ok(body) = body {
        assert_eq!(body.value, value, "a body is read as the same object");
    }
    let kind = codec::kind(
        value["apiVersion"].as_str().unwrap_or_default(),
        value["kind"].as_str().unwrap_or_default(),
    );
    let kind = kind.expect("the kind that was read");
    // What Go writes for some odd fields, such as null for an empty time, it does not read as the same. From then on
    // nothing changes any more.
    let budget = FACTOR * json.len();
    let written = within(budget, "to protobuf", || codec::encode(kind, &value));
    let settled = codec::decode(&written, ("", ""));
    let again = settled.as_ref().map(|it| codec::encode(kind, it));
    assert_eq!(
        again.map(|it| codec::decode(&it, ("", ""))),
        Ok(settled.clone()),
        "what is written is read as the same"
    );
    let budget = FACTOR * (json.len() + bytes.len());
    let over = within(budget, "over the old one", || {
        codec::encode_over(kind, &value, bytes)
    });
    assert_eq!(codec::decode(&over, ("", "")), settled);
    true
}
