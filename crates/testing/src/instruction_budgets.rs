//! Budgets of instructions, in the file `benches/instructions/budgets.txt` of a package: a name and a number on each
//! line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The factor by which a budget is larger than the count that it was made of.
const ROOM: f64 = 1.07;

/// A path that needs less than this part of its budget has become so cheap that the budget guards
/// nothing.
const LOOSE: f64 = 0.85;

/// Counts are kept to so many instructions, so that a renewal without a change changes little.
const ROUND: u64 = 10;

/// A path, and the number of instructions that one run of it has taken.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub name: &'static str,
    pub instructions: u64,
}

/// Prints counts of a build that has no budgets.
pub fn show(counts: impl Iterator<Item = Counted>) {
    println!("no budgets for this build; CONTRIBUTING.md names the build that has them");
    for Counted { name, instructions } in counts {
        println!("{name:24} {instructions:>14}");
    }
}

/// Writes the budgets of the package in a folder, with room above these counts.
pub fn renew(package: &str, counts: impl Iterator<Item = Counted>) {
    Budgets::new(counts, ROOM).save(&file(package));
}

/// Says which of the counted paths are over the budgets of the package in a folder, and fails if one is.
pub fn compare(package: &str, counts: impl Iterator<Item = Counted>) -> ExitCode {
    let budgets = Budgets::read(&file(package));
    let mut over = Vec::new();
    println!("{:24} {:>14} {:>14}", "path", "instructions", "budget");
    for Counted { name, instructions } in counts {
        let budget = budgets.of_path(name);
        let part = instructions as f64 / budget as f64;
        let verdict = match part {
            part if part > 1.0 => "OVER",
            part if part < LOOSE => "loose: renew it",
            _ => "",
        };
        println!(
            "{name:24} {instructions:>14} {budget:>14} {:>5.1} % {verdict}",
            part * 100.0
        );
        if part > 1.0 {
            over.push(name);
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

/// The most instructions that each path may take.
struct Budgets(BTreeMap<String, u64>);

impl Budgets {
    /// Reads a file of budgets.
    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let budget = |line: &str| {
            let (name, budget) = line.split_once(' ').unwrap();
            (name.to_owned(), budget.trim().parse().unwrap())
        };
        Self(lines.map(budget).collect())
    }

    /// Creates budgets with room above these counts.
    fn new(counts: impl Iterator<Item = Counted>, room: f64) -> Self {
        let budget = |Counted { name, instructions }| {
            let budget = (instructions as f64 * room) as u64;
            println!("{name:24} {instructions:>14}");
            (name.to_owned(), budget.div_ceil(ROUND) * ROUND)
        };
        Self(counts.map(budget).collect())
    }

    /// Returns the budget of a path.
    fn of_path(&self, name: &str) -> u64 {
        let budget = self.0.get(name);
        *budget.unwrap_or_else(|| panic!("{name} has no budget; --renew makes one"))
    }

    /// Writes the file.
    fn save(&self, file: &Path) {
        let head =
            "# Instructions that each path may take. CONTRIBUTING.md says how this is written.\n";
        let lines = self
            .0
            .iter()
            .map(|(name, budget)| format!("{name} {budget}\n"));
        fs::write(file, head.to_owned() + &lines.collect::<String>()).unwrap();
    }
}

fn file(package: &str) -> PathBuf {
    Path::new(package).join("benches/instructions/budgets.txt")
}
