//! tokio's `io`, as far as the included files use it.

pub use real_tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
