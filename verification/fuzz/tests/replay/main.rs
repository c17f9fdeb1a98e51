//! Runs every target on its seeds, on the inputs with which it has failed before, and on these with random damage.
//!
//! `PROPTEST_CASES` is the number of damaged inputs of a target, `PROPTEST_RNG_SEED` the first one's seed. One test
//! alone is in this binary: memory is counted for the whole process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what fails here fails the test, as it should"
)]

mod damage;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{env, fs};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use ringwatch::codec;
use ringwatch_fuzz::{TARGETS, Target};
use ringwatch_testing::{made, recorded};

use self::damage::damaged;

/// The number of damaged inputs of each target that are tried if `PROPTEST_CASES` does not say it.
const CASES: u64 = 1_000;

/// The seed of the first case if `PROPTEST_RNG_SEED` does not say it. Each further case has the next number.
const FIRST_SEED: u64 = 1;

/// The number of damaged inputs among which one must still be accepted. Damage that nothing survives would try nothing.
const ACCEPTED_ONE_OF: u64 = 500;

#[test]
fn seeds_and_damaged_seeds() {
    let cases = number("PROPTEST_CASES").unwrap_or(CASES);
    let first = number("PROPTEST_RNG_SEED").unwrap_or(FIRST_SEED);
    for target in TARGETS {
        let mut inputs = files("seeds", target);
        assert!(!inputs.is_empty(), "there are no seeds of {}", target.name);
        inputs.extend(files("crashes", target));
        if target.name == "protobuf" {
            inputs.extend(objects());
        }
        let of_seeds = inputs
            .iter()
            .filter(|(name, input)| is_accepted(target, input, name));
        assert!(
            of_seeds.count() > 0,
            "no seed of {} is accepted",
            target.name
        );
        let accepted = accepted_damaged(target, &inputs, first, cases);
        // By chance other seeds may do so much damage that nothing is accepted.
        let is_counted = first == FIRST_SEED && cases >= ACCEPTED_ONE_OF;
        assert!(
            !is_counted || accepted * ACCEPTED_ONE_OF > cases,
            "{}: {accepted} of {cases} damaged inputs are accepted",
            target.name
        );
        println!(
            "{}: {} seeds, {accepted} of {cases} accepted",
            target.name,
            inputs.len()
        );
    }
}

/// Runs a target on damaged inputs, one for each seed, and returns how many it accepts.
fn accepted_damaged(target: &Target, inputs: &[(String, Vec<u8>)], first: u64, cases: u64) -> u64 {
    let seeds = (0..cases).map(|number| first.wrapping_add(number));
    let accepted = seeds.filter(|seed| {
        let mut random = StdRng::seed_from_u64(*seed);
        let mut pick = || &inputs[random.random_range(0..inputs.len())].1;
        let (input, other) = (pick(), pick());
        let input = damaged(input, other, &mut random);
        is_accepted(
            target,
            &input,
            &format!("PROPTEST_RNG_SEED={seed} PROPTEST_CASES=1"),
        )
    });
    accepted.count() as u64
}

/// Runs a target. If it fails, the message says on what.
fn is_accepted(target: &Target, input: &[u8], what: &str) -> bool {
    let ran = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    ran.unwrap_or_else(|_| panic!("{} failed, see above, on {what}", target.name))
}

/// Returns a number that the environment names.
fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// Returns the inputs of a folder for a target, in the order of their names.
fn files(folder: &str, target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(folder)
        .join(target.name);
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &Path| (path.display().to_string(), fs::read(path).unwrap());
    paths.iter().map(|path| read(path)).collect()
}

/// Returns objects in protobuf that no file has: large ones, an event, and Kubernetes' own where they are at hand.
fn objects() -> Vec<(String, Vec<u8>)> {
    let made = made::objects();
    let mut objects: Vec<Vec<u8>> = made
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
    let name = |place: usize| format!("object {place}");
    objects
        .into_iter()
        .enumerate()
        .map(|(place, it)| (name(place), it))
        .collect()
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
