//! The tests of a layer, each run in a process of its own: once without a mutant, which tells which mutants it reaches,
//! and then with mutants that it reaches.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use std::{fs, io};

use ringwatch_mutate::{Ended, Group};
use tokio::process::Command;

use crate::MutantsError;
use crate::copy::Copy;
use crate::lanes;
use crate::layer::Program;

/// The most time that a test may take without a mutant.
const RECORDED_TIME_MAX: Duration = Duration::from_secs(1_200);
/// The time that a test may take with a mutant, and the multiple of its time without one that it may take if that is
/// longer.
const MUTANT_TIME_MIN: Duration = Duration::from_secs(15);
const MUTANT_TIME_FACTOR: u32 = 10;
/// The memory of its own that a test may take and the size of a file that it may write, in KiB: a mutant may fill both.
/// Files that are mapped do not count; etcd maps more than it uses.
const MEMORY_KIB_MAX: u32 = 4 << 20;
const FILE_KIB_MAX: u32 = 1 << 20;

/// A test, and what is known of it from its run without a mutant.
#[derive(Debug)]
pub(crate) struct Test {
    pub(crate) name: String,
    program: Program,
    /// The numbers of the mutants that it reaches.
    pub(crate) reached: BTreeSet<u32>,
    pub(crate) time: Duration,
}

/// Runs all tests of some programs without a mutant, and returns those that pass, the fastest first, and the names of
/// the others.
#[allow(clippy::disallowed_methods, reason = "the time that a run takes")]
pub(crate) async fn record(
    programs: &[Program],
    copy: &Copy,
) -> Result<(Vec<Test>, Vec<String>), MutantsError> {
    let mut names = Vec::new();
    for program in programs {
        let mut command = Command::new(&program.path);
        command.args(["--list", "--format", "terse"]);
        let output = command.current_dir(&program.folder).output().await?;
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        let listed = listed
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        names.extend(listed.map(|name| (name.to_owned(), program)));
    }
    let (tests, failed) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    lanes::work_off(
        &names,
        async |lane, (name, program): &(String, &Program)| {
            let folder = lane_folder(copy, lane)?;
            let file = folder.join("reached");
            let begun = Instant::now();
            let reached = ("MUTANTS_REACHED", file.to_string_lossy().into_owned());
            let ended = run(name, program, Some(reached), &folder, RECORDED_TIME_MAX).await?;
            let time = begun.elapsed();
            if ended != Ended::Passed {
                failed.borrow_mut().push(name.clone());
                return Ok(());
            }
            let reached = match fs::read_to_string(&file) {
                Ok(text) => text.lines().filter_map(|it| it.parse().ok()).collect(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
                Err(error) => return Err(error.into()),
            };
            let test = Test {
                name: name.clone(),
                program: (*program).clone(),
                reached,
                time,
            };
            tests.borrow_mut().push(test);
            Ok(())
        },
    )
    .await?;
    let mut tests = tests.into_inner();
    tests.sort_by_key(|it| it.time);
    Ok((tests, failed.into_inner()))
}

impl Test {
    /// Returns how long it may take with a mutant.
    fn limit(&self) -> Duration {
        MUTANT_TIME_MIN.max(self.time * MUTANT_TIME_FACTOR)
    }

    /// Runs the test with a mutant on, or with none that has a switch.
    pub(crate) async fn run(
        &self,
        mutant: Option<u32>,
        copy: &Copy,
        lane: usize,
    ) -> Result<Ended, MutantsError> {
        let on = mutant.map(|number| ("MUTANT", number.to_string()));
        let folder = lane_folder(copy, lane)?;
        Ok(run(&self.name, &self.program, on, &folder, self.limit()).await?)
    }

    /// Returns true if the test passes without a mutant, in half of the time: if it does not, a failure with one says
    /// nothing.
    pub(crate) async fn is_reliable(&self, copy: &Copy, lane: usize) -> Result<bool, MutantsError> {
        let folder = lane_folder(copy, lane)?;
        let limit = self.limit() / 2;
        let ended = run(&self.name, &self.program, None, &folder, limit).await?;
        Ok(ended == Ended::Passed)
    }
}

/// Empties the folder of a lane's temporary files, where a test that was killed may have left a mounted file system.
fn lane_folder(copy: &Copy, lane: usize) -> io::Result<PathBuf> {
    let folder = copy.temporary.join(lane.to_string());
    if folder.exists() {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let points = mounts.lines().filter_map(|it| it.split(' ').nth(1));
        for point in points.filter(|it| Path::new(it).starts_with(&folder)) {
            std::process::Command::new("umount").arg(point).status()?;
        }
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

async fn run(
    name: &str,
    program: &Program,
    variable: Option<(&str, String)>,
    temporary: &Path,
    limit: Duration,
) -> io::Result<Ended> {
    let limits = format!("ulimit -d {MEMORY_KIB_MAX} -f {FILE_KIB_MAX} && exec \"$@\"");
    let mut command = Command::new("bash");
    command
        .args(["-c", &limits, "bash"])
        .arg(&program.path)
        .args(["--exact", name, "--test-threads=1", "--quiet"])
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("RUST_BACKTRACE", "0")
        .env("TMPDIR", temporary)
        .envs(variable)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Group::start(&mut command)?.end_within(limit).await
}
