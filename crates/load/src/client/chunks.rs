//! The body of an answer over HTTP/1.1: in chunks, or plain until the connection ends.

use super::ClientError;

/// A chunk is at most this long; a size line that says more is no size line.
const CHUNK_BYTES_MAX: usize = 1 << 30;

/// The position of the reader of a body.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChunkedBody {
    /// In the line with a chunk's size.
    Size { bytes: usize },
    /// In what may follow the size on its line.
    Extension { bytes: usize },
    /// In a chunk's data, of which `left` bytes are to come.
    Data { left: usize },
    /// In the line break after a chunk's data.
    End,
    /// Behind the last chunk.
    Last,
    /// There are no chunks: all is data.
    Plain,
}

impl ChunkedBody {
    /// Returns the reader of a chunked body, at its beginning.
    pub(super) fn chunked() -> Self {
        Self::Size { bytes: 0 }
    }

    /// Reads on and hands over what is data. Says whether the body goes on.
    pub(super) fn read(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), ClientError>,
    ) -> Result<bool, ClientError> {
        while let Some(&byte) = bytes.first() {
            match self {
                Self::Size { bytes: size } => {
                    bytes = &bytes[1..];
                    let size = *size;
                    *self = match byte {
                        b'\r' => Self::Size { bytes: size },
                        b'\n' => Self::after_size(size),
                        b';' => Self::Extension { bytes: size },
                        _ => Self::Size {
                            bytes: with_digit(size, byte)?,
                        },
                    };
                }
                Self::Extension { bytes: size } => {
                    bytes = &bytes[1..];
                    if byte == b'\n' {
                        *self = Self::after_size(*size);
                    }
                }
                Self::Data { left } => {
                    let (data, rest) = bytes.split_at(bytes.len().min(*left));
                    *left -= data.len();
                    if *left == 0 {
                        *self = Self::End;
                    }
                    bytes = rest;
                    take(data)?;
                }
                Self::End => {
                    bytes = &bytes[1..];
                    if byte == b'\n' {
                        *self = Self::chunked();
                    }
                }
                Self::Last => return Ok(false),
                Self::Plain => {
                    take(bytes)?;
                    return Ok(true);
                }
            }
        }
        Ok(!matches!(self, Self::Last))
    }

    fn after_size(size: usize) -> Self {
        if size == 0 {
            Self::Last
        } else {
            Self::Data { left: size }
        }
    }
}

fn with_digit(size: usize, byte: u8) -> Result<usize, ClientError> {
    let digit = char::from(byte).to_digit(16);
    let digit = digit.ok_or(ClientError::Malformed("a chunk has no size"))?;
    let size = size * 16 + digit as usize;
    if size > CHUNK_BYTES_MAX {
        return Err(ClientError::Malformed("a chunk is too long"));
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_read_however_they_are_cut() {
        let whole = b"5\r\nhello\r\nB;x=y\r\n, it is me.\r\n0\r\n\r\n";
        for step in 1..whole.len() {
            let (mut body, mut data, mut goes_on) = (ChunkedBody::chunked(), Vec::new(), true);
            for part in whole.chunks(step) {
                let take = |some: &[u8]| {
                    data.extend_from_slice(some);
                    Ok(())
                };
                goes_on = body.read(part, take).expect("chunks");
            }
            assert_eq!(data, b"hello, it is me.", "{step}");
            assert!(!goes_on, "{step}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for wrong in [&b"x\r\n"[..], b"FFFFFFFFFFFFFFFF\r\n"] {
            assert!(ChunkedBody::chunked().read(wrong, |_| Ok(())).is_err());
        }
    }
}
