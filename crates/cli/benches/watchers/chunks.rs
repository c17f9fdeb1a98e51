//! A reader of what a watch answers over HTTP/1.1: chunks, in which there are lines.
//!
//! It copies only lines that are spread over several reads or chunks, so that ten thousand watches
//! in one process leave the machine to the server.

use std::mem;

/// Where the reader is.
#[derive(Debug)]
pub(crate) struct Lines {
    chunk: Chunk,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Chunk {
    /// In the line with a chunk's size.
    Size { bytes: usize },
    /// So much of the chunk's data is to come.
    Data { left: usize },
    /// In the line break after a chunk's data.
    End,
    /// Behind the last chunk.
    Last,
    /// There are no chunks: all is data.
    Plain,
}

impl Lines {
    /// A reader of a chunked body.
    pub(crate) fn chunked() -> Self {
        Self {
            chunk: Chunk::Size { bytes: 0 },
            begun: Vec::new(),
        }
    }

    /// A reader of a body without chunks.
    pub(crate) fn plain() -> Self {
        Self {
            chunk: Chunk::Plain,
            begun: Vec::new(),
        }
    }

    /// Reads on; each whole line goes to `take`. Says whether the body goes on.
    pub(crate) fn read(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(&[u8]),
    ) -> Result<bool, String> {
        while let Some(&byte) = bytes.first() {
            match &mut self.chunk {
                Chunk::Size { bytes: size } => {
                    bytes = &bytes[1..];
                    match byte {
                        b'\r' => {}
                        b'\n' if *size == 0 => self.chunk = Chunk::Last,
                        b'\n' => self.chunk = Chunk::Data { left: *size },
                        _ => {
                            let digit = (byte as char).to_digit(16);
                            let digit = digit.ok_or("a chunk has no size")?;
                            *size = *size * 16 + digit as usize;
                        }
                    }
                }
                Chunk::Data { left } => {
                    let (data, rest) = bytes.split_at(bytes.len().min(*left));
                    *left -= data.len();
                    if *left == 0 {
                        self.chunk = Chunk::End;
                    }
                    bytes = rest;
                    self.data(data, &mut take);
                }
                Chunk::End => {
                    bytes = &bytes[1..];
                    if byte == b'\n' {
                        self.chunk = Chunk::Size { bytes: 0 };
                    }
                }
                Chunk::Last => return Ok(false),
                Chunk::Plain => {
                    self.data(mem::take(&mut bytes), &mut take);
                }
            }
        }
        Ok(!matches!(self.chunk, Chunk::Last))
    }

    fn data(&mut self, mut data: &[u8], take: &mut impl FnMut(&[u8])) {
        while let Some(end) = data.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = data.split_at(end);
            data = &rest[1..];
            if self.begun.is_empty() {
                take(line);
            } else {
                self.begun.extend_from_slice(line);
                take(&self.begun);
                self.begun.clear();
            }
        }
        self.begun.extend_from_slice(data);
    }
}
