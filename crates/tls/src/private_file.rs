//! Files that are replaced as a whole and, if secret, readable by their owner alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The readers of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the owner may read the file: mode 0600.
    Owner,
    /// Everybody may read the file: mode 0644.
    Everybody,
}

/// Writes a file so that a crash leaves the old content or the new one. A secret is never, not
/// for a moment, readable by others.
///
/// # Errors
/// The error of the operating system.
pub fn replace(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    // A leftover of a crash may have another mode; the mode of a new file is what we ask for.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mode = match access {
        Access::Owner => 0o600,
        Access::Everybody => 0o644,
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_stays_with_its_owner() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("deep/key");
        create_directory(path.parent().expect("a parent")).expect("directories");
        fs::write(directory.path().join("deep/key.new"), "leftover").expect("a leftover");
        replace(&path, b"one", Access::Owner).expect("written");
        replace(&path, b"two", Access::Owner).expect("replaced");
        assert_eq!(fs::read(&path).expect("read"), b"two");
        let mode = fs::metadata(&path).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let entries = fs::read_dir(path.parent().expect("a parent")).expect("entries");
        assert_eq!(entries.count(), 1);
    }
}
