//! Copies bytes no faster than a rate.

use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

use ringwatch::clock::{Clock, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum number of bytes that are copied at once.
const CHUNK_BYTES_MAX: u64 = 8 << 10;
/// The number of pauses in a second of the slowest copies.
const CHUNKS_PER_SECOND: u64 = 10;

/// A rate of bytes.
#[derive(Clone, Debug)]
pub struct Throttle {
    /// Number of bytes in a second.
    pub bytes_per_second: NonZeroU64,
    /// The clock of the pauses.
    pub clock: Clock,
}

impl Throttle {
    /// Copies until the end of the input, as `tokio::io::copy` does, but pauses after each chunk for as long as its
    /// bytes take. Time in which nothing came is not made up for.
    ///
    /// # Errors
    /// Those of either side.
    pub(super) async fn copy(
        &self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let rate = self.bytes_per_second.get();
        let chunk = (rate / CHUNKS_PER_SECOND).clamp(1, CHUNK_BYTES_MAX);
        let mut buffer = vec![0; usize::try_from(chunk).unwrap_or(1)];
        loop {
            let read = from.read(&mut buffer).await?;
            if read == 0 {
                return to.flush().await;
            }
            let start = self.clock.now();
            to.write_all(&buffer[..read]).await?;
            to.flush().await?;
            self.pause(read, start).await;
        }
    }

    /// Waits until bytes whose copying began at some time have taken theirs.
    pub async fn pause(&self, bytes: usize, start: Instant) {
        let seconds = bytes as f64 / self.bytes_per_second.get() as f64;
        self.clock
            .sleep_until(start + Duration::from_secs_f64(seconds))
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_take_their_time() {
        let clock = Clock::real();
        let bytes = vec![7; 10_000];
        for (rate, seconds) in [(1_000, 10), (100_000_000, 0), (5_000, 2)] {
            let throttle = Throttle {
                bytes_per_second: NonZeroU64::new(rate).expect("a rate"),
                clock: clock.clone(),
            };
            let (start, mut copied) = (clock.now(), Vec::new());
            let mut from = bytes.as_slice();
            let copy = throttle.copy(&mut from, &mut copied);
            copy.await.expect("copied");
            assert_eq!(copied, bytes);
            let took = (clock.now() - start).as_secs_f64().round() as u64;
            assert_eq!(took, seconds, "{rate}");
        }
    }
}
