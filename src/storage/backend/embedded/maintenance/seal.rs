//! The seal of a snapshot: its last bytes are the SHA-256 of those before them.

use sha2::{Digest, Sha256};

/// The length of the seal in bytes.
pub(super) const SEAL_BYTES: usize = 32;

/// The stream ended early, or a byte of it is another than was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its bytes do not add up to the SHA-256 at its end, so it is cut off or changed")]
pub struct SealError;

/// A check of the seal of a stream of bytes that comes in pieces.
#[derive(Clone, Default)]
pub struct Seal {
    /// The digest of all bytes but the last ones.
    hasher: Sha256,
    /// The last bytes so far, which may be the seal.
    last: Vec<u8>,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Seal").finish_non_exhaustive()
    }
}

impl Seal {
    /// Takes the next bytes of the stream.
    pub fn update(&mut self, bytes: &[u8]) {
        let (before, last) = bytes.split_at(bytes.len().saturating_sub(SEAL_BYTES));
        let kept = SEAL_BYTES - last.len();
        let passed = self.last.len().saturating_sub(kept);
        self.hasher.update(&self.last[..passed]);
        self.last.drain(..passed);
        if !before.is_empty() {
            self.hasher.update(before);
        }
        self.last.extend_from_slice(last);
    }

    /// Verifies the stream, which has ended.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn verify(self) -> Result<(), SealError> {
        match self.hasher.finalize().as_slice() == self.last {
            true => Ok(()),
            false => Err(SealError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(content: &[u8]) -> Vec<u8> {
        [content, Sha256::digest(content).as_slice()].concat()
    }

    fn verified(stream: &[u8], piece: usize) -> Result<(), SealError> {
        let mut seal = Seal::default();
        stream.chunks(piece).for_each(|it| seal.update(it));
        seal.verify()
    }

    #[test]
    fn a_seal_is_found_in_whatever_pieces_the_stream_comes() {
        for length in [0, 1, 31, 32, 33, 100] {
            let stream = sealed(&vec![7; length]);
            for piece in 1..=stream.len() {
                assert_eq!(verified(&stream, piece), Ok(()), "{length}, {piece}");
            }
        }
    }

    #[test]
    fn no_byte_may_be_changed_or_missing() {
        let stream = sealed(b"snapshot");
        for at in 0..stream.len() {
            let mut changed = stream.clone();
            changed[at] ^= 1;
            assert_eq!(verified(&changed, 7), Err(SealError), "{at}");
            assert_eq!(verified(&stream[..at], 7), Err(SealError), "{at}");
        }
        assert_eq!(verified(&[&stream[..], b"\0"].concat(), 7), Err(SealError));
    }
}
