//! Budgets of instructions, and of allocations where these are counted, in the file `benches/instructions/budgets.txt`
//! of a package: a name and its numbers on each line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::dhat::Allocated;

/// The factor by which a budget is larger than the count that it was made of.
const ROOM: f64 = 1.07;

/// A path that needs less than this part of its budget has become so cheap that the budget guards
/// nothing.
const LOOSE: f64 = 0.85;

/// Counts are kept to so many, so that a renewal without a change changes little.
const ROUND: u64 = 10;

/// The names of the numbers of a line, in their order. A package without counts of allocations has the first alone.
const COSTS: [&str; 3] = ["instructions", "allocations", "bytes"];

/// A path, and what one run of it has taken.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub name: &'static str,
    pub instructions: u64,
    /// The allocations, where they are counted.
    pub allocated: Option<Allocated>,
}

impl Counted {
    /// Returns the numbers of its line.
    fn costs(&self) -> Vec<u64> {
        let allocated = self.allocated.map(|it| [it.allocations, it.bytes]);
        let allocated = allocated.into_iter().flatten();
        [self.instructions].into_iter().chain(allocated).collect()
    }
}

/// Prints counts of a build that has no budgets.
pub fn show(counts: impl Iterator<Item = Counted>) {
    println!("no budgets for this build; CONTRIBUTING.md names the build that has them");
    counts.for_each(|counted| print(&counted));
}

/// Writes the budgets of the package in a folder, with room above these counts.
pub fn renew(package: &str, counts: impl Iterator<Item = Counted>) {
    let counts = counts.inspect(print);
    Budgets::new(counts, ROOM).save(&file(package));
}

/// Says which of the counted paths are over the budgets of the package in a folder, and fails if one is.
pub fn compare(package: &str, counts: impl Iterator<Item = Counted>) -> ExitCode {
    let budgets = Budgets::read(&file(package));
    let mut over = Vec::new();
    println!("{:24} {:12} {:>14} {:>14}", "path", "", "counted", "budget");
    for counted in counts {
        for (what, line) in budgets.judge(&counted) {
            println!("{line}");
            over.extend(what);
        }
    }
    if over.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!(
        "over their budgets: {}; CONTRIBUTING.md says what to do",
        over.join(", ")
    );
    ExitCode::FAILURE
}

fn print(counted: &Counted) {
    for (cost, count) in COSTS.iter().zip(counted.costs()) {
        println!("{:24} {cost:12} {count:>14}", counted.name);
    }
}

/// The most instructions that each path may take, and the most allocations and bytes of these if they are counted.
#[derive(Debug, Eq, PartialEq)]
struct Budgets(BTreeMap<String, Vec<u64>>);

impl Budgets {
    /// Reads a file of budgets.
    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let budget = |line: &str| {
            let (name, budgets) = line.split_once(' ').unwrap();
            let budgets = budgets.split_whitespace().map(|it| it.parse().unwrap());
            (name.to_owned(), budgets.collect())
        };
        Self(lines.map(budget).collect())
    }

    /// Creates budgets with room above these counts.
    fn new(counts: impl Iterator<Item = Counted>, room: f64) -> Self {
        let budget = |count: u64| ((count as f64 * room) as u64).div_ceil(ROUND) * ROUND;
        let line = |counted: Counted| {
            let budgets = counted.costs().into_iter().map(budget);
            (counted.name.to_owned(), budgets.collect())
        };
        Self(counts.map(line).collect())
    }

    /// Returns a line for each cost of a path, with its name if it is over its budget.
    fn judge(&self, counted: &Counted) -> Vec<(Option<String>, String)> {
        let (name, counts) = (counted.name, counted.costs());
        let budgets = self.0.get(name);
        let budgets = budgets.filter(|budgets| budgets.len() == counts.len());
        let budgets = budgets.unwrap_or_else(|| panic!("{name} has no budget; --renew makes one"));
        let costs = COSTS.iter().zip(counts).zip(budgets);
        costs
            .map(|((cost, count), &budget)| {
                let part = count as f64 / budget as f64;
                let verdict = match part {
                    part if part > 1.0 => "OVER",
                    part if part < LOOSE => "loose: renew it",
                    _ => "",
                };
                let percent = part * 100.0;
                let line = format!(
                    "{name:24} {cost:12} {count:>14} {budget:>14} {percent:>5.1} % {verdict}"
                );
                ((part > 1.0).then(|| format!("{name} ({cost})")), line)
            })
            .collect()
    }

    /// Writes the file.
    fn save(&self, file: &Path) {
        let costs = self.0.values().map(Vec::len).max().unwrap_or(1);
        let costs = match &COSTS[..costs] {
            [one] => (*one).to_owned(),
            [before @ .., last] => format!("{} and {last}", before.join(", ")),
            [] => String::new(),
        };
        let mut text = format!(
            "# {} that each path may take. CONTRIBUTING.md says how this is written.\n",
            costs.replacen('i', "I", 1)
        );
        for (name, budgets) in &self.0 {
            let budgets: Vec<_> = budgets.iter().map(u64::to_string).collect();
            text += &format!("{name} {}\n", budgets.join(" "));
        }
        fs::write(file, text).unwrap();
    }
}

fn file(package: &str) -> PathBuf {
    Path::new(package).join("benches/instructions/budgets.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED: Counted = Counted {
        name: "get",
        instructions: 1_000,
        allocated: Some(Allocated {
            allocations: 100,
            bytes: 5_000,
        }),
    };

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("budgets.txt");
        let bare = Counted {
            allocated: None,
            ..COUNTED
        };
        for (counted, text) in [
            (
                COUNTED,
                "# Instructions, allocations and bytes that each path may take. CONTRIBUTING.md says how this is \
                 written.\nget 1070 110 5350\n",
            ),
            (
                bare,
                "# Instructions that each path may take. CONTRIBUTING.md says how this is written.\nget 1070\n",
            ),
        ] {
            let budgets = Budgets::new([counted].into_iter(), ROOM);
            budgets.save(&file);
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert_eq!(Budgets::read(&file), budgets);
        }
    }

    #[test]
    fn each_cost_has_a_budget_of_its_own() {
        let budgets = Budgets::new([COUNTED].into_iter(), ROOM);
        let over = |instructions, allocations, bytes| {
            let allocated = Some(Allocated { allocations, bytes });
            let judged = budgets.judge(&Counted {
                instructions,
                allocated,
                ..COUNTED
            });
            let over: Vec<_> = judged.into_iter().filter_map(|(over, _)| over).collect();
            over.join(", ")
        };
        assert_eq!(over(1_070, 110, 5_350), "");
        assert_eq!(over(1_071, 110, 5_350), "get (instructions)");
        assert_eq!(over(1_070, 111, 5_350), "get (allocations)");
        assert_eq!(over(1_070, 110, 5_351), "get (bytes)");
    }

    #[test]
    fn cheap_paths_are_loose() {
        let budgets = Budgets::new([COUNTED].into_iter(), ROOM);
        let allocated = COUNTED.allocated.map(|it| Allocated { bytes: 4_000, ..it });
        let judged = budgets.judge(&Counted {
            allocated,
            ..COUNTED
        });
        let loose = judged.iter().filter(|(_, line)| line.contains("loose"));
        assert_eq!(loose.count(), 1);
    }

    #[test]
    #[should_panic(expected = "get has no budget; --renew makes one")]
    fn a_line_without_allocations_is_no_budget_of_them() {
        Budgets([("get".to_owned(), vec![1_070])].into()).judge(&COUNTED);
    }
}
