//! The data directory.

use std::path::{Path, PathBuf};

use ringwatch_tls::error::StartError;
use ringwatch_tls::private_file;

/// Returns the data directory as an absolute path, and creates it if it is not there.
pub(crate) fn data_dir(path: &Path) -> Result<PathBuf, StartError> {
    let wrong = |error: std::io::Error| {
        StartError::new(
            format!("use the data directory {}", path.display()),
            error,
            "choose another --data-dir, or make this one writable",
        )
    };
    let path = std::path::absolute(path).map_err(wrong)?;
    private_file::create_directory(&path).map_err(wrong)?;
    Ok(path)
}
