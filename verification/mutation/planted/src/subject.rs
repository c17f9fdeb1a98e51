//! The models and the sources that are mutated, and how they are copied into a workspace of their own.
//!
//! The copy holds the member, what it includes by path, and the workspace members that either depends
//! on. Its manifest has what they inherit: `[workspace.package]`, and of `[workspace.dependencies]` the
//! entries that they name. If the root package is one of those members, its library is copied without its
//! tests, benches and examples.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use toml::{Table, Value};

/// The kinds of dependencies that a manifest lists.
const DEPENDENCIES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// The folder of the root package, and that of its library.
const ROOT: &str = ".";
const ROOT_LIBRARY: &str = "src";
/// The parts of the root package's manifest that its library needs.
const LIBRARY_TABLES: [&str; 4] = ["package", "features", "dependencies", "build-dependencies"];

/// Marks a folder that cargo builds into, which is not copied.
const BUILT: &str = "CACHEDIR.TAG";

/// A member that cannot be copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// A file could not be read or written.
    #[error("{file}: {error}")]
    File { file: String, error: io::Error },
    /// A manifest is not what cargo would read either; correct it.
    #[error("{file}: {message}")]
    Manifest { file: String, message: String },
    /// A dependency lies outside the workspace. Name the files as sources and include them by path instead.
    #[error("{member} depends on {path}, which is not a folder inside the workspace")]
    Outside { member: String, path: String },
}

/// The models and the sources that are mutated.
pub(crate) struct Subject {
    root: PathBuf,
    /// The member that holds the models.
    member: String,
    /// The files and folders outside the member that it includes, and the members that it depends on.
    sources: Vec<String>,
    /// The arguments by which cargo runs them.
    test: Vec<String>,
    /// The manifest of the copied workspace.
    manifest: String,
}

impl Subject {
    /// Reads the manifests of the workspace at `root`.
    pub(crate) fn new(
        root: &Path,
        member: String,
        mut sources: Vec<String>,
        test: Vec<String>,
    ) -> Result<Self, CopyError> {
        let mut needs = Needs::new(root)?;
        let package = needs.add(&member)?;
        sources.extend(needs.members.iter().filter(|it| **it != member).cloned());
        if needs.library.is_some() {
            sources.push(ROOT_LIBRARY.to_owned());
        }
        Ok(Self {
            root: root.to_owned(),
            member,
            sources,
            test,
            manifest: needs.manifest(&package),
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn member(&self) -> &str {
        &self.member
    }

    pub(crate) fn test(&self) -> &[String] {
        &self.test
    }

    /// Copies what is checked, and makes a workspace of it.
    pub(crate) fn copy(&self, copy: &Path) -> Result<(), CopyError> {
        let lock = "Cargo.lock".to_owned();
        for source in self.sources.iter().chain([&self.member, &lock]) {
            let from = self.root.join(source);
            copy_all(&from, &copy.join(source)).map_err(|error| failed(&from, error))?;
        }
        let manifest = copy.join("Cargo.toml");
        fs::write(&manifest, &self.manifest).map_err(|error| failed(&manifest, error))
    }
}

/// Members, and what they need of the workspace.
struct Needs<'a> {
    root: &'a Path,
    workspace: Table,
    members: BTreeSet<String>,
    dependencies: Table,
    /// The manifest of the root package's library, if that is needed.
    library: Option<Table>,
}

impl<'a> Needs<'a> {
    fn new(root: &'a Path) -> Result<Self, CopyError> {
        let manifest = read(&root.join("Cargo.toml"))?;
        let workspace = manifest.get("workspace").and_then(Value::as_table);
        Ok(Self {
            root,
            workspace: workspace.cloned().unwrap_or_default(),
            members: BTreeSet::new(),
            dependencies: Table::new(),
            library: None,
        })
    }

    /// Adds a member and those that it depends on, and returns the name of its package.
    fn add(&mut self, member: &str) -> Result<String, CopyError> {
        let file = self.root.join(member).join("Cargo.toml");
        let mut manifest = read(&file)?;
        if member == ROOT {
            manifest.retain(|table, _| LIBRARY_TABLES.contains(&table));
            self.library = Some(manifest.clone());
        } else {
            self.members.insert(member.to_owned());
        }
        for (name, dependency) in dependencies(&manifest) {
            let inherits = dependency.get("workspace").and_then(Value::as_bool) == Some(true);
            let path = if inherits {
                let entry = self.inherited(name, &file)?;
                let path = path_of(&entry).map(PathBuf::from);
                self.dependencies.insert(name.clone(), entry);
                path
            } else {
                path_of(dependency).map(|path| Path::new(member).join(path))
            };
            let Some(path) = path else { continue };
            let folder = inside(&path).ok_or_else(|| CopyError::Outside {
                member: member.to_owned(),
                path: path.display().to_string(),
            })?;
            let is_known = match folder.as_str() {
                ROOT => self.library.is_some(),
                _ => self.members.contains(&folder),
            };
            if !is_known {
                self.add(&folder)?;
            }
        }
        let package = manifest.get("package").and_then(|it| it.get("name"));
        let package = package.and_then(Value::as_str);
        Ok(package
            .ok_or_else(|| wrong(&file, "it has no package.name"))?
            .to_owned())
    }

    /// Returns the workspace's entry of a dependency.
    fn inherited(&self, name: &str, file: &Path) -> Result<Value, CopyError> {
        let all = self.workspace.get("dependencies");
        let entry = all.and_then(|all| all.get(name)).cloned();
        entry.ok_or_else(|| wrong(file, &format!("the workspace has no dependency {name}")))
    }

    /// Returns the manifest of a workspace of the members, without lints.
    fn manifest(self, package: &str) -> String {
        let members: Vec<Value> = self.members.into_iter().map(Value::from).collect();
        let mut workspace = Table::new();
        workspace.insert("resolver".to_owned(), "3".into());
        workspace.insert("members".to_owned(), members.into());
        workspace.insert("lints".to_owned(), Table::new().into());
        workspace.insert("dependencies".to_owned(), self.dependencies.into());
        if let Some(inherited) = self.workspace.get("package") {
            workspace.insert("package".to_owned(), inherited.clone());
        }
        let mut manifest = Table::new();
        manifest.insert("workspace".to_owned(), workspace.into());
        // A whole program runs long with dependencies that are not optimised.
        let optimised = match self.library {
            Some(library) => {
                manifest.extend(without_other_targets(library));
                "[profile.dev.package.\"*\"]\nopt-level = 1\n"
            }
            None => "",
        };
        format!(
            "{manifest}\n[profile.dev]\ndebug = false\n{optimised}\
             [profile.release.package.{package}]\ndebug-assertions = true\n"
        )
    }
}

/// Has cargo look for no tests, benches and examples of a package, which are not copied.
fn without_other_targets(mut manifest: Table) -> Table {
    if let Some(Value::Table(package)) = manifest.get_mut("package") {
        for targets in ["autobenches", "autoexamples", "autotests"] {
            package.insert(targets.to_owned(), false.into());
        }
    }
    manifest
}

/// Returns the dependencies of a manifest, those of its targets as well.
fn dependencies(manifest: &Table) -> Vec<(&String, &Value)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values);
    let tables = targets.filter_map(Value::as_table).chain([manifest]);
    let lists = tables.flat_map(|table| DEPENDENCIES.map(|kind| table.get(kind)));
    let lists = lists.flatten().filter_map(Value::as_table);
    lists.flatten().collect()
}

fn path_of(dependency: &Value) -> Option<&str> {
    dependency.get("path").and_then(Value::as_str)
}

/// Returns the folder that a path relative to the root leads to, if that is inside it.
fn inside(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::Prefix(_) | Component::RootDir => return None,
        }
    }
    let is_root = parts.is_empty();
    Some(if is_root {
        ROOT.to_owned()
    } else {
        parts.join("/")
    })
}

fn read(file: &Path) -> Result<Table, CopyError> {
    let text = fs::read_to_string(file).map_err(|error| failed(file, error))?;
    text.parse()
        .map_err(|error: toml::de::Error| wrong(file, &error.to_string()))
}

fn failed(file: &Path, error: io::Error) -> CopyError {
    let file = file.display().to_string();
    CopyError::File { file, error }
}

fn wrong(file: &Path, message: &str) -> CopyError {
    CopyError::Manifest {
        file: file.display().to_string(),
        message: message.to_owned(),
    }
}

/// Copies a file, or a folder with everything in it.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        return fs::copy(from, to).map(|_| ());
    }
    if from.join(BUILT).exists() {
        return Ok(());
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
