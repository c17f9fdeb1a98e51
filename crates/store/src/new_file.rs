//! Files that get their name when they are whole and durable.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ringwatch_tls::private_file;
use tempfile::{NamedTempFile, TempPath};

use super::error::StoreError;

/// The beginning of temporary names. A command that was killed leaves a file of such a name, which can be deleted.
const TEMPORARY_PREFIX: &str = ".ringwatch-store-";

/// A file under a temporary name in the folder of the path that it is for. It is deleted unless it gets its name.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Creates an empty file, which its owner alone may read.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn create(path: &Path) -> Result<Self, StoreError> {
        let created = tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .tempfile_in(folder(path));
        Ok(Self {
            file: created.map_err(StoreError::io(folder(path)))?,
            path: path.to_owned(),
        })
    }

    /// Adds bytes to the file.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.write_all(bytes);
        written.map_err(StoreError::io(&self.path))
    }

    /// Makes the file durable and gives it its name, in the place of an old file.
    ///
    /// # Errors
    /// The error of the operating system; an old file is still there then, unless only its folder could not be synced.
    pub(crate) fn replace(self) -> Result<(), StoreError> {
        let failed = StoreError::io(&self.path);
        self.file.as_file().sync_all().map_err(&failed)?;
        let named = self.file.persist(&self.path);
        named.map_err(|error| failed(error.error))?;
        sync_folder(&self.path)
    }

    /// Closes the file, for others to write to it by its temporary name.
    pub(crate) fn close(self) -> ClosedFile {
        ClosedFile {
            temporary: self.file.into_temp_path(),
            path: self.path,
        }
    }
}

/// A [`NewFile`] that is not open.
#[derive(Debug)]
pub(crate) struct ClosedFile {
    /// The temporary name.
    pub(crate) temporary: TempPath,
    path: PathBuf,
}

impl ClosedFile {
    /// Makes the file durable and gives it its name, if no file has that.
    ///
    /// # Errors
    /// [`StoreError::Exists`], or the error of the operating system.
    pub(crate) fn name(self) -> Result<(), StoreError> {
        let renamed = name_noclobber(self.temporary, &self.path);
        renamed.map_err(|(error, _)| error)
    }
}

/// Makes a file durable and gives it another name in its folder, if no file has that. It keeps its name otherwise.
///
/// # Errors
/// [`StoreError::Exists`], or the error of the operating system.
pub(crate) fn name(file: &Path, path: &Path) -> Result<(), StoreError> {
    let temporary = TempPath::try_from_path(file).map_err(StoreError::io(file))?;
    name_noclobber(temporary, path).map_err(|(error, temporary)| {
        if let Some(temporary) = temporary {
            // It stays where it is, whatever that says.
            let _ = temporary.keep();
        }
        error
    })
}

/// Does the work of [`name`]. An error comes with the file, if that has its old name still.
fn name_noclobber(temporary: TempPath, path: &Path) -> Result<(), (StoreError, Option<TempPath>)> {
    let failed = StoreError::io(path);
    if let Err(error) = File::open(&temporary).and_then(|it| it.sync_all()) {
        return Err((failed(error), Some(temporary)));
    }
    if let Err(named) = temporary.persist_noclobber(path) {
        let error = match named.error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::Exists {
                path: path.to_owned(),
            },
            _ => failed(named.error),
        };
        return Err((error, Some(named.path)));
    }
    sync_folder(path).map_err(|error| (error, None))
}

/// Creates a data directory, and the folders above it, for its owner alone, and makes their names durable.
///
/// # Errors
/// The error of the operating system.
pub(crate) fn create_folder(path: &Path) -> Result<(), StoreError> {
    let missing = path
        .ancestors()
        .take_while(|it| !it.as_os_str().is_empty() && !it.exists());
    let missing: Vec<&Path> = missing.collect();
    private_file::create_directory(path).map_err(StoreError::io(path))?;
    missing.into_iter().try_for_each(sync_folder)
}

/// Returns the folder of a file.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes the name of a file durable.
fn sync_folder(path: &Path) -> Result<(), StoreError> {
    let folder = folder(path);
    let opened = File::open(folder).and_then(|it| it.sync_all());
    opened.map_err(StoreError::io(folder))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("snapshot");
        fs::write(&path, "old").expect("a file");
        let mut dropped = NewFile::create(&path).expect("a file");
        dropped.write(b"half").expect("written");
        drop(dropped);
        assert_eq!(fs::read(&path).expect("a file"), b"old");
        let mut file = NewFile::create(&path).expect("a file");
        file.write(b"new").expect("written");
        assert_eq!(fs::read(&path).expect("a file"), b"old");
        file.replace().expect("replaced");
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        assert_eq!(names(folder.path()), 1);
    }

    #[test]
    fn folders_are_created_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/b");
        for _ in 0..2 {
            create_folder(&path).expect("a folder");
            assert!(path.is_dir());
        }
        fs::write(path.join("c"), "").expect("a file");
        create_folder(&path.join("c/d")).expect_err("a file is in the way");
    }

    #[test]
    fn a_file_that_gets_no_name_keeps_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, path] = ["copy", "store"].map(|it| folder.path().join(it));
        fs::write(&file, "one").expect("written");
        fs::write(&path, "two").expect("written");
        let refused = name(&file, &path).expect_err("there is one");
        assert!(matches!(refused, StoreError::Exists { .. }), "{refused}");
        assert_eq!(fs::read(&file).expect("a file"), b"one");
        fs::remove_file(&path).expect("removed");
        name(&file, &path).expect("named");
        assert_eq!(fs::read(&path).expect("a file"), b"one");
        assert_eq!(names(folder.path()), 1);
    }

    #[test]
    fn a_file_that_is_there_is_not_replaced_by_a_closed_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store");
        let file = NewFile::create(&path).expect("a file").close();
        fs::write(&file.temporary, "one").expect("written");
        file.name().expect("named");
        assert_eq!(fs::read(&path).expect("a file"), b"one");
        let other = NewFile::create(&path).expect("a file").close();
        let refused = other.name().expect_err("there is one");
        assert!(matches!(refused, StoreError::Exists { .. }), "{refused}");
        assert_eq!(fs::read(&path).expect("a file"), b"one");
        assert_eq!(names(folder.path()), 1);
    }
}
