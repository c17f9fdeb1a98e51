//! A file that is looked at again and again: what it says counts without a restart.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use crate::clock::Clock;

/// How often it is looked whether it has changed.
const RELOAD_PERIOD: Duration = Duration::from_secs(1);
/// No more is read of it.
const BYTES_MAX: u64 = 1 << 20;

/// A file, and what it said when it was used last.
#[derive(Debug)]
pub(super) struct WatchedFile {
    path: PathBuf,
    text: String,
}

impl WatchedFile {
    /// A file that says this.
    #[must_use]
    pub(super) fn new(path: PathBuf, text: String) -> Self {
        Self { path, text }
    }

    /// Waits until it says something else. That is given again until it was [`Self::used`].
    pub(super) async fn changed(&self, clock: &Clock) -> String {
        loop {
            clock.sleep(RELOAD_PERIOD).await;
            match self.content().await {
                Ok(text) if text == self.text => {}
                Ok(text) => return text,
                // It may be just about to be exchanged.
                Err(error) => {
                    let path = self.path.display();
                    tracing::debug!(%error, %path, "a file cannot be read");
                }
            }
        }
    }

    /// What it says has been used, or cannot be.
    pub(super) fn used(&mut self, text: String) {
        self.text = text;
    }

    async fn content(&self) -> io::Result<String> {
        let file = tokio::fs::File::open(&self.path).await?;
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text).await?;
        Ok(text)
    }
}
