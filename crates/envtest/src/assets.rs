//! The folder that `KUBEBUILDER_ASSETS` names: a copy of this program as kube-apiserver, a link to it as etcd, and a
//! copy of kubectl.
//!
//! The link is relative, so that the folder can be moved and copied. Each file comes to be under a temporary name and
//! takes the place of an earlier one, which may be running.

use std::ffi::OsStr;
use std::fs;
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

    /// The kubectl that is copied into it. The default is the first one on PATH.
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
    let failed = |source| EnvtestError::Write {
        path: flags.dir.clone(),
        source,
    };
    fs::create_dir_all(&flags.dir).map_err(failed)?;
    let dir = fs::canonicalize(&flags.dir).map_err(failed)?;
    refuse_others(&dir)?;
    let server = dir.join(Program::KUBE_APISERVER);
    copy(program, &server)?;
    link(Program::KUBE_APISERVER, &dir.join(Program::ETCD))?;
    let kubectl = flags.kubectl.clone();
    let kubectl = kubectl.or_else(|| search_path.and_then(|it| on_path(it, &dir)));
    let about = match &kubectl {
        Some(kubectl) => {
            copy(kubectl, &dir.join(KUBECTL))?;
            format!("kubectl is a copy of {}", kubectl.display())
        }
        None => {
            "no kubectl is on PATH, and so none in the folder; suites that run it need --kubectl PATH"
                .to_owned()
        }
    };
    Ok(format!(
        "kube-apiserver and etcd are this program; {about}\nexport KUBEBUILDER_ASSETS={}",
        dir.display()
    ))
}

/// Refuses to replace programs that were not laid out here: an etcd that is no link to kube-apiserver, or a
/// kube-apiserver without such a link.
fn refuse_others(dir: &Path) -> Result<(), EnvtestError> {
    let [server, etcd] = [Program::KUBE_APISERVER, Program::ETCD].map(|name| dir.join(name));
    if fs::read_link(&etcd).is_ok_and(|it| it == Path::new(Program::KUBE_APISERVER)) {
        return Ok(());
    }
    let foreign = [etcd, server].into_iter().find(|it| it.exists());
    foreign.map_or(Ok(()), |path| Err(EnvtestError::Foreign { path }))
}

/// Returns the first kubectl on the path that is not the folder's own.
fn on_path(search_path: &OsStr, dir: &Path) -> Option<PathBuf> {
    let folders = std::env::split_paths(search_path);
    let mut all = folders.map(|folder| folder.join(KUBECTL));
    all.find(|it| is_program(it) && it.parent() != Some(dir))
}

fn is_program(path: &Path) -> bool {
    let metadata = fs::metadata(path);
    metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Copies a program, unless it is the one that is to be replaced.
fn copy(from: &Path, to: &Path) -> Result<(), EnvtestError> {
    let unread = |source| EnvtestError::Copy {
        path: from.to_path_buf(),
        source,
    };
    let source = fs::canonicalize(from).map_err(unread)?;
    if source == to {
        return Ok(());
    }
    replace(to, |temporary| {
        fs::copy(&source, temporary)?;
        fs::set_permissions(temporary, fs::Permissions::from_mode(EXECUTABLE))
    })
    .map_err(|source| match source.kind() {
        io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput => unread(source),
        _ => unwritten(to, source),
    })
}

fn link(target: &str, to: &Path) -> Result<(), EnvtestError> {
    replace(to, |temporary| symlink(target, temporary)).map_err(|source| unwritten(to, source))
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
        // The folder's own kubectl is none to be copied.
        let said = lay_out(&flags, &own, Some(dir.as_os_str())).expect("laid out");
        assert!(said.contains("no kubectl is on PATH"), "{said}");
        flags.kubectl = Some(folder.path().join("missing"));
        let error = lay_out(&flags, &own, None).expect_err("no such file");
        assert!(matches!(error, EnvtestError::Copy { .. }), "{error}");
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
        lay_out(&flags, &own, None).expect("laid out");
    }
}
