//! The frames of a watch in its body: lines of JSON, or protobuf behind its length.
//!
//! Only frames that are spread over several reads are copied, so that ten thousand watches in one
//! process leave the machine to the server.

use super::{ClientError, Encoding};

/// A frame is at most this long: far above the largest object that a store takes.
const FRAME_BYTES_MAX: usize = 64 << 20;
/// The number of bytes that hold the length of a frame.
const LENGTH_BYTES: usize = 4;

/// Cuts the frames of one watch out of the data of its body.
#[derive(Debug)]
pub(super) struct Frames {
    encoding: Encoding,
    /// The beginning of a frame whose end has not come.
    begun: Vec<u8>,
}

impl Frames {
    /// Returns a reader that stands before the first frame.
    pub(super) fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            begun: Vec::new(),
        }
    }

    /// Reads on; each whole frame goes to `take`.
    pub(super) fn read(
        &mut self,
        mut data: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        while !data.is_empty() {
            let (missing, whole) = self.missing(data)?;
            let (some, rest) = data.split_at(missing);
            data = rest;
            if !whole {
                self.begun.extend_from_slice(some);
                if self.begun.len() > FRAME_BYTES_MAX {
                    return Err(ClientError::Malformed("an event does not end"));
                }
            } else if self.begun.is_empty() {
                take(self.inside(some))?;
            } else {
                self.begun.extend_from_slice(some);
                take(self.inside(&self.begun))?;
                self.begun.clear();
            }
        }
        Ok(())
    }

    /// Returns how much of the data belongs to the frame that is next, and whether it is whole with that.
    fn missing(&self, data: &[u8]) -> Result<(usize, bool), ClientError> {
        match self.encoding {
            Encoding::Json => {
                let end = data.iter().position(|byte| *byte == b'\n');
                Ok(end.map_or((data.len(), false), |end| (end + 1, true)))
            }
            Encoding::Protobuf => {
                let begun = self.begun.len();
                let mut length = [0; LENGTH_BYTES];
                for (at, byte) in length.iter_mut().enumerate() {
                    let known = self.begun.get(at).or_else(|| data.get(at - begun.min(at)));
                    let Some(known) = known else {
                        return Ok((data.len(), false));
                    };
                    *byte = *known;
                }
                let length = u32::from_be_bytes(length) as usize + LENGTH_BYTES;
                if length > FRAME_BYTES_MAX {
                    return Err(ClientError::Malformed("an event is too long"));
                }
                let missing = length - begun;
                Ok((missing.min(data.len()), missing <= data.len()))
            }
        }
    }

    /// Returns a frame without what delimits it.
    fn inside<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        match self.encoding {
            Encoding::Json => frame.strip_suffix(b"\n").unwrap_or(frame),
            Encoding::Protobuf => &frame[LENGTH_BYTES..],
        }
    }
}

/// Puts the length of a protobuf message before it, as in a watch's body.
pub(super) fn length_delimited(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), message].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(encoding: Encoding, whole: &[u8], step: usize) -> Vec<Vec<u8>> {
        let (mut frames, mut taken) = (Frames::new(encoding), Vec::new());
        for part in whole.chunks(step) {
            let take = |frame: &[u8]| {
                taken.push(frame.to_vec());
                Ok(())
            };
            frames.read(part, take).expect("frames");
        }
        taken
    }

    #[test]
    fn frames_are_read_however_they_are_cut() {
        let lines = b"one\ntwo\n\nthree\n";
        let lengths = b"\0\0\0\x03one\0\0\0\x03two\0\0\0\0\0\0\0\x05three";
        let expected: Vec<&[u8]> = vec![b"one", b"two", b"", b"three"];
        for step in 1..=lengths.len() {
            assert_eq!(read(Encoding::Json, lines, step), expected, "{step}");
            assert_eq!(read(Encoding::Protobuf, lengths, step), expected, "{step}");
        }
    }

    #[test]
    fn an_endless_frame_is_refused() {
        let mut frames = Frames::new(Encoding::Protobuf);
        assert!(frames.read(&[0xff; 8], |_| Ok(())).is_err());
    }
}
