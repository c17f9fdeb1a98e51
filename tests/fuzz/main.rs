//! Objects that were damaged at random: whatever comes, nothing panics, and nothing takes more memory
//! than 16 times what came.
//!
//! Made objects are damaged, and Kubernetes' own where they are at hand. `PROPTEST_CASES` is the number of
//! cases, `PROPTEST_RNG_SEED` the first one's seed. One test alone is in this binary: it counts the memory of
//! the whole process.
#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test, as it should"
)]

mod damage;

use std::{env, fs};

use peak_alloc::PeakAlloc;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use ringwatch::codec;
use ringwatch::meta::FieldSchema;
use ringwatch::storage::Versioner;
use ringwatch_testing::{made, recorded};
use serde_json::Value;

use self::damage::damaged;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// How many times its size an input may take.
const INPUT_MAX: usize = 16;

/// Bytes that any input may take.
const BYTES_MIN: usize = 16 * 1024;

/// How many cases are tried if nobody says it.
const CASES: u64 = 4_000;

/// The seed of the first case unless `PROPTEST_RNG_SEED` names one. Each further case has the next number.
const FIRST_SEED: u64 = 1;

/// Does something with an input of this size, and returns what it took if that was too much.
fn measured<T>(what: &str, input_bytes: usize, act: impl FnOnce() -> T) -> T {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let done = act();
    let taken = MEMORY.peak_usage().saturating_sub(before);
    let allowed = INPUT_MAX * input_bytes + BYTES_MIN;
    assert!(
        taken <= allowed,
        "{what}: {taken} bytes for an input of {input_bytes}"
    );
    done
}

#[test]
fn damaged_objects_neither_panic_nor_swell() {
    let cases = number("PROPTEST_CASES").unwrap_or(CASES);
    let first = number("PROPTEST_RNG_SEED").unwrap_or(FIRST_SEED);
    let objects = objects();
    let versioner = Versioner::new(FieldSchema::default());
    let (mut read, mut written) = (0, 0);
    for seed in (0..cases).map(|number| first.wrapping_add(number)) {
        let mut random = StdRng::seed_from_u64(seed);
        let object = &objects[random.random_range(0..objects.len())];
        let other = &objects[random.random_range(0..objects.len())];
        let case = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut random = random.clone();
            let bytes = damaged(object, other, &mut random);
            let readable = from_protobuf(&versioner, &bytes, object);
            let json = codec::to_json(object, ("", "")).unwrap_or_default();
            let json = damaged(&json, &bytes, &mut random);
            (readable, from_json(&json))
        }));
        let Ok((readable, writable)) = case else {
            panic!("a case failed, see above: PROPTEST_RNG_SEED={seed} PROPTEST_CASES=1");
        };
        read += u64::from(readable);
        written += u64::from(writable);
    }
    println!("{cases} cases: {read} were still protobuf, {written} still JSON");
    // Damage that nothing survives would try nothing.
    assert!(read * 20 > cases, "{read} of {cases} could be read");
    assert!(
        written * 50 > cases,
        "{written} of {cases} could be written"
    );
}

/// Returns a number that the environment names.
fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// Reads what may be an object in protobuf, and writes it over the one that it was made of.
fn from_protobuf(versioner: &Versioner, bytes: &[u8], old: &[u8]) -> bool {
    let size = bytes.len();
    let json = measured("to JSON", size, || codec::to_json(bytes, ("v1", "Pod")));
    let stored = measured("from a store", size, || versioner.update_object(bytes, 7));
    if let Ok(object) = stored {
        measured("an object to JSON", size, || codec::json(&object)).unwrap();
    }
    let Ok(json) = json else {
        return false;
    };
    let value: Value = serde_json::from_slice(&json).expect("what is written is JSON");
    let kind = codec::kind(
        value["apiVersion"].as_str().unwrap_or_default(),
        value["kind"].as_str().unwrap_or_default(),
    );
    let kind = kind.expect("the kind that was read");
    // What Go writes for some odd fields, such as null for an empty time, it does not read as the
    // same. From then on nothing changes any more.
    let written = measured("to protobuf", json.len(), || codec::encode(kind, &value));
    let settled = codec::decode(&written, ("", ""));
    let again = settled.as_ref().map(|it| codec::encode(kind, it));
    assert_eq!(
        again.map(|it| codec::decode(&it, ("", ""))),
        Ok(settled.clone()),
        "what is written is read as the same"
    );
    let both = json.len() + old.len();
    let over = measured("over another", both, || {
        codec::encode_over(kind, &value, old)
    });
    assert_eq!(codec::decode(&over, ("", "")), settled);
    true
}

/// Reads what may be JSON of an object, and writes it as protobuf.
fn from_json(json: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(json) else {
        return false;
    };
    let written = measured("from JSON", json.len(), || codec::encode_value(&value));
    let Some(written) = written else {
        return false;
    };
    // Some of what JSON can say has no place in protobuf, but the bytes are whole.
    let _ = codec::decode(&written, ("", ""));
    true
}

/// Returns an object within another, which is in an envelope too.
fn event(object: &[u8]) -> Vec<u8> {
    const TYPE: &[u8] = b"\x0a\x10\x0a\x02v1\x12\x0aWatchEvent";
    const LENGTH_BYTES: usize = 4;
    let event = &codec::event_frame("ADDED", object)[LENGTH_BYTES..];
    let mut bytes = [&codec::MAGIC[..], TYPE, &[0x12]].concat();
    prost::encoding::encode_varint(event.len() as u64, &mut bytes);
    [bytes, event.to_vec()].concat()
}

/// Returns the objects that are damaged.
fn objects() -> Vec<Vec<u8>> {
    let mut objects: Vec<Vec<u8>> = made::objects()
        .iter()
        .map(|it| codec::encode_value(it).unwrap())
        .collect();
    objects.push(event(&objects[0]));
    let folder = recorded::testdata("damage to Kubernetes' objects");
    for entry in folder.into_iter().flat_map(|it| fs::read_dir(it).unwrap()) {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "pb") {
            objects.push(fs::read(path).unwrap());
        }
    }
    objects
}
