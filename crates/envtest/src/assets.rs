//! The folder that `KUBEBUILDER_ASSETS` names: a copy of this program as kube-apiserver, a link to it as etcd, and a
//! copy of kubectl.
//!
//! The link is relative, so that the folder can be moved and copied. Each file comes to be under a temporary name and
//! takes the place of an earlier one, which may be running.

use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use clap::Args;

use super::error::EnvtestError;
use super::program::Program;

/// The name of kubectl's file.
const KUBECTL: &str = "kubectl";
/// The rights of programs.
const EXECUTABLE: u32 = 0o755;

/// Lay out a folder of test binaries for envtest: kube-apiserver and etcd, which are this program, and kubectl. Suites
/// use it unchanged by KUBEBUILDER_ASSETS=DIR.
#[derive(Args, Debug)]
pub struct AssetsFlags {
    /// The folder, which is created if it is missing.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// The kubectl that is copied into it. By default one that is there stays; else the first one on PATH is copied.
    #[arg(long, value_name = "PATH")]
    pub kubectl: Option<PathBuf>,
}

/// Lays out the folder out of the program at a path, and returns what to tell the user. `search_path` is that of the
/// environment.
///
/// # Errors
/// A file cannot be read or written, or the folder has programs of others.
pub fn lay_out(
    flags: &AssetsFlags,
    program: &Path,
    search_path: Option<&OsStr>,
) -> Result<String, EnvtestError> {
    // Whatever may be wrong with what is copied is found before anything is changed.
    if let Some(kubectl) = &flags.kubectl {
        check_program(kubectl)?;
    }
    let failed = |source| EnvtestError::Folder {
        path: flags.dir.clone(),
        source,
    };
    fs::create_dir_all(&flags.dir).map_err(failed)?;
    let dir = fs::canonicalize(&flags.dir).map_err(failed)?;
    refuse_others(&dir)?;
    let kubectl = KubectlSource::choose(flags, search_path, &dir);
    copy(program, &dir.join(Program::KUBE_APISERVER))?;
    link(Program::KUBE_APISERVER, &dir.join(Program::ETCD))?;
    if let KubectlSource::Copied(from) = &kubectl {
        copy(from, &dir.join(KUBECTL))?;
    }
    Ok(format!(
        "kube-apiserver and etcd are this program; {kubectl}\nexport KUBEBUILDER_ASSETS={}",
        dir.display()
    ))
}

/// The origin of the folder's kubectl.
#[derive(Debug)]
enum KubectlSource {
    /// It is a copy of this one.
    Copied(PathBuf),
    /// It is the one that is there already.
    There,
    /// There is none.
    Missing,
}

impl KubectlSource {
    /// Chooses that of the flag, or else the one that is there, which may be another's, or else the first on the path.
    fn choose(flags: &AssetsFlags, search_path: Option<&OsStr>, dir: &Path) -> Self {
        let own = dir.join(KUBECTL);
        let is_there = fs::symlink_metadata(&own).is_ok();
        let found = match &flags.kubectl {
            Some(path) => Some(path.clone()).filter(|it| !is_same(it, &own)),
            None if is_there => None,
            None => search_path.and_then(on_path),
        };
        match found {
            Some(path) => Self::Copied(path),
            None if is_there => Self::There,
            None => Self::Missing,
        }
    }
}

impl Display for KubectlSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copied(path) => write!(formatter, "kubectl is a copy of {}", path.display()),
            Self::There => formatter.write_str("kubectl stays as it is there"),
            Self::Missing => formatter.write_str(
                "no kubectl is on PATH, and so none in the folder; suites that run it need --kubectl PATH",
            ),
        }
    }
}

/// Refuses to replace programs that were not laid out here: an etcd that is no link to kube-apiserver, or a
/// kube-apiserver without such a link. Links that lead nowhere are others' too.
fn refuse_others(dir: &Path) -> Result<(), EnvtestError> {
    let [server, etcd] = [Program::KUBE_APISERVER, Program::ETCD].map(|name| dir.join(name));
    if fs::read_link(&etcd).is_ok_and(|it| it == Path::new(Program::KUBE_APISERVER)) {
        return Ok(());
    }
    let mut programs = [etcd, server].into_iter();
    let foreign = programs.find(|it| fs::symlink_metadata(it).is_ok());
    foreign.map_or(Ok(()), |path| Err(EnvtestError::Foreign { path }))
}

/// Returns the first kubectl on the path.
fn on_path(search_path: &OsStr) -> Option<PathBuf> {
    let folders = std::env::split_paths(search_path);
    let mut all = folders.map(|folder| folder.join(KUBECTL));
    all.find(|it| is_program(it))
}

/// Returns true if a path leads to a file of the folder, whose own path is canonical.
fn is_same(path: &Path, own: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|it| it == own)
}

/// Refuses a path that is none of a program.
fn check_program(path: &Path) -> Result<(), EnvtestError> {
    let metadata = fs::metadata(path).map_err(|source| unread(path, source))?;
    if is_executable(&metadata) {
        return Ok(());
    }
    let path = path.to_path_buf();
    Err(EnvtestError::NoProgram { path })
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| is_executable(&it))
}

fn is_executable(metadata: &fs::Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

/// Copies a program, unless it is the one that is to be replaced.
fn copy(from: &Path, to: &Path) -> Result<(), EnvtestError> {
    if is_same(from, to) {
        return Ok(());
    }
    let mut source = File::open(from).map_err(|source| unread(from, source))?;
    replace(to, |temporary| {
        let mut file = File::create_new(temporary)?;
        io::copy(&mut source, &mut file)?;
        file.set_permissions(fs::Permissions::from_mode(EXECUTABLE))
    })
    .map_err(|source| unwritten(to, source))
}

fn link(target: &str, to: &Path) -> Result<(), EnvtestError> {
    replace(to, |temporary| symlink(target, temporary)).map_err(|source| unwritten(to, source))
}

fn unread(path: &Path, source: io::Error) -> EnvtestError {
    EnvtestError::Copy {
        path: path.to_path_buf(),
        source,
    }
}

fn unwritten(path: &Path, source: io::Error) -> EnvtestError {
    EnvtestError::Write {
        path: path.to_path_buf(),
        source,
    }
}

/// Makes a file under a temporary name in its folder, and gives it its own.
fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let folder = tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(folder)?;
    let temporary = folder.path().join("file");
    make(&temporary)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &Path, text: &str) {
        fs::write(path, text).expect("written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("rights");
    }

    fn names(dir: &Path) -> Vec<String> {
        let all = fs::read_dir(dir).expect("a folder");
        let names = all.map(|it| it.expect("an entry").file_name().into_string());
        let mut names: Vec<_> = names.map(|it| it.expect("text")).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_has_one_copy_a_relative_link_and_kubectl() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("ringwatch");
        program(&own, "one");
        let dir = folder.path().join("a/b");
        let mut flags = AssetsFlags {
            dir: dir.clone(),
            kubectl: None,
        };
        let said = lay_out(&flags, &own, Some(OsStr::new(""))).expect("laid out");
        assert!(said.contains("no kubectl is on PATH"), "{said}");
        assert!(said.ends_with("a/b"), "{said}");
        assert_eq!(names(&dir), ["etcd", "kube-apiserver"]);
        assert_eq!(
            fs::read_link(dir.join("etcd")).expect("a link"),
            Path::new("kube-apiserver")
        );
        // Once more, with a newer program and a kubectl on the path.
        program(&own, "two");
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).expect("a folder");
        program(&bin.join("kubectl"), "kubectl");
        let search_path = std::env::join_paths([dir.as_path(), &bin]).expect("a path");
        let said = lay_out(&flags, &own, Some(&search_path)).expect("laid out");
        assert!(said.contains("bin/kubectl"), "{said}");
        assert_eq!(names(&dir), ["etcd", "kube-apiserver", "kubectl"]);
        assert_eq!(fs::read_to_string(dir.join("etcd")).expect("text"), "two");
        // The folder's own kubectl is none to be copied, whatever path leads to it.
        let alias = folder.path().join("alias");
        symlink(&dir, &alias).expect("a link");
        for path in [&dir, &alias] {
            let said = lay_out(&flags, &own, Some(path.as_os_str())).expect("laid out");
            assert!(said.contains("kubectl stays as it is there"), "{said}");
        }
        flags.kubectl = Some(alias.join("kubectl"));
        let said = lay_out(&flags, &own, Some(&search_path)).expect("laid out");
        assert!(said.contains("kubectl stays as it is there"), "{said}");
        assert_eq!(
            fs::read_to_string(dir.join("kubectl")).expect("text"),
            "kubectl"
        );
    }

    #[test]
    fn an_error_is_about_what_is_wrong_and_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("ringwatch");
        program(&own, "own");
        let text = folder.path().join("text");
        fs::write(&text, "no program").expect("written");
        let mut flags = AssetsFlags {
            dir: folder.path().join("assets"),
            kubectl: Some(folder.path().join("missing")),
        };
        let error = lay_out(&flags, &own, None).expect_err("no such file");
        assert!(matches!(&error, EnvtestError::Copy { path, .. } if path.ends_with("missing")));
        for no_program in [text.as_path(), folder.path()] {
            flags.kubectl = Some(no_program.to_path_buf());
            let error = lay_out(&flags, &own, None).expect_err("no program");
            assert!(matches!(error, EnvtestError::NoProgram { .. }), "{error}");
        }
        assert!(!flags.dir.exists());
        flags.kubectl = None;
        for dir in [text.clone(), text.join("a")] {
            flags.dir.clone_from(&dir);
            let error = lay_out(&flags, &own, None).expect_err("no folder");
            assert!(
                matches!(&error, EnvtestError::Folder { path, .. } if *path == dir),
                "{error}"
            );
        }
    }

    #[test]
    fn programs_of_others_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("ringwatch");
        program(&own, "own");
        let flags = AssetsFlags {
            dir: folder.path().join("assets"),
            kubectl: None,
        };
        fs::create_dir(&flags.dir).expect("a folder");
        for name in ["kube-apiserver", "etcd"] {
            let path = flags.dir.join(name);
            program(&path, "other");
            let error = lay_out(&flags, &own, None).expect_err("another's");
            assert!(matches!(error, EnvtestError::Foreign { .. }), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("text"), "other");
            fs::remove_file(&path).expect("removed");
        }
        // A link that leads nowhere is another's too.
        let path = flags.dir.join("kube-apiserver");
        symlink("elsewhere", &path).expect("a link");
        let error = lay_out(&flags, &own, None).expect_err("another's");
        assert!(matches!(error, EnvtestError::Foreign { .. }), "{error}");
        fs::remove_file(&path).expect("removed");
        // So is a kubectl, which stays unless another one is asked for.
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).expect("a folder");
        program(&bin.join("kubectl"), "on the path");
        let kubectl = flags.dir.join("kubectl");
        program(&kubectl, "other");
        for _ in 0..2 {
            let said = lay_out(&flags, &own, Some(bin.as_os_str())).expect("laid out");
            assert!(said.contains("kubectl stays as it is there"), "{said}");
            assert_eq!(fs::read_to_string(&kubectl).expect("text"), "other");
        }
        let flags = AssetsFlags {
            kubectl: Some(bin.join("kubectl")),
            ..flags
        };
        lay_out(&flags, &own, None).expect("laid out");
        assert_eq!(fs::read_to_string(&kubectl).expect("text"), "on the path");
    }
}
