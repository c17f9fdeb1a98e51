//! HTTP/2 as the floor speaks it: what its clients insist on before they take DATA frames.
//!
//! The clients' windows are not looked at. They are far larger than the events of a moment, and a client whose window
//! is passed says so by closing its connection.

use std::io::{self, ErrorKind, Read, Write};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_BYTES: usize = 9;
/// The position of the stream's number in a frame's head.
const STREAM_AT: usize = 5;
/// The largest payload that every peer takes.
const PAYLOAD_BYTES_MAX: usize = 16 << 10;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// The head of the answer to every watch: `:status 200`, in HPACK's table.
const WATCH_HEAD: &[u8] = &[0x88];

/// DATA frames, of which each stream gets a copy.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    /// The positions of the heads.
    heads: Vec<usize>,
}

impl Frames {
    /// Adds the frames of an event.
    pub(super) fn push(&mut self, event: &[u8]) {
        for payload in event.chunks(PAYLOAD_BYTES_MAX) {
            self.heads.push(self.bytes.len());
            self.bytes.extend(head(DATA, 0, 0, payload.len()));
            self.bytes.extend(payload);
        }
    }

    /// Appends the copy of a stream.
    pub(super) fn copy_for(&self, stream: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(&self.bytes);
        for head in &self.heads {
            let at = start + head + STREAM_AT;
            out[at..at + 4].copy_from_slice(&stream.to_be_bytes());
        }
    }
}

/// Takes so many requests of a connection and answers each with the head of a watch. Returns their streams.
pub(super) fn take_streams(
    mut connection: impl Read + Write,
    count: usize,
) -> io::Result<Vec<u32>> {
    let mut preface = [0; PREFACE.len()];
    connection.read_exact(&mut preface)?;
    if preface != PREFACE {
        return Err(ErrorKind::InvalidData.into());
    }
    connection.write_all(&head(SETTINGS, 0, 0, 0))?;
    let mut streams = Vec::new();
    while streams.len() < count {
        // Nothing may wait in TLS while the client is waited for.
        connection.flush()?;
        let mut read = [0; FRAME_HEAD_BYTES];
        connection.read_exact(&mut read)?;
        let [a, b, c, kind, flags, stream @ ..] = read;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if length > PAYLOAD_BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        connection.read_exact(&mut vec![0; length])?;
        match kind {
            SETTINGS if flags & ACK == 0 => connection.write_all(&head(SETTINGS, ACK, 0, 0))?,
            HEADERS => {
                let stream = u32::from_be_bytes(stream);
                connection.write_all(&head(HEADERS, END_HEADERS, stream, WATCH_HEAD.len()))?;
                connection.write_all(WATCH_HEAD)?;
                streams.push(stream);
            }
            _ => {}
        }
    }
    connection.flush()?;
    Ok(streams)
}

fn head(kind: u8, flags: u8, stream: u32, length: usize) -> [u8; FRAME_HEAD_BYTES] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [a, b, c, kind, flags, d, e, f, g]
}
