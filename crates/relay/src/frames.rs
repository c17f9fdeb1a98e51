//! The frames of a watch, out of the pieces in which its bytes come.

use bytes::{Buf, Bytes, BytesMut};
use ringwatch::codec::FRAME_LENGTH_BYTES;

use super::error::MalformedAnswer;

/// Maximum number of bytes of a frame: many times what stores take for an object.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// The bytes of a watch that are not complete frames yet.
#[derive(Debug)]
pub(crate) struct Frames {
    is_protobuf: bool,
    buffer: BytesMut,
    /// The number of bytes at the beginning of the buffer in which no line ends.
    searched: usize,
}

impl Frames {
    /// Creates the buffer of a watch in protobuf or in JSON.
    pub(crate) fn new(is_protobuf: bool) -> Self {
        Self {
            is_protobuf,
            buffer: BytesMut::new(),
            searched: 0,
        }
    }

    /// Returns true if frames are protobuf.
    pub(crate) fn is_protobuf(&self) -> bool {
        self.is_protobuf
    }

    /// Appends the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next frame, without its length or the end of its line; `None` until it is complete.
    ///
    /// # Errors
    /// [`MalformedAnswer`] when the frame is longer than [`FRAME_BYTES_MAX`].
    pub(crate) fn next_frame(&mut self) -> Result<Option<Bytes>, MalformedAnswer> {
        match self.is_protobuf {
            true => self.next_counted(),
            false => self.next_line(),
        }
    }

    fn next_counted(&mut self) -> Result<Option<Bytes>, MalformedAnswer> {
        let Some(length) = self.buffer.first_chunk::<FRAME_LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        check_length(length)?;
        if self.buffer.len() < FRAME_LENGTH_BYTES + length {
            return Ok(None);
        }
        self.buffer.advance(FRAME_LENGTH_BYTES);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    fn next_line(&mut self) -> Result<Option<Bytes>, MalformedAnswer> {
        loop {
            let unsearched = &self.buffer[self.searched..];
            let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return check_length(self.searched).map(|()| None);
            };
            let line = self.buffer.split_to(self.searched + end).freeze();
            self.buffer.advance(1);
            self.searched = 0;
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }
}

fn check_length(length: usize) -> Result<(), MalformedAnswer> {
    if length <= FRAME_BYTES_MAX {
        return Ok(());
    }
    Err(MalformedAnswer(format!(
        "a frame of a watch has more than {FRAME_BYTES_MAX} bytes"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(is_protobuf: bool, bytes: &[u8], piece: usize) -> Vec<Bytes> {
        let mut frames = Frames::new(is_protobuf);
        let mut found = Vec::new();
        for piece in bytes.chunks(piece) {
            frames.push(piece);
            while let Some(frame) = frames.next_frame().expect("no error") {
                found.push(frame);
            }
        }
        found
    }

    #[test]
    fn frames_come_out_however_they_are_cut() {
        for piece in [1, 2, 3, 5, 100] {
            let lines = frames(false, b"{\"a\":1}\n\r\n{}\n{", piece);
            assert_eq!(lines, ["{\"a\":1}", "{}"]);
            let counted = frames(true, b"\0\0\0\x03abc\0\0\0\0\0\0\0\x01d\0\0", piece);
            assert_eq!(counted, ["abc", "", "d"]);
        }
    }

    #[test]
    fn a_frame_without_end_is_refused() {
        let mut counted = Frames::new(true);
        counted.push(&[0xff; 4]);
        counted.next_frame().expect_err("4 GiB");
        let mut lines = Frames::new(false);
        lines.push(&vec![b'x'; FRAME_BYTES_MAX]);
        assert_eq!(lines.next_frame(), Ok(None));
        lines.push(b"x");
        lines.next_frame().expect_err("too long");
    }
}
