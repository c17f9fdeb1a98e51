//! The budgets, in a file beside this one: a name and a number of instructions on each line.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Counts are kept to so many instructions, so that a renewal without a change changes little.
const ROUND: u64 = 10;

/// How many instructions each path may take.
pub struct Budgets(BTreeMap<String, u64>);

impl Budgets {
    /// Reads the budgets of the file.
    pub fn read() -> Self {
        let text = fs::read_to_string(file()).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let budget = |line: &str| {
            let (name, budget) = line.split_once(' ').unwrap();
            (name.to_owned(), budget.trim().parse().unwrap())
        };
        Self(lines.map(budget).collect())
    }

    /// Creates budgets with room above these counts.
    pub fn of<'a>(counts: impl Iterator<Item = (&'a str, u64)>, room: f64) -> Self {
        let budget = |(name, counted): (&str, u64)| {
            let budget = (counted as f64 * room) as u64;
            println!("{name:24} {counted:>14}");
            (name.to_owned(), budget.div_ceil(ROUND) * ROUND)
        };
        Self(counts.map(budget).collect())
    }

    /// Returns the budget of a path.
    pub fn of_path(&self, name: &str) -> u64 {
        let budget = self.0.get(name);
        *budget.unwrap_or_else(|| panic!("{name} has no budget; --renew makes one"))
    }

    /// Writes the file.
    pub fn save(&self) {
        let head = "# Instructions that each path may take. `cargo bench --bench instructions -- --renew` writes this.\n";
        let lines = self
            .0
            .iter()
            .map(|(name, budget)| format!("{name} {budget}\n"));
        fs::write(file(), head.to_owned() + &lines.collect::<String>()).unwrap();
    }
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/instructions/budgets.txt")
}
