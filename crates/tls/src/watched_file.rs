//! Files that are read again when they change, so that new certificates count without a restart.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringwatch::clock::Clock;
use tokio::io::AsyncReadExt;

/// The period at which files are checked for changes.
const RELOAD_PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of bytes of a file. A larger one counts as unreadable.
const BYTES_MAX: u64 = 1 << 20;

/// Files that belong together, with the contents that were used last.
#[derive(Debug)]
pub struct WatchedFiles<const N: usize> {
    paths: [PathBuf; N],
    texts: [String; N],
}

impl<const N: usize> WatchedFiles<N> {
    /// Watches these files, with the contents that are in use.
    #[must_use]
    pub fn new(paths: [PathBuf; N], texts: [String; N]) -> Self {
        Self { paths, texts }
    }

    /// Waits until the contents differ from those in use, and returns them. They are returned again until
    /// [`Self::used`] is called.
    pub async fn changed(&self, clock: &Clock) -> [String; N] {
        loop {
            clock.sleep(RELOAD_PERIOD).await;
            match self.contents().await {
                Some(texts) if texts == self.texts => {}
                Some(texts) => return texts,
                None => {}
            }
        }
    }

    /// Records that these contents are in use, or are not usable.
    pub fn used(&mut self, texts: [String; N]) {
        self.texts = texts;
    }

    /// Reads the files; `None` if one cannot be read, since it may be about to be replaced.
    async fn contents(&self) -> Option<[String; N]> {
        let mut texts = [const { String::new() }; N];
        for (path, text) in self.paths.iter().zip(&mut texts) {
            match content(path).await {
                Ok(content) => *text = content,
                Err(error) => {
                    let path = path.display();
                    tracing::debug!(%error, %path, "a file cannot be read");
                    return None;
                }
            }
        }
        Some(texts)
    }
}

/// Reads a file of at most 1 MiB.
///
/// # Errors
/// It cannot be read, or is larger.
pub async fn content(path: &Path) -> io::Result<String> {
    let file = tokio::fs::File::open(path).await?;
    let mut text = String::new();
    let read = file.take(BYTES_MAX + 1).read_to_string(&mut text).await?;
    if u64::try_from(read).is_ok_and(|read| read > BYTES_MAX) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}
