//! Applies each mutation of a member's `mutations.toml` to a copy of what it checks and expects a
//! model to fail.
//!
//! Each copy is a workspace of its own under the target folder. First the models must pass there
//! unchanged. A mutation that does not compile, or whose place is not found, is an error: it would
//! prove nothing. The arguments are the member, what it includes, then `--` and how cargo tests it.

#![allow(
    clippy::disallowed_types,
    reason = "a tool shares what it likes between its threads"
)]

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::{env, fs, io, slice, thread};

/// The manifest of the copied workspace.
const MANIFEST: &str = "[workspace]\nresolver = \"3\"\nmembers = [\"MEMBER\"]\n[workspace.lints]\n\
    [profile.dev]\ndebug = false\n[profile.release.package.MEMBER]\ndebug-assertions = true\n";

/// The models and the sources that are mutated.
struct Subject {
    /// The member that holds the models.
    member: String,
    /// The files and folders that it includes.
    sources: Vec<String>,
    /// The arguments by which cargo runs them.
    test: Vec<String>,
}

/// One copy of what is checked. There is one for each core, since cargo compiles a small crate on one.
struct Lane<'a> {
    subject: &'a Subject,
    /// The checkout.
    root: &'a Path,
    /// The copy.
    copy: PathBuf,
}

/// An edit that must not go unnoticed.
#[derive(Default)]
struct Mutation {
    name: String,
    /// The prefix of the names of the models that should notice it, else of those of its file.
    model: Option<String>,
    file: String,
    from: String,
    to: String,
}

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(survivors) => {
            eprintln!("{survivors} mutations went unnoticed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<usize> {
    let subject = Subject::of(env::args().skip(1))
        .ok_or_else(|| io::Error::other("usage: mutate MEMBER SOURCE... -- CARGO COMMAND"))?;
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().map(Path::to_path_buf).unwrap_or_default();
    let mutations = root.join(&subject.member).join("mutations.toml");
    let mutations = parse(&fs::read_to_string(mutations)?)?;
    let lanes = thread::available_parallelism().map_or(1, NonZero::get);
    let lanes: io::Result<Vec<Lane<'_>>> = (0..lanes)
        .map(|number| Lane::new(&subject, &root, number))
        .collect();
    let lanes = lanes?;
    if !lanes[0].passes(None)? {
        return Err(io::Error::other("the models fail without any mutation"));
    }
    let todo = Mutex::new(mutations.iter());
    let survivors: io::Result<usize> = thread::scope(|scope| {
        let running: Vec<_> = lanes
            .iter()
            .map(|lane| scope.spawn(|| lane.work_off(&todo)))
            .collect();
        running
            .into_iter()
            .map(|lane| lane.join().expect("a lane that does not panic"))
            .sum()
    });
    let survivors = survivors?;
    println!(
        "{} of {} refused",
        mutations.len() - survivors,
        mutations.len()
    );
    Ok(survivors)
}

impl<'a> Lane<'a> {
    /// Makes the copy anew: what was left of an earlier one may be mutated.
    fn new(subject: &'a Subject, root: &'a Path, number: usize) -> io::Result<Self> {
        let copy = root.join("target/mutants").join(&subject.member);
        let copy = copy.join(number.to_string());
        subject.copy(root, &copy)?;
        Ok(Self {
            subject,
            root,
            copy,
        })
    }

    /// Tries mutations until none is left, and counts those that go unnoticed.
    fn work_off(&self, todo: &Mutex<slice::Iter<'_, Mutation>>) -> io::Result<usize> {
        let next = || todo.lock().expect("no lane panics").next();
        let mut survivors = 0;
        while let Some(mutation) = next() {
            if self.refuses(mutation)? {
                println!("refused    {}", mutation.name);
            } else {
                survivors += 1;
                println!("UNNOTICED  {}", mutation.name);
            }
        }
        Ok(survivors)
    }

    /// Returns true if a model fails with the mutation, which is undone afterwards.
    fn refuses(&self, mutation: &Mutation) -> io::Result<bool> {
        let path = self.copy.join(&mutation.file);
        let text = fs::read_to_string(self.root.join(&mutation.file))?;
        if text.matches(&mutation.from).count() != 1 {
            let name = &mutation.name;
            return Err(io::Error::other(format!(
                "{name}: its place is not found once"
            )));
        }
        fs::write(&path, text.replacen(&mutation.from, &mutation.to, 1))?;
        // The likeliest models go first: they notice most faults, and soon.
        let first = mutation.model();
        let unnoticed = self.passes(first.as_deref())? && self.passes(None)?;
        fs::write(&path, text)?;
        Ok(!unnoticed)
    }

    /// Returns true if the copy's models pass, or some of them. They have to compile.
    fn passes(&self, some: Option<&str>) -> io::Result<bool> {
        let test = |arguments: &[&str]| {
            Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
                .args(&self.subject.test)
                .arg("--offline")
                .args(arguments)
                .current_dir(&self.copy)
                .env("CARGO_TARGET_DIR", self.copy.join("target"))
                .env("MODELS_END_AT_FAILURE", "1")
                .env_remove("RUSTFLAGS")
                .output()
        };
        let built = test(&["--no-run"])?;
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr).into_owned();
            return Err(io::Error::other(format!("it does not compile:\n{said}")));
        }
        let models: Vec<&str> = ["--"].into_iter().chain(some).collect();
        Ok(test(&models)?.status.success())
    }
}

impl Mutation {
    fn model(&self) -> Option<String> {
        let file = Path::new(&self.file).file_stem().and_then(|it| it.to_str());
        let of_file = || file.map(|file| format!("{file}::"));
        self.model.clone().or_else(of_file)
    }
}

impl Subject {
    fn of(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let member = arguments.next()?;
        let sources = arguments.by_ref().take_while(|it| it != "--").collect();
        let test = arguments.collect();
        Some(Self {
            member,
            sources,
            test,
        })
    }

    /// Copies what is checked, and makes a workspace of it.
    fn copy(&self, root: &Path, copy: &Path) -> io::Result<()> {
        let (member, manifest) = (&self.member, "Cargo.lock".to_owned());
        for source in self.sources.iter().chain([member, &manifest]) {
            copy_all(&root.join(source), &copy.join(source))?;
        }
        fs::write(copy.join("Cargo.toml"), MANIFEST.replace("MEMBER", member))
    }
}

/// Copies a file, or a folder with everything in it.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        return fs::copy(from, to).map(|_| ());
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Reads the small part of TOML that the list uses: tables of strings, `"one line"` or `'''many'''`.
fn parse(text: &str) -> io::Result<Vec<Mutation>> {
    let mut mutations = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "[[mutation]]" {
            mutations.push(Mutation::default());
            continue;
        }
        let bad = || io::Error::other(format!("not understood: {line}"));
        let (name, value) = line.split_once(" = ").ok_or_else(bad)?;
        let value = match value.strip_prefix("'''") {
            Some(first) => literal(first, &mut lines).ok_or_else(bad)?,
            None => quoted(value).ok_or_else(bad)?.to_owned(),
        };
        let mutation = mutations.last_mut().ok_or_else(bad)?;
        match name {
            "name" => mutation.name = value,
            "model" => mutation.model = Some(value),
            "file" => mutation.file = value,
            "from" => mutation.from = value,
            "to" => mutation.to = value,
            _ => return Err(bad()),
        }
    }
    Ok(mutations)
}

/// A string in double quotes without escapes.
fn quoted(value: &str) -> Option<&str> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.contains(['"', '\\'])).then_some(inner)
}

/// A string in triple quotes that begins with `first`.
fn literal<'a>(first: &str, lines: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    let mut value = first.to_owned();
    while !value.ends_with("'''") {
        value.push('\n');
        value.push_str(lines.next()?);
    }
    value.truncate(value.len() - "'''".len());
    Some(value)
}
