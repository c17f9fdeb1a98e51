//! The whole of a copy, and the part of it for which the source may be written to.

use super::error::CopyError;
use super::marker::Marker;
use super::pass::{Pass, VerifiedCopy};
use super::progress::CopyProgress;
use super::source::CopySource;
use super::target::CopyTarget;
use crate::storage::backend::ContentDigest;

/// Maximum number of passes of one copy: one more is made when the source was written to during the last, such as by
/// the end of a lease, or has dropped the revision that was read.
const PASSES_MAX: usize = 5;

/// The outcome of a pass whose copy is unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassResult {
    /// The revision of the source.
    pub revision: u64,
    /// The number of keys that were written or removed.
    pub changes: u64,
}

/// The outcome of a copy that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedCopy {
    /// The revision of the source.
    pub revision: u64,
    /// The revision of the target.
    pub target_revision: u64,
    /// The number of keys.
    pub keys: u64,
    /// The number of keys that the source had and whose lease ended during the copy.
    pub expired: u64,
    /// The number of keys that this run wrote or removed.
    pub changes: u64,
    /// The digest of the content, of its revisions only if the target keeps them.
    pub digest: ContentDigest,
}

/// Makes one pass, while the source may be written to. The copy is unfinished then.
///
/// # Errors
/// [`CopyError`].
pub async fn prepare(
    source: &dyn CopySource,
    target: &mut dyn CopyTarget,
    progress: &dyn CopyProgress,
) -> Result<PassResult, CopyError> {
    for _ in 0..PASSES_MAX {
        let revision = source.newest().await?;
        let mut pass = begin(source, target, progress, revision).await?;
        match pass.copy().await {
            Err(error) if error.is_compacted_source() => {}
            changes => {
                return Ok(PassResult {
                    revision,
                    changes: changes?,
                });
            }
        }
    }
    Err(CopyError::SourceWritten { passes: PASSES_MAX })
}

/// Makes passes until one finds the source unchanged at its end, verifies what the target has, and finishes the copy.
///
/// # Errors
/// [`CopyError`]; the copy is unfinished then.
pub async fn complete(
    source: &dyn CopySource,
    target: &mut dyn CopyTarget,
    progress: &dyn CopyProgress,
) -> Result<FinishedCopy, CopyError> {
    let mut changes = 0;
    for _ in 0..PASSES_MAX {
        let revision = source.newest().await?;
        let mut pass = begin(source, target, progress, revision).await?;
        let verified = match copy_and_verify(&mut pass, &mut changes).await {
            Err(error) if error.is_compacted_source() => continue,
            verified => verified?,
        };
        if source.newest().await? != revision {
            continue;
        }
        let VerifiedCopy {
            keys,
            expired,
            digest,
        } = verified;
        return Ok(FinishedCopy {
            revision,
            target_revision: target.finish(digest).await?,
            keys,
            expired,
            changes,
            digest,
        });
    }
    Err(CopyError::SourceWritten { passes: PASSES_MAX })
}

async fn begin<'a>(
    source: &'a dyn CopySource,
    target: &'a mut dyn CopyTarget,
    progress: &'a dyn CopyProgress,
    revision: u64,
) -> Result<Pass<'a>, CopyError> {
    let marker = Marker {
        source: source.name().to_owned(),
        revision,
        run: 0,
    };
    target.begin(marker, progress).await?;
    Ok(Pass::new(source, target, progress, revision))
}

async fn copy_and_verify(
    pass: &mut Pass<'_>,
    changes: &mut u64,
) -> Result<VerifiedCopy, CopyError> {
    *changes += pass.copy().await?;
    pass.verify().await
}
