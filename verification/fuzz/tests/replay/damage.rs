//! Bytes with some random faults, of the kinds that transport, disks, hands and attackers make.

use std::ops::Range;

use rand::Rng as _;
use rand::rngs::StdRng;

/// The most faults in one case.
const FAULTS_MAX: usize = 4;

/// The exclusive bound of the length in bytes of a run that is moved, repeated or taken away.
const RUN_BYTES_MAX: usize = 64;

/// The exclusive bound of the number of times that a run is repeated.
const REPEATS_MAX: usize = 2_000;

/// Bytes that mean something to lengths, tags or JSON.
const TELLING: &[u8] = b"\x00\x01\x02\x7f\x80\xff\x0a\x12\"\\{}[],:0<";

/// Returns the bytes with faults; some of them come from another object.
pub(crate) fn damaged(bytes: &[u8], other: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..=FAULTS_MAX) {
        if bytes.is_empty() {
            break;
        }
        let at = random.random_range(0..bytes.len());
        let run = run(bytes.len(), random);
        match random.random_range(0..10) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => bytes[at] = TELLING[random.random_range(0..TELLING.len())],
            3 => bytes[at] = bytes[at].wrapping_add(1),
            4 => bytes[at] = bytes[at].wrapping_sub(1),
            5 if random.random_bool(0.2) => bytes.truncate(at),
            6 => drop(bytes.drain(run)),
            7 => insert(&mut bytes, at, &other[self::run(other.len(), random)]),
            8 => {
                let moved = bytes[run].to_vec();
                insert(&mut bytes, at, &moved);
            }
            // A short run over and over, which may be a field of few bytes.
            9 if random.random_bool(0.3) => {
                let end = run.end.min(run.start + random.random_range(1..8));
                let many = bytes[run.start..end].repeat(random.random_range(1..REPEATS_MAX));
                insert(&mut bytes, at, &many);
            }
            _ => bytes[at] = b' ',
        }
    }
    bytes
}

fn insert(bytes: &mut Vec<u8>, at: usize, run: &[u8]) {
    bytes.splice(at..at, run.iter().copied());
}

/// Returns a short run among so many bytes.
fn run(length: usize, random: &mut StdRng) -> Range<usize> {
    if length == 0 {
        return 0..0;
    }
    let start = random.random_range(0..length);
    let end = length.min(start + random.random_range(1..RUN_BYTES_MAX));
    start..end
}
