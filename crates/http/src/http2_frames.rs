//! The frames of HTTP/2: their headers, and their boundaries in a stream of bytes that comes in pieces.

/// The length of a frame's header in bytes.
pub(super) const HEADER_BYTES: usize = 9;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

/// The flag of DATA and HEADERS with which a stream ends.
pub(super) const END_STREAM: u8 = 1;
/// The flag of SETTINGS that acknowledge.
pub(super) const ACK: u8 = 1;
/// The flag of HEADERS and CONTINUATION after which no CONTINUATION comes.
pub(super) const END_HEADERS: u8 = 4;

/// The header of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Header {
    pub(super) fn decode(bytes: [u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & (u32::MAX >> 1),
        }
    }

    pub(super) fn encode(self) -> [u8; HEADER_BYTES] {
        // A frame's length has 24 bits.
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The position in a stream of frames.
#[derive(Debug, Default)]
pub(super) struct FramePosition {
    header: [u8; HEADER_BYTES],
    /// The number of bytes of the next header that have come.
    known: usize,
    /// The number of bytes of the current frame's payload that are to come.
    pub(super) left: usize,
}

impl FramePosition {
    /// Returns true between two frames.
    pub(super) fn is_between_frames(&self) -> bool {
        self.known == 0 && self.left == 0
    }

    /// Takes bytes of a header. Returns how many it has taken, and the header once it is complete.
    pub(super) fn take_header(&mut self, bytes: &[u8]) -> (usize, Option<Header>) {
        let taken = bytes.len().min(HEADER_BYTES - self.known);
        self.header[self.known..self.known + taken].copy_from_slice(&bytes[..taken]);
        self.known += taken;
        if self.known < HEADER_BYTES {
            return (taken, None);
        }
        self.known = 0;
        let header = Header::decode(self.header);
        self.left = header.length;
        (taken, Some(header))
    }

    /// Returns how many of these bytes belong to the current payload, and passes over them.
    pub(super) fn take_payload(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.left);
        self.left -= taken;
        taken
    }
}
