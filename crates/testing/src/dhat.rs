//! Runs this program again under DHAT of valgrind, which counts what is allocated inside of one function.
//!
//! An allocator of this process that counts would need `unsafe`, or one more crate, and its own instructions would be
//! counted by callgrind.

use std::collections::HashSet;

use serde_json::Value;

use super::callgrind::{COUNTED, run};

/// The largest number of frames that valgrind keeps of a stack. Those of a request must be fewer.
const FRAMES_MAX: usize = 500;

/// The number of allocations, and the bytes that were asked for. An allocation that is resized counts as a new one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Allocated {
    pub allocations: u64,
    pub bytes: u64,
}

/// Returns what a path allocates inside of [`super::callgrind::collect_instructions`].
pub fn count(name: &str) -> Allocated {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dhat");
    let frames = format!("--num-callers={FRAMES_MAX}");
    run("dhat", name, &[frames], &file);
    allocated(&serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap())
}

/// Returns what the stacks with the counted function have allocated, by a file of DHAT's.
fn allocated(file: &Value) -> Allocated {
    let frames = file["ftbl"].as_array().unwrap().iter();
    let counted = COUNTED.trim_matches('*');
    let is_counted = |frame: &Value| frame.as_str().is_some_and(|it| it.contains(counted));
    let counted: HashSet<usize> = frames
        .enumerate()
        .filter(|(_, frame)| is_counted(frame))
        .map(|(number, _)| number)
        .collect();
    let mut all = Allocated {
        allocations: 0,
        bytes: 0,
    };
    for point in file["pps"].as_array().unwrap() {
        let stack = point["fs"].as_array().unwrap();
        assert!(
            stack.len() < FRAMES_MAX,
            "a stack is longer than valgrind keeps, so nobody knows who allocated"
        );
        let mut numbers = stack.iter().filter_map(Value::as_u64);
        if numbers.any(|number| counted.contains(&(number as usize))) {
            all.allocations += point["tbk"].as_u64().unwrap();
            all.bytes += point["tb"].as_u64().unwrap();
        }
    }
    assert_ne!(all.allocations, 0, "nothing was counted");
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_stacks_with_the_counted_function_count() {
        let file = json!({
            "pps": [
                {"tb": 100, "tbk": 2, "fs": [1, 2]},
                {"tb": 30, "tbk": 1, "fs": [1, 3, 2]},
                {"tb": 7, "tbk": 5, "fs": [1, 3]},
            ],
            "ftbl": ["[root]", "0x1: malloc", "0x2: ringwatch_testing::callgrind::collect_instructions", "0x3: main"],
        });
        let expected = Allocated {
            allocations: 3,
            bytes: 130,
        };
        assert_eq!(allocated(&file), expected);
    }

    #[test]
    #[should_panic(expected = "longer than valgrind keeps")]
    fn a_stack_that_may_be_cut_off_is_no_count() {
        let stack = vec![1; FRAMES_MAX];
        allocated(
            &json!({"pps": [{"tb": 1, "tbk": 1, "fs": stack}], "ftbl": ["[root]", "0x1: malloc"]}),
        );
    }
}
