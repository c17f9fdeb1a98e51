//! Files that are written as a whole and, if secret, readable by their owner alone.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// The beginning of temporary names. A process that was killed leaves a file of such a name, which can be deleted.
const TEMPORARY_PREFIX: &str = ".ringwatch-";

/// The readers of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the owner may read the file: mode 0600.
    Owner,
    /// Everybody may read the file: mode 0644.
    Everybody,
}

/// Writes a file so that a crash leaves the old content or the new one. A secret is never, not
/// for a moment, readable by others. The caller knows that the old content may go.
///
/// # Errors
/// The error of the operating system.
pub fn replace(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    let file = temporary(path, content, access)?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Writes a new file as [`replace`] does, if no file has its name.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`], or another error of the operating system.
pub fn create(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    let file = temporary(path, content, access)?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Writes a durable file beside a path, which is deleted unless it gets that name.
fn temporary(path: &Path, content: &[u8], access: Access) -> io::Result<NamedTempFile> {
    let mode = match access {
        Access::Owner => 0o600,
        Access::Everybody => 0o644,
    };
    let mut file = Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder(path))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Makes the name of a file durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

/// Returns the folder of a file.
fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new("."))
}

/// Creates a directory, and those above it, for the owner alone.
///
/// # Errors
/// The error of the operating system.
pub fn create_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_stays_with_its_owner() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("deep/key");
        create_directory(path.parent().expect("a parent")).expect("directories");
        replace(&path, b"one", Access::Owner).expect("written");
        replace(&path, b"two", Access::Owner).expect("replaced");
        assert_eq!(fs::read(&path).expect("read"), b"two");
        let mode = fs::metadata(&path).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let entries = fs::read_dir(path.parent().expect("a parent")).expect("entries");
        assert_eq!(entries.count(), 1);
    }

    #[test]
    fn a_new_file_takes_the_place_of_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        create(&path, b"one", Access::Everybody).expect("written");
        let mode = fs::metadata(&path).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        let error = create(&path, b"two", Access::Owner).expect_err("a file is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).expect("read"), b"one");
        assert_eq!(fs::read_dir(directory.path()).expect("entries").count(), 1);
    }

    #[test]
    fn files_beside_a_replaced_one_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let [path, beside] = ["key", "key.new"].map(|it| directory.path().join(it));
        fs::write(&beside, "of others").expect("written");
        replace(&path, b"one", Access::Owner).expect("written");
        assert_eq!(fs::read(&beside).expect("read"), b"of others");
    }
}
