//! The difference of two values, as errors show it whose reason is a forbidden change.
//!
//! kube-apiserver takes the way of Python's difflib: the longest common run of lines, and the same again before and
//! behind it. Diffs that are as short as possible, which libraries make, are others where lines come more than once,
//! and the `null` of an empty field does.

use std::collections::HashMap;
use std::fmt::Write;
use std::mem;
use std::ops::Range;

use serde_json::Value;

use super::internal_form::Shape;

/// Lines of a value that are compared, since the time for it can grow with their square.
const LINES_MAX: usize = 4_000;
/// Unchanged lines before and after each change.
const CONTEXT: usize = 3;
/// Pairs of lines that are compared before the difference is given up.
const PAIRS_MAX: usize = 2_000_000;
/// From so many lines on a run of common lines begins with one that comes in at most a hundredth of them.
const LINES_OF_RARE: usize = 200;

/// Returns the unified diff of two values in the form of their internal type; nothing if they are too long. Follows
/// `Diff` of apimachinery's util/diff.
pub(crate) fn difference(shape: Shape, old: &Value, new: &Value) -> String {
    let (Some(old), Some(new)) = (shape.write_indented(old), shape.write_indented(new)) else {
        return String::new();
    };
    let [old, new] = [&old, &new].map(|text| text.lines().collect::<Vec<_>>());
    if old.len() > LINES_MAX || new.len() > LINES_MAX {
        return String::new();
    }
    let lines = Lines::new(old, new);
    let mut diff = String::new();
    for hunk in hunks(lines.parts().unwrap_or_default()) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let before = range(first.old.start..last.old.end);
        let after = range(first.new.start..last.new.end);
        // Writing to a string does not fail.
        let _ = writeln!(diff, "@@ -{before} +{after} @@");
        for part in hunk {
            let (removed, added) = if part.is_same {
                (' ', 0..0)
            } else {
                ('-', part.new)
            };
            let removed = lines.old[part.old].iter().map(|line| (removed, line));
            for (mark, line) in removed.chain(lines.new[added].iter().map(|line| ('+', line))) {
                let _ = writeln!(diff, "{mark}{line}");
            }
        }
    }
    diff
}

/// Lines of both values that are the same, or have come in place of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LineRun {
    old: Range<usize>,
    new: Range<usize>,
    is_same: bool,
}

/// Both values, and where the lines of the new one are.
struct Lines<'t> {
    old: Vec<&'t str>,
    new: Vec<&'t str>,
    /// The lines of the new value that a common run can begin with.
    index: HashMap<&'t str, Vec<usize>>,
}

impl<'t> Lines<'t> {
    fn new(old: Vec<&'t str>, new: Vec<&'t str>) -> Self {
        let mut index: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, line) in new.iter().enumerate() {
            index.entry(line).or_default().push(at);
        }
        if new.len() >= LINES_OF_RARE {
            index.retain(|_, places| places.len() <= new.len() / 100 + 1);
        }
        Self { old, new, index }
    }

    /// Returns both values in parts, in their order; `None` if that takes too many comparisons.
    fn parts(&self) -> Option<Vec<LineRun>> {
        let mut runs = Vec::new();
        let mut room = PAIRS_MAX;
        let mut left = vec![(0..self.old.len(), 0..self.new.len())];
        while let Some((old, new)) = left.pop() {
            let run = self.longest_run(old.clone(), new.clone(), &mut room)?;
            if !run.old.is_empty() {
                left.push((old.start..run.old.start, new.start..run.new.start));
                left.push((run.old.end..old.end, run.new.end..new.end));
                runs.push(run);
            }
        }
        runs.sort_by_key(|run| run.old.start);
        let end = (self.old.len(), self.new.len());
        runs.push(LineRun {
            old: end.0..end.0,
            new: end.1..end.1,
            is_same: true,
        });
        let mut parts: Vec<LineRun> = Vec::new();
        let mut at = (0, 0);
        for run in runs {
            let between = LineRun {
                old: at.0..run.old.start,
                new: at.1..run.new.start,
                is_same: false,
            };
            at = (run.old.end, run.new.end);
            match parts.last_mut() {
                Some(last) if between.old.is_empty() && between.new.is_empty() && last.is_same => {
                    last.old.end = run.old.end;
                    last.new.end = run.new.end;
                }
                _ => {
                    let both = [between, run].into_iter();
                    parts.extend(both.filter(|it| !it.old.is_empty() || !it.new.is_empty()));
                }
            }
        }
        Some(parts)
    }

    /// Returns the longest run of common lines in two ranges, the first of several; an empty one if there is none.
    /// `None` if there is no room for so many comparisons.
    fn longest_run(
        &self,
        old: Range<usize>,
        new: Range<usize>,
        room: &mut usize,
    ) -> Option<LineRun> {
        let (mut best_old, mut best_new, mut length) = (old.start, new.start, 0);
        // The lengths of the runs that end with the line before, by their end in the new value.
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for at in old.clone() {
            let mut longer = HashMap::new();
            let places = self.index.get(self.old[at]).map_or(&[][..], Vec::as_slice);
            let from = places.partition_point(|place| *place < new.start);
            let to = places.partition_point(|place| *place < new.end);
            *room = room.checked_sub(1 + to - from)?;
            for &place in &places[from..to] {
                let before = place.checked_sub(1).and_then(|it| lengths.get(&it));
                let run = before.unwrap_or(&0) + 1;
                longer.insert(place, run);
                if run > length {
                    (best_old, best_new, length) = (at + 1 - run, place + 1 - run, run);
                }
            }
            lengths = longer;
        }
        // Lines that are too frequent to begin a run belong to one that they are beside.
        while best_old > old.start
            && best_new > new.start
            && self.old[best_old - 1] == self.new[best_new - 1]
        {
            (best_old, best_new, length) = (best_old - 1, best_new - 1, length + 1);
        }
        while best_old + length < old.end
            && best_new + length < new.end
            && self.old[best_old + length] == self.new[best_new + length]
        {
            length += 1;
        }
        Some(LineRun {
            old: best_old..best_old + length,
            new: best_new..best_new + length,
            is_same: true,
        })
    }
}

/// Brings changes together that have few unchanged lines between them, and leaves all other unchanged lines out.
fn hunks(parts: Vec<LineRun>) -> Vec<Vec<LineRun>> {
    let mut hunks = Vec::new();
    let mut hunk: Vec<LineRun> = Vec::new();
    let count = parts.len();
    for (number, part) in parts.into_iter().enumerate() {
        let length = part.old.len();
        let (is_first, is_last) = (number == 0, number + 1 == count);
        if !part.is_same || (!is_first && !is_last && length <= 2 * CONTEXT) {
            hunk.push(part);
            continue;
        }
        let context = length.min(CONTEXT);
        if !is_first {
            hunk.push(LineRun {
                old: part.old.start..part.old.start + context,
                new: part.new.start..part.new.start + context,
                is_same: true,
            });
            hunks.push(mem::take(&mut hunk));
        }
        if !is_last {
            hunk.push(LineRun {
                old: part.old.end - context..part.old.end,
                new: part.new.end - context..part.new.end,
                is_same: true,
            });
        }
    }
    if hunk.iter().any(|part| !part.is_same) {
        hunks.push(hunk);
    }
    hunks
}

/// Writes a range of lines: the first, counted from one, and how many there are.
fn range(lines: Range<usize>) -> String {
    match lines.len() {
        1 => (lines.start + 1).to_string(),
        0 => format!("{},0", lines.start),
        length => format!("{},{length}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn diff(api_version: &str, kind: &str, path: &str, old: &Value, new: &Value) -> String {
        let object = json!({"apiVersion": api_version, "kind": kind});
        let shape = Shape::of(&object)
            .and_then(|it| it.at(path))
            .expect("a shape");
        difference(shape, old, new)
    }

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        let [old, new] = ["a", "b"].map(|name| json!({"kind": "Role", "name": name}));
        let found = diff(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            "roleRef",
            &old,
            &new,
        );
        let expected = "@@ -1,5 +1,5 @@\n {\n  \"APIGroup\": \"\",\n  \"Kind\": \"Role\",\n- \"Name\": \"a\"\n+ \"Name\": \"b\"\n }\n";
        assert_eq!(found, expected);
        assert_eq!(diff("v1", "Pod", "spec", &json!({}), &json!({})), "");
    }

    #[test]
    fn a_difference_that_would_take_too_long_is_not_shown() {
        let args = |step: usize| -> Vec<String> {
            let words = (0..3_000).map(|at| format!("t{}", at * step % 97));
            words.collect()
        };
        let [old, new] = [1, 5].map(|step| json!({"containers": [{"args": args(step)}]}));
        assert_eq!(diff("v1", "Pod", "spec", &old, &new), "");
    }

    #[test]
    fn changes_that_lie_apart_are_hunks_of_their_own() {
        let old = json!({"restartPolicy": "Always", "hostname": "a"});
        let new = json!({"restartPolicy": "Always", "hostname": "b", "priority": 1});
        let found = diff("v1", "Pod", "spec", &old, &new);
        assert!(found.contains("+ \"Priority\": 1,\n"), "{found}");
        assert!(
            found.contains("- \"Hostname\": \"a\",\n+ \"Hostname\": \"b\",\n"),
            "{found}"
        );
        let hunks = found.lines().filter(|line| line.starts_with("@@"));
        assert_eq!(hunks.count(), 2, "{found}");
    }
}
