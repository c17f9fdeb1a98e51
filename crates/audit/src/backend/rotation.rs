//! A log file that is rotated when it is full, and the removal and compression of old ones.
//!
//! As `lumberjack` does for kube-apiserver: a full `audit.log` is renamed to `audit-2026-01-02T15-04-05.000.log`, by
//! the time of the rotation in UTC, and perhaps compressed to `….log.gz`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ringwatch::clock::Clock;
use tokio::sync::mpsc;

/// The form of the time in the name of an old file.
const TIME: &str = "%Y-%m-%dT%H-%M-%S%.3f";
const COMPRESSED: &str = ".gz";
/// The access to the log.
const FILE_MODE: u32 = 0o600;

/// The limits at which a file is rotated, and of the old files that are kept.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// Maximum number of bytes of the file.
    pub bytes_max: u64,
    /// Time after which old files are removed; 0 for never.
    pub age_max: Duration,
    /// Maximum number of old files; 0 for any.
    pub files_max: usize,
    /// True if old files are compressed.
    pub compress: bool,
}

/// The file that is written, and the old ones beside it.
#[derive(Debug)]
pub(super) struct RotatedFile {
    path: PathBuf,
    /// `None` if it could not be opened after a rotation; the next write tries again.
    file: Option<File>,
    bytes: u64,
    bytes_max: u64,
    /// Wakes the housekeeping, if there is any.
    rotated: Option<mpsc::Sender<()>>,
    clock: Clock,
}

/// Removes and compresses old files after each rotation. It blocks, so it needs a thread of its own.
#[derive(Debug)]
pub struct Housekeeping {
    path: PathBuf,
    rotation: Rotation,
    rotated: mpsc::Receiver<()>,
    clock: Clock,
}

impl RotatedFile {
    /// Opens a file at its end. Without a rotation it grows for ever.
    pub(super) fn open(
        path: &Path,
        rotation: Option<Rotation>,
        clock: Clock,
    ) -> io::Result<(Self, Option<Housekeeping>)> {
        let file = append(path)?;
        let (sender, receiver) = mpsc::channel(1);
        // Old files of an earlier process may be due.
        let _ = sender.try_send(());
        let housekeeping = rotation.map(|rotation| Housekeeping {
            path: path.to_owned(),
            rotation,
            rotated: receiver,
            clock: clock.clone(),
        });
        let rotated = Self {
            path: path.to_owned(),
            bytes: file.metadata()?.len(),
            file: Some(file),
            bytes_max: rotation.map_or(u64::MAX, |it| it.bytes_max),
            rotated: rotation.is_some().then_some(sender),
            clock,
        };
        Ok((rotated, housekeeping))
    }

    /// Writes a line, after a rotation if the file would be too large with it.
    pub(super) fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let length = line.len() as u64;
        if length > self.bytes_max {
            let most = self.bytes_max;
            return Err(io::Error::other(format!(
                "write length {length} exceeds maximum file size {most}"
            )));
        }
        if self.bytes + length > self.bytes_max {
            self.rotate()?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            closed => {
                let file = append(&self.path)?;
                self.bytes = file.metadata()?.len();
                closed.insert(file)
            }
        };
        match file.write_all(line) {
            Ok(()) => self.bytes += length,
            Err(error) => {
                // The next line is not to follow half a line. If this fails too, the first error says why.
                let _ = file.set_len(self.bytes);
                return Err(error);
            }
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file = None;
        let old = old_name(&self.path, self.clock.wall());
        match fs::rename(&self.path, &old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.bytes = 0;
        // If it is full, the housekeeping will come by anyway.
        if let Some(rotated) = &self.rotated {
            let _ = rotated.try_send(());
        }
        Ok(())
    }
}

/// Returns the file's name without its extension, and the extension with its dot.
fn parts(path: &Path) -> (String, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.rfind('.') {
        Some(dot) => (name[..dot].to_owned(), name[dot..].to_owned()),
        None => (name.into_owned(), String::new()),
    }
}

/// Returns the name of a file that is rotated at this time.
fn old_name(path: &Path, at: Timestamp) -> PathBuf {
    let (stem, extension) = parts(path);
    let time = at.to_zoned(TimeZone::UTC).strftime(TIME).to_string();
    path.with_file_name(format!("{stem}-{time}{extension}"))
}

/// An old file.
#[derive(Debug)]
struct OldFile {
    path: PathBuf,
    /// The time of its rotation.
    at: Timestamp,
    is_compressed: bool,
}

impl Housekeeping {
    /// Keeps old files as the rotation says, until the log ends.
    pub async fn run(mut self) {
        while self.rotated.recv().await.is_some() {
            if let Err(error) = self.clean() {
                tracing::warn!(%error, "cannot remove or compress old audit logs");
            }
        }
    }

    /// Removes what is too old or too much, and compresses the rest on demand.
    fn clean(&self) -> io::Result<()> {
        let mut old = self.old_files()?;
        // The newest first.
        old.sort_by_key(|it| std::cmp::Reverse(it.at));
        let Rotation {
            age_max, files_max, ..
        } = self.rotation;
        let mut kept: Vec<Timestamp> = Vec::new();
        let now = self.clock.wall();
        for file in old {
            if kept.last() != Some(&file.at) {
                kept.push(file.at);
            }
            let is_too_many = files_max > 0 && kept.len() > files_max;
            let age = now.duration_since(file.at);
            let is_too_old = !age_max.is_zero() && age > age_max.try_into().unwrap_or_default();
            if is_too_many || is_too_old {
                fs::remove_file(&file.path)?;
            } else if self.rotation.compress && !file.is_compressed {
                compress(&file.path)?;
            }
        }
        Ok(())
    }

    fn old_files(&self) -> io::Result<Vec<OldFile>> {
        let (stem, extension) = parts(&self.path);
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty());
        let mut found = Vec::new();
        for entry in fs::read_dir(folder.unwrap_or_else(|| Path::new(".")))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let whole = name.strip_suffix(COMPRESSED);
            let time = whole.unwrap_or(&name).strip_suffix(extension.as_str());
            let time = time.and_then(|it| it.strip_prefix(&format!("{stem}-")));
            let time = time.and_then(|it| DateTime::strptime(TIME, it).ok());
            let zoned = time.and_then(|it| it.to_zoned(TimeZone::UTC).ok());
            if let Some(zoned) = zoned {
                found.push(OldFile {
                    at: zoned.timestamp(),
                    is_compressed: whole.is_some(),
                    path,
                });
            }
        }
        Ok(found)
    }
}

/// Replaces a file by its compressed form.
fn compress(path: &Path) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(COMPRESSED);
    let target = PathBuf::from(name);
    let written = (|| {
        // What a process that was killed has left behind.
        match fs::remove_file(&target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut packing = GzEncoder::new(append(&target)?, Compression::default());
        io::copy(&mut File::open(path)?, &mut packing)?;
        packing.finish()?.sync_all()
    })();
    match written {
        Ok(()) => fs::remove_file(path),
        Err(error) => {
            // The error of the writing says more than that of the removal.
            let _ = fs::remove_file(&target);
            Err(error)
        }
    }
}

/// Opens a file at its end, and makes it if it is not there.
fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(FILE_MODE).open(path)
}
