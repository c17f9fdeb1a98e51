//! Applies each mutation of `mutations.toml` to a copy of the kernel and expects a model to fail.
//!
//! The copy is a workspace of its own under the target folder. First the models must pass there
//! unchanged. A mutation that does not compile, or whose place is not found, is an error: it would
//! prove nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

/// What the copied workspace needs besides the member and the kernel.
const MANIFEST: &str =
    "[workspace]\nresolver = \"3\"\nmembers = [\"loom-tests\"]\n[workspace.lints]\n";

/// The folders that are copied.
const FOLDERS: [&str; 2] = ["src/ring", "loom-tests/src"];

/// The files that are copied.
const FILES: [&str; 2] = ["loom-tests/Cargo.toml", "Cargo.lock"];

/// An edit that must not go unnoticed.
#[derive(Default)]
struct Mutation {
    name: String,
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
    let member = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = member.parent().map(Path::to_path_buf).unwrap_or_default();
    let mutations = parse(&fs::read_to_string(member.join("mutations.toml"))?)?;
    let copy = root.join("target").join("loom-mutants");
    copy_sources(&root, &copy)?;
    if !models_pass(&copy, None)? {
        return Err(io::Error::other("the models fail without any mutation"));
    }
    let mut survivors = 0;
    for mutation in &mutations {
        let path = copy.join(&mutation.file);
        let text = fs::read_to_string(root.join(&mutation.file))?;
        if text.matches(&mutation.from).count() != 1 {
            let name = &mutation.name;
            return Err(io::Error::other(format!(
                "{name}: its place is not found once"
            )));
        }
        fs::write(&path, text.replacen(&mutation.from, &mutation.to, 1))?;
        // The models of the same name notice most of it, and soon.
        let own = path.file_stem().and_then(|it| it.to_str());
        let own = own.map(|file| format!("{file}::"));
        if models_pass(&copy, own.as_deref())? && models_pass(&copy, None)? {
            survivors += 1;
            println!("UNNOTICED  {}", mutation.name);
        } else {
            println!("refused    {}", mutation.name);
        }
        fs::write(&path, text)?;
    }
    println!(
        "{} of {} refused",
        mutations.len() - survivors,
        mutations.len()
    );
    Ok(survivors)
}

/// Whether the copy's models pass, or those of one file. That they compile is a condition.
fn models_pass(copy: &Path, of: Option<&str>) -> io::Result<bool> {
    let test = |arguments: &[&str]| {
        Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["test", "--quiet", "--offline", "--release", "--lib"])
            .args(arguments)
            .current_dir(copy)
            .env("CARGO_TARGET_DIR", copy.join("target"))
            .env_remove("RUSTFLAGS")
            .output()
    };
    let built = test(&["--no-run"])?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        return Err(io::Error::other(format!("it does not compile:\n{said}")));
    }
    let models: Vec<&str> = ["--"].into_iter().chain(of).collect();
    Ok(test(&models)?.status.success())
}

fn copy_sources(root: &Path, copy: &Path) -> io::Result<()> {
    for folder in FOLDERS {
        fs::create_dir_all(copy.join(folder))?;
        for entry in fs::read_dir(root.join(folder))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), copy.join(folder).join(entry.file_name()))?;
            }
        }
    }
    for file in FILES {
        fs::copy(root.join(file), copy.join(file))?;
    }
    let manifest = fs::read_to_string(copy.join("loom-tests/Cargo.toml"))?;
    fs::write(copy.join("loom-tests/Cargo.toml"), manifest)?;
    fs::write(copy.join("Cargo.toml"), MANIFEST)
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
