//! Files that are read again when they change, so that new certificates count without a restart.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringwatch::clock::Clock;
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;

/// The period at which files are checked for changes.
pub const RELOAD_PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of bytes of a file. A larger one counts as unreadable.
const BYTES_MAX: u64 = 1 << 20;

/// Wakes all who wait in [`next_look`]. Signals are of the whole process, and so is this.
static LOOK_NOW: Notify = Notify::const_new();

/// Has the files that are followed in this process looked at now rather than at the end of a period, as SIGHUP asks
/// for.
pub fn look_now() {
    LOOK_NOW.notify_waiters();
}

/// Waits until a file that is followed is to be looked at again: for a period, or until [`look_now`].
pub async fn next_look(period: Duration, clock: &Clock) {
    tokio::select! {
        () = clock.sleep(period) => {}
        () = LOOK_NOW.notified() => {}
    }
}

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
            next_look(RELOAD_PERIOD, clock).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test.
    const NEVER: Duration = Duration::from_secs(1 << 30);

    #[tokio::test]
    async fn a_look_at_once_is_a_look_of_all() {
        let clock = Clock::real();
        let looks = async { tokio::join!(next_look(NEVER, &clock), next_look(NEVER, &clock)) };
        let ask = async {
            // Both wait by now, since this is polled after them.
            look_now();
        };
        tokio::join!(looks, ask);
    }

    #[tokio::test(start_paused = true)]
    async fn without_one_a_period_passes() {
        let clock = Clock::real();
        let since = clock.now();
        next_look(RELOAD_PERIOD, &clock).await;
        assert_eq!(clock.now().duration_since(since), RELOAD_PERIOD);
    }
}
